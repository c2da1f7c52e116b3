"""Stored text as data in a prompt: nothing in the text can look like the words that this library writes around it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # where str.splitlines() splits

_INDENT = re.compile(f"({_LINE_END.pattern})  ")

_COLON = re.compile(r":(\s|$)")


def indented(text: str) -> str:
    """``text`` with two spaces before each line except the first."""
    return _LINE_END.sub(r"\g<0>  ", text)


def unindented(text: str) -> str:
    """The text that :func:`indented` was given."""
    return _INDENT.sub(r"\1", text)


def shown(value: Any) -> str:
    """A value as a line of a prompt: text as it is, any other value as JSON."""
    return indented(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def in_one_line(value: Any) -> str:
    """A value that cannot even begin a new line: text with a line end is written as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _LINE_END.search(text) else text


def fact_in_one_line(key: str, value: Any) -> str:
    """:func:`fact_line`, and nothing of it begins a new line."""
    name = in_one_line(key)
    if name == key and _COLON.search(key):
        name = json.dumps(key, ensure_ascii=False)
    return f"- {name}: {in_one_line(value)}"


def fact_line(key: str, value: Any) -> str:
    """The line of a fact. A key with a colon before a space, or at its end, is written as JSON."""
    name = json.dumps(key, ensure_ascii=False) if _COLON.search(key) else key
    return f"- {shown(name)}: {shown(value)}"


def facts_text(facts: Mapping[str, Any]) -> str:
    """Facts as lines with a heading; the empty text if there are no facts."""
    return "\n".join([FACTS, *[fact_line(key, value) for key, value in facts.items()]]) if facts else ""


FACTS = "Working Memory:"
"""The heading of the lines of facts."""


def fenced(facts: Mapping[str, Any]) -> str:
    """Facts as a line of JSON in a fence. No fact can end the fence."""
    return f"```json\n{in_a_fence(facts)}\n```"


def in_a_fence(facts: Mapping[str, Any]) -> str:
    """Facts as a line of JSON without a backtick, for :func:`fenced`."""
    return json.dumps(facts).replace("`", "\\u0060")
