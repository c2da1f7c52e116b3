"""Docstrings as Markdown: an extension of griffe, which reads them for mkdocstrings."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import griffe

from website.reference import documented_names

_ROLE = re.compile(r":[a-z]+:`~?(?P<name>[^`]+)`")
_LITERAL_BLOCK = re.compile(r"::\n\n(?P<code>(?:(?: {4,}.*)?\n)*(?: {4,}.*))")
_RULE = re.compile(r"^(?P<name>[A-Z]\d+, .*)\n(?P<text>(?: {4}.*(?:\n|\Z))+)", re.MULTILINE)
_TABLE = re.compile(r"^(?P<bar>=+(?: +=+)+)\n(?P<rows>(?:.+\n)+?)(?P=bar)$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Names become links to the reference, where it has them; literal blocks become fenced code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    text = _LITERAL_BLOCK.sub(_fence, docstring)
    for pattern, replacement in ((_TABLE, _table), (_RULE, _rule), (_ROLE, _link)):
        text = pattern.sub(replacement, text)
    return text


def _link(found: re.Match[str]) -> str:
    name = found["name"]
    last = name.rpartition(".")[2]
    aim = documented_names().get(name) or documented_names().get(last)
    return f"[`{last}`][{aim}]" if aim else f"`{name}`"


def _fence(found: re.Match[str]) -> str:
    return f":\n\n```python\n{dedent(found['code'])}\n```"


def _rule(found: re.Match[str]) -> str:
    return f"**{found['name']}**\n\n{dedent(found['text'])}\n"


def _table(found: re.Match[str]) -> str:
    """A table without a head: bars of ``=`` say how wide its columns are."""
    starts = [column.start() for column in re.finditer("=+", found["bar"])]
    ends = [*starts[1:], None]
    rows = [
        [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        for line in found["rows"].splitlines()
    ]
    empty, bars = [""] * len(starts), ["---"] * len(starts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [empty, bars, *rows])
