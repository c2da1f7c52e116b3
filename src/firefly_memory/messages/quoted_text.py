"""How stored text is written into a prompt, so that nothing in it looks like what this library writes around it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # what str.splitlines() splits at

_COLON = re.compile(r":(\s|$)")


def indented(text: str) -> str:
    """``text`` with all its lines but the first two spaces to the right."""
    return _LINE_END.sub(r"\g<0>  ", text)


def shown(value: Any) -> str:
    """A value in a line of a prompt: text as it is, all else as JSON."""
    return indented(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def fact_line(key: str, value: Any) -> str:
    """The line of a fact. A key in which it looks as if the value began is written as JSON."""
    said = json.dumps(key, ensure_ascii=False) if _COLON.search(key) else key
    return f"- {shown(said)}: {shown(value)}"


def facts_text(facts: Mapping[str, Any]) -> str:
    """Facts as lines; the empty text if there are none."""
    return "\n".join([FACTS, *[fact_line(key, value) for key, value in facts.items()]]) if facts else ""


FACTS = "Working Memory:"
"""What stands above the lines of facts."""


def fenced(facts: Mapping[str, Any]) -> str:
    """Facts as a line of JSON in a fence, which nothing in them can end."""
    return f"```json\n{in_a_fence(facts)}\n```"


def in_a_fence(facts: Mapping[str, Any]) -> str:
    """Facts as the line of JSON that :func:`fenced` has, in which there is no backtick."""
    return json.dumps(facts).replace("`", "\\u0060")
