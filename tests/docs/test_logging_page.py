"""docs/logging.md has every message that the library logs, under its level."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.support.documentation import ROOT

PAGE = (ROOT / "docs" / "logging.md").read_text()
_LOOKED_AT = (ast.Call, ast.Constant)
LEVELS = {"exception": "ERROR", "error": "ERROR", "warning": "WARNING", "info": "INFO", "debug": "DEBUG"}


def test_every_message_is_on_the_page_under_its_level() -> None:
    logged = set(_logged())
    assert len(logged) > 20  # they are found at all
    assert {(level, message) for level, message in logged if message not in _documented(level)} == set()


def test_every_message_of_the_page_is_in_the_code() -> None:
    texts = {str(node.value) for node in _nodes() if isinstance(node, ast.Constant)}
    templates = {re.sub(r"%\w", "…", text) for text in texts}
    assert [
        name for level in ("ERROR", "WARNING", "INFO") for name in _documented(level) if name not in templates
    ] == []


def _documented(level: str) -> set[str]:
    part = re.search(rf"^\*\*{level}\*\*(.*?)(?=^\*\*|^## |^Besides)", PAGE, re.MULTILINE | re.DOTALL)
    assert part is not None
    of_facets = set(re.findall(rf"^\| {level} \| `([^`]+)` \|", PAGE, re.MULTILINE))
    if level == "INFO":
        return of_facets | {text for text in re.findall(r"`([^`]+)`", part[1]) if " " in text}
    return of_facets | set(re.findall(r"^\| `([^`]+)` \|", part[1], re.MULTILINE))


@cache
def _nodes() -> list[ast.AST]:
    sources = [path for path in sorted((ROOT / "src").rglob("*.py")) if "testing" not in path.parts]
    return [node for path in sources for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, _LOOKED_AT)]


def _logged() -> Iterator[tuple[str, str]]:
    """The level and the template of each call of a logger. ``_logged("…")`` of the sweeper logs an exception."""
    for node in _nodes():
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="logger" | "_logger"), attr=method),
                args=[ast.Constant(value=str(text)), *_],
            ):
                level = LEVELS[method]
            case ast.Call(func=ast.Name(id="_logged"), args=[ast.Constant(value=str(text))]):
                level = "ERROR"
            case _:
                continue
        template = re.sub(r"%\w", "…", text)
        if re.search(r"\w", template):  # others pass on the text of a warning
            yield level, template
