"""The snippets of the specification of message stores, with the imports of this library."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[1] / "data" / "message_stores.md"

_IMPORTS = {
    "agent_framework": "firefly_memory.feeds",
    "agent_framework.components.memory": "firefly_memory.feeds.memories",
    "agent_framework.utils.message_builder": "firefly_memory.feeds.message_builder",
    "agent_framework.policies.history_filters": "firefly_memory.feeds.history_filters",
}
"""In the place of the specification's. Nothing else is changed."""

_OF_THE_PAGE = (
    "from abc import ABC, abstractmethod\nfrom collections import defaultdict\nfrom typing import Any, Dict, List\n"
)
"""The page has these names without an import."""


def snippets(heading: str) -> list[str]:
    """The blocks under a heading, in their order."""
    section = re.split(r"^##+ ", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (found,) = [each for each in section if each.partition("\n")[0] == heading]
    blocks = re.findall(r"^```\w+\n(.*?)^```", found, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"^from ([\w.]+)", _replaced, block, flags=re.MULTILINE) for block in blocks]


def _replaced(found: re.Match[str]) -> str:
    return f"from {_IMPORTS.get(found[1], found[1])}"


async def executed(snippet: str, **names: Any) -> dict[str, Any]:
    """The names that a snippet, which may await, leaves behind."""
    exec(_OF_THE_PAGE, names)
    code = compile(snippet, "<specification>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result
    return names


def literals(snippet: str) -> list[Any]:
    """The values of a snippet that has nothing but values; lists that it leaves open are empty."""
    expressions = ast.parse(snippet.replace("[...]", "[]")).body
    return [ast.literal_eval(each.value) for each in expressions if isinstance(each, ast.Expr)]


async def complete_example() -> dict[str, Any]:
    """The names of the complete example up to its agent, which is one of another framework."""
    (snippet,) = snippets("Complete Example")
    ours = snippet.partition("# Create agent")[0].replace("import Agent, ", "import ").replace(", get_preset", "")
    lines = [each for each in ours.splitlines() if not each.startswith("from agent_framework.")]
    return await executed("\n".join(lines))
