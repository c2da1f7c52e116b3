"""The tools by which an agent reads long-term memory and writes to it: plain functions, for every framework of agents.

The function of a tool returns text in every case, since its answer is for a model: what fails is a text that begins
with ``Error``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from logging import getLogger
from typing import Any, Literal, NamedTuple, TypeAlias

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import ConfigurationError, ConflictError, DatabaseStoreError, InvalidEntryError
from firefly_memory.identifiers import stored_name
from firefly_memory.longterm.fact_flows import FactFlows, Ids, Search
from firefly_memory.longterm.fact_form import checked_confidence, value_of
from firefly_memory.longterm.places import EVERY_AGENT
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.types import FACT_TYPES, USUAL_TYPE, MemoryFact
from firefly_memory.messages.storage import sendable
from firefly_memory.reprs import shown
from firefly_memory.search.hits import checked_request
from firefly_memory.search.searchable import value_text
from firefly_memory.validation import at_least, true_or_false

_logger = getLogger("firefly_memory.longterm")

MemoryType: TypeAlias = Literal["facts", "procedures", "episodes", "all"]
WriteScope: TypeAlias = Literal["user", "agent", "global"]

_MEMORY_TYPES = ("facts", "procedures", "episodes", "all")
_IS_OLD = {True: "is replaced", False: "stays as it is"}
_WHO_SEES = {
    "global": "Everybody sees it.",
    "agent": "All users of this agent see it.",
    "user": "It belongs to the person of this conversation.",
}
"""What a model is told of the scopes that a tool may write to."""

LONGEST_ANSWER = 20_000
"""Characters of a value that a tool shows whole, and of a text that it stores."""
LONGEST_IN_LIST = 2_000
"""Characters of a value that a list shows whole."""

_RECALL = """Read long-term memory, which outlives conversations. Without arguments, list what is known.

Args:
    key: The key of a fact, such as "timezone". Without such a fact, similar facts are found.
    query: Words to search for.
"""

_REMEMBER = f"""Store a fact in long-term memory, which outlives conversations. {{who_sees}}

Args:
    key: A short name of the fact, such as "timezone". A fact that has this key already {{is_old}}.
    value: What is known: a text, a number, a list, or any other JSON value.
    fact_type: {", ".join(FACT_TYPES[:-1])} or {FACT_TYPES[-1]}. Leave it out if you are not sure.
"""


def memory_read(
    service: MemoryService,
    agent: str = EVERY_AGENT,
    user: str | None = None,
    memory_type: MemoryType = "facts",
    limit: int = 10,
    min_confidence: float = 0.5,
) -> Callable[..., str]:
    """``recall(key="", query="")``, a tool that reads what is global, the agent's or the user's.

    ``key`` gives the fact of the most specific scope, such as ``timezone = Australia/Adelaide``. Without such a fact,
    facts that have the words of the key are found. ``query`` finds up to ``limit`` memories of the ``memory_type``
    whose confidence is at least ``min_confidence``. Without arguments, ``recall`` lists up to ``limit`` facts. What is
    found is a JSON list. ``recall`` never raises an error, its answer says what is wrong.
    """
    reader = _reader(service, agent, user, memory_type, limit, min_confidence, is_blocking=True)

    def recall(key: str = "", query: str = "") -> str:
        return run_without_loop(reader.recall(key, query))

    recall.__doc__ = _RECALL
    return recall


def async_memory_read(
    service: MemoryService,
    agent: str = EVERY_AGENT,
    user: str | None = None,
    memory_type: MemoryType = "facts",
    limit: int = 10,
    min_confidence: float = 0.5,
) -> Callable[..., Awaitable[str]]:
    """``recall(key="", query="")``, a tool that reads what is global, the agent's or the user's.

    ``key`` gives the fact of the most specific scope, such as ``timezone = Australia/Adelaide``. Without such a fact,
    facts that have the words of the key are found. ``query`` finds up to ``limit`` memories of the ``memory_type``
    whose confidence is at least ``min_confidence``. Without arguments, ``recall`` lists up to ``limit`` facts. What is
    found is a JSON list. ``recall`` never raises an error, its answer says what is wrong.
    """
    reader = _reader(service, agent, user, memory_type, limit, min_confidence, is_blocking=False)

    async def recall(key: str = "", query: str = "") -> str:
        return await reader.recall(key, query)

    recall.__doc__ = _RECALL
    return recall


def memory_write(
    service: MemoryService,
    agent: str = EVERY_AGENT,
    user: str | None = None,
    fact_type: str = USUAL_TYPE,
    overwrite: bool = True,
    scope: WriteScope = "global",
) -> Callable[..., str]:
    """``remember(key, value, fact_type="")``, a tool that stores a fact in one scope.

    It answers with what is stored now, such as ``Remembered: color = blue (created)``, or ``(updated)``, or, with
    ``overwrite=False``, ``(skipped)`` for a fact that was there: then the value is that of this fact. ``fact_type`` is
    that of new facts whose type the model leaves out. If the tool is made for a user, what it stores is that user's
    data in every scope, and erased with it. ``remember`` never raises an error, its answer says what is wrong.
    """
    writer = _writer(service, agent, user, fact_type, scope, overwrite=overwrite, is_blocking=True)

    def remember(key: str, value: Any, fact_type: str = "") -> str:
        return run_without_loop(writer.remember(key, value, fact_type))

    remember.__doc__ = _REMEMBER.format(who_sees=_WHO_SEES[scope], is_old=_IS_OLD[overwrite])
    return remember


def async_memory_write(
    service: MemoryService,
    agent: str = EVERY_AGENT,
    user: str | None = None,
    fact_type: str = USUAL_TYPE,
    overwrite: bool = True,
    scope: WriteScope = "global",
) -> Callable[..., Awaitable[str]]:
    """``remember(key, value, fact_type="")``, a tool that stores a fact in one scope.

    It answers with what is stored now, such as ``Remembered: color = blue (created)``, or ``(updated)``, or, with
    ``overwrite=False``, ``(skipped)`` for a fact that was there: then the value is that of this fact. ``fact_type`` is
    that of new facts whose type the model leaves out. If the tool is made for a user, what it stores is that user's
    data in every scope, and erased with it. ``remember`` never raises an error, its answer says what is wrong.
    """
    writer = _writer(service, agent, user, fact_type, scope, overwrite=overwrite, is_blocking=False)

    async def remember(key: str, value: Any, fact_type: str = "") -> str:
        return await writer.remember(key, value, fact_type)

    remember.__doc__ = _REMEMBER.format(who_sees=_WHO_SEES[scope], is_old=_IS_OLD[overwrite])
    return remember


def check_write_scope(name: str, scope: Any, agent: str) -> None:
    """``ConfigurationError`` for a scope that a tool cannot write to, if it has a user."""
    if scope not in tuple(_WHO_SEES):  # it may be something that a dict cannot look up
        raise ConfigurationError(f"{name} must be 'user', 'agent' or 'global', not {shown(scope)}")
    if scope == "agent" and agent == EVERY_AGENT:
        raise ConfigurationError(f"{name}='agent' needs the name of an agent: agent=…")


def checked_service(needing: str, service: Any) -> MemoryService:
    """An argument as a service."""
    if not isinstance(service, MemoryService):
        kind = type(service).__name__
        raise ConfigurationError(f"{needing} needs a MemoryService, not {kind}: MemoryService(store) makes one")
    return service


def agent_id_of(agent: str) -> str | None:
    """The id in the scope ``agent`` of a tool's agent, if it has one."""
    stored_name("agent", agent)
    return None if agent == EVERY_AGENT else agent


class _Reader(NamedTuple):
    """``recall`` in one mode."""

    service: MemoryService
    facts: FactFlows
    ids: Ids
    memory_type: MemoryType
    limit: int
    min_confidence: float

    async def recall(self, key: Any, query: Any) -> str:
        try:
            return sendable(await self._answer(key, query))
        except Exception as error:  # noqa: BLE001 - no error of a tool ends the run of an agent
            return _failed("recall", "reading", self.service, error)

    async def _answer(self, key: Any, query: Any) -> str:
        if _is_given(key):
            row = await self.facts.get(key, self.ids)
            if row is not None:
                return f"{key} = {_short(value_text(value_of(row)), LONGEST_ANSWER)}"
            found, miss = await self._similar_facts(key), f"No memory found for key: {key}"
            if found or not _is_given(query):
                return _listed(found) if found else miss
        if _is_given(query):
            return _listed(found) if (found := await self._found(query)) else f"No memories found for query: {query}"
        facts = await self.facts.listed(self.ids, self.limit, None)
        return _listed(map(_item, facts)) if facts else "Memory is empty — no facts stored."

    async def _found(self, query: str) -> list[dict[str, Any]]:
        """What is found in the memories of the type. Procedures and then episodes come behind the facts."""
        return await self._similar_facts(query) if self.memory_type in ("facts", "all") else []

    async def _similar_facts(self, query: str) -> list[dict[str, Any]]:
        request = checked_request(query, self.limit, "fuzzy", False)  # noqa: FBT003 - nothing is explained
        hits = await self.facts.search(self.ids, Search(request, None, self.min_confidence, None))
        return [_item(hit.fact) for hit in hits]


class _Writer(NamedTuple):
    """``remember`` in one mode."""

    service: MemoryService
    facts: FactFlows
    ids: Ids
    fact_type: str
    scope: WriteScope
    overwrite: bool

    async def remember(self, key: Any, value: Any, fact_type: Any) -> str:
        if not _is_given(key):
            return "Error: key is required"
        if not _is_given(value):
            return "Error: value is required"
        try:
            _check_size(value)
            written = await self.facts.set(
                key,
                value,
                scope=self.scope,
                ids=self.ids,
                fact_type=fact_type if _is_given(fact_type) else None,
                usual_type=self.fact_type,
                overwrite=self.overwrite,
            )
            stored = _short(value_text(value_of(written.row)), LONGEST_ANSWER)
            return sendable(f"Remembered: {key} = {stored} ({written.outcome})")
        except Exception as error:  # noqa: BLE001 - as above
            return _failed("remember", "writing", self.service, error)


def _reader(
    service: Any, agent: str, user: str | None, memory_type: Any, limit: Any, min_confidence: Any, *, is_blocking: bool
) -> _Reader:
    facts, ids = _flows(service, is_blocking=is_blocking), _ids(agent, user)
    if memory_type not in _MEMORY_TYPES:
        raise ConfigurationError(
            f"memory_type must be 'facts', 'procedures', 'episodes' or 'all', not {shown(memory_type)}"
        )
    lowest = checked_confidence(min_confidence, "min_confidence")
    return _Reader(service, facts, ids, memory_type, at_least(1, "limit", limit), lowest)


def _writer(
    service: Any, agent: str, user: str | None, fact_type: str, scope: Any, *, overwrite: Any, is_blocking: bool
) -> _Writer:
    facts, ids = _flows(service, is_blocking=is_blocking), _ids(agent, user)
    check_write_scope("scope", scope, agent)
    if scope == "user" and user is None:
        raise ConfigurationError("scope='user' needs the user_id of a person: user=…")
    stored_name("fact_type", fact_type)
    return _Writer(service, facts, ids, fact_type, scope, true_or_false("overwrite", overwrite))


def _flows(service: Any, *, is_blocking: bool) -> FactFlows:
    found = checked_service("a tool", service)
    return found._blocking_facts if is_blocking else found._suspending_facts  # noqa: SLF001 - a part of the service


def _ids(agent: str, user: str | None) -> Ids:
    if user is not None:
        stored_name("user", user)
    return {"agent_id": agent_id_of(agent), "user_id": user}


def _is_given(argument: Any) -> bool:
    """Whether a model gave an argument: many give an empty text in place of none."""
    return bool(argument.strip()) if isinstance(argument, str) else argument is not None


def _item(fact: MemoryFact) -> dict[str, Any]:
    text = value_text(fact.value)
    value = fact.value if len(text) <= LONGEST_IN_LIST else _short(text, LONGEST_IN_LIST)
    return {"key": fact.key, "value": value, "confidence": fact.confidence}


def _short(text: str, longest: int) -> str:
    """A text, or its beginning: no answer is longer than a model can read."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def _check_size(value: Any) -> None:
    if isinstance(value, str) and len(value) > LONGEST_ANSWER:
        raise InvalidEntryError("value", f"is {len(value):,} characters long; at most {LONGEST_ANSWER:,} are allowed")


def _listed(items: Iterable[dict[str, Any]]) -> str:
    return json.dumps(list(items), ensure_ascii=False)


def _failed(tool: str, doing: str, memory: object, error: Exception) -> str:
    """What a model is told: of its own mistakes all, of the server nothing."""
    if isinstance(error, InvalidEntryError):
        return sendable(f"Error {doing} memory: {error}")
    if isinstance(error, ConflictError):
        return f"Error {doing} memory: it does not accept this"
    _logger.error("the tool %s could not reach the memory %r", tool, memory, exc_info=error)
    return f"Error {doing} memory: it {'cannot be reached now' if isinstance(error, DatabaseStoreError) else 'failed'}"
