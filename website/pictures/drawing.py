"""What a picture is drawn with: boxes, texts, arrows, and colors for light and dark screens."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

STYLE = """
text { font: 15px system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; fill: #1f2430; }
.title { font-size: 17px; font-weight: 600; }
.small { font-size: 13.5px; fill: #4b5262; }
.code { font: 13.5px ui-monospace, "SF Mono", "Liberation Mono", Menlo, monospace; }
.paper { fill: #ffffff; stroke: #d5d9e2; }
.panel { fill: #f3f5f9; stroke: #d5d9e2; }
.box { fill: #ffffff; stroke: #8a93a6; }
.blue { fill: #e3ecfd; stroke: #3d6fd1; }
.green { fill: #e0f3e6; stroke: #2f8a4f; }
.amber { fill: #fdf0d5; stroke: #b7791f; }
.faded { fill: #eceef3; stroke: #a9b0bf; }
.dashed { fill: none; stroke: #8a93a6; stroke-dasharray: 5 4; }
.line { fill: none; stroke: #4b5262; stroke-width: 1.8; }
.head { fill: #4b5262; }
.red { fill: none; stroke: #c62f2f; stroke-width: 2.2; }
text.bad { fill: #b42323; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9f0; }
  .small { fill: #b4bccb; }
  .paper { fill: #1b1f29; stroke: #3a4152; }
  .panel { fill: #232834; stroke: #3a4152; }
  .box { fill: #2c3241; stroke: #7c869b; }
  .blue { fill: #1f3358; stroke: #6f9bf0; }
  .green { fill: #1c3d2a; stroke: #5bb97b; }
  .amber { fill: #453416; stroke: #d9a441; }
  .faded { fill: #262b37; stroke: #555e70; }
  .dashed { stroke: #7c869b; }
  .line { stroke: #b4bccb; }
  .head { fill: #b4bccb; }
  .red { stroke: #ff7b72; }
  text.bad { fill: #ff8f87; }
}
"""

_WIDTH_OF_A_CHARACTER = {"": 7.6, "title": 9.2, "small": 6.9, "code": 8.2, "bad": 8.2}
"""More than a character has on average, in pixels, for the widest of the fonts."""

_HEAD = 7


@dataclass
class Picture:
    """A picture, for people who see it and, by its title and description, for those who do not."""

    width: int
    height: int
    title: str
    description: str
    _parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box", radius: float = 8) -> None:
        self._add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" class="{kind}"/>')

    def text(self, x: float, y: float, words: str, kind: str = "", *, anchor: str = "start", room: float) -> None:
        """``room`` is how wide the words may be; wider ones are an error."""
        needed = len(words) * _WIDTH_OF_A_CHARACTER[kind]
        if needed > room:
            raise ValueError(f"{words!r} needs {needed:.0f} pixels, and has {room:g}")
        of_kind = f' class="{kind}"' if kind else ""
        of_anchor = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._add(f'<text x="{x:g}" y="{y:g}"{of_kind}{of_anchor}>{escape(words)}</text>')

    def card(self, x: float, y: float, width: float, height: float, kind: str, *lines: tuple[str, str]) -> None:
        """A box with lines of text in its middle, each with its kind."""
        self.box(x, y, width, height, kind)
        step = 20
        first = y + height / 2 - step * (len(lines) - 1) / 2 + 5
        for number, (words, kind_of_line) in enumerate(lines):
            self.text(x + width / 2, first + step * number, words, kind_of_line, anchor="middle", room=width - 8)

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight arrow, level or upright."""
        along, down = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        base_x, base_y = x2 - along * _HEAD * 1.5, y2 - down * _HEAD * 1.5
        side_x, side_y = abs(down) * _HEAD * 0.75, abs(along) * _HEAD * 0.75
        self._add(f'<path d="M{x1:g} {y1:g}L{base_x:g} {base_y:g}" class="line"/>')
        points = [(x2, y2), (base_x + side_x, base_y + side_y), (base_x - side_x, base_y - side_y)]
        self._add(f'<path d="M{"L".join(f"{x:g} {y:g}" for x, y in points)}Z" class="head"/>')

    def path(self, steps: str, kind: str = "line") -> None:
        self._add(f'<path d="{steps}" class="{kind}"/>')

    def cylinder(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """The sign of a database."""
        rx, ry = width / 2, 12
        self.path(
            f"M{x:g} {y + ry:g}v{height - 2 * ry:g}a{rx:g} {ry} 0 0 0 {width:g} 0v{2 * ry - height:g}"
            f"a{rx:g} {ry} 0 0 0 {-width:g} 0a{rx:g} {ry} 0 0 0 {width:g} 0",
            kind,
        )

    def _add(self, part: str) -> None:
        self._parts.append(part)

    def svg(self) -> str:
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        paper = f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="12" class="paper"/>'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="description">{escape(self.description)}</desc>',
                f"<style>{STYLE}</style>",
                paper,
                *self._parts,
                "</svg>\n",
            ]
        )
