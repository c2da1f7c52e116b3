"""``llms.txt`` and ``llms-full.txt``: the site for language models (https://llmstxt.org)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_KEPT: list[Any] = []
_LINK = re.compile(r"!?\[(?P<text>[^\]]*)\]\([^)]*\)")
_NO_TEXT = re.compile(r"<!--.*?-->|^```.*?^```$", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^::: (?P<path>\S+)\n(?: {4}.*\n)*", re.MULTILINE)


def keep(nav: Any) -> None:
    _KEPT[:] = [nav]


def write(site: Path, name: str) -> None:
    (nav,) = _KEPT
    start = nav.homepage
    head = f"# {name}\n\n> {first_paragraph(start.markdown)}\n"
    (site / "llms.txt").write_text(head + "\n".join(_sections(nav)) + "\n")
    pages = [f"<!-- {page.url} -->\n\n{_BLOCK.sub(_name, page.markdown).strip()}" for page in nav.pages]
    (site / "llms-full.txt").write_text("\n\n".join(pages) + "\n")


def _sections(nav: Any) -> Iterator[str]:
    for item in nav.items:
        yield f"\n## {item.title}\n"
        yield from (_line(page) for page in _pages(item))


def _pages(item: Any) -> Iterator[Any]:
    if item.is_page:
        yield item
    for child in item.children or ():
        yield from _pages(child)


def _line(page: Any) -> str:
    return f"- [{page.title}]({page.url}): {first_paragraph(page.markdown)}"


def _name(block: re.Match[str]) -> str:
    return f"`{block['path']}`\n"


def first_paragraph(markdown: str) -> str:
    """The first paragraph below the title, on one line, without links and pictures."""
    for part in re.split(r"\n\s*\n", _NO_TEXT.sub("", markdown)):
        text = part.strip()
        if text and not re.match(r"[#|<!`:]|- |\* |\d+\. |Install: ", text):
            return re.sub(r"\s+", " ", _LINK.sub(lambda found: found["text"], text))
    return ""
