"""A call of each method of ``MemoryService`` that asks the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from firefly_memory.longterm import MemoryService
from firefly_memory.testing.checks import Memory

SESSION, AGENT = "s", "a"
PERSON, ANOTHER = "web:ann", "web:bob"
IDS = {"session_id": SESSION, "user_id": PERSON, "agent_id": AGENT}

Calls = Callable[[Callable[..., Any], str], list[Any]]

_CALLS: Mapping[str, Calls] = {
    "get_fact": lambda call, _: [call("k", **IDS), call("k", as_of=datetime.now(UTC), **IDS)],
    "find_fact": lambda call, _: [call("k", "user", **IDS)],
    "read_fact": lambda call, fact_id: [call(fact_id)],
    "set_fact": lambda call, _: [call("k", "new", scope=scope, **IDS) for scope in ("global", "user")],
    "list_facts": lambda call, _: [call(), call(AGENT, PERSON, session_id=SESSION)],
    "search_facts": lambda call, _: [call("k", mode=mode, **IDS) for mode in ("fuzzy", "text", "best")],
    "get_user_facts": lambda call, _: [call(PERSON)],
    "get_or_create_user": lambda call, _: [call("web", "ann", "new")],
    "get_user": lambda call, _: [call(PERSON)],
    "list_users": lambda call, _: [call()],
    "update_preferences": lambda call, _: [call(PERSON, {"k": "new"})],
    "count_conversation": lambda call, _: [call(PERSON)],
    "get_user_context": lambda call, _: [call(PERSON)],
    "merge_users": lambda call, _: [call(PERSON, ANOTHER)],
    "confirm_fact": lambda call, fact_id: [call(fact_id)],
    "contradict_fact": lambda call, fact_id: [call(fact_id)],
    "history": lambda call, fact_id: [call(fact_id)],
    "delete_fact": lambda call, fact_id: [call(fact_id)],
    "delete_facts": lambda call, fact_id: [call([fact_id])],
}

_OF_EVERY_SPACE = {"embed_missing", "forget_user"}
"""By their contract."""


def every_call(service: Memory, fact_id: str) -> list[Any]:
    """To be awaited in this order."""
    methods = {name.removeprefix("async_") for name in dir(MemoryService) if name.startswith("async_")}
    assert methods - _OF_EVERY_SPACE == _CALLS.keys(), "a new method needs a line"
    return [each for name, calls in _CALLS.items() for each in calls(getattr(service, name), fact_id)]
