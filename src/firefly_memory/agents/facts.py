"""The facts of one run: the instructions with the facts, and the facts that the model may write."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_ai import ModelRetry

from firefly_memory.agents.fact_texts import fact_text, fitting
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.scopes import BY_A_MODEL
from firefly_memory.errors import ConflictError, CorruptDataError
from firefly_memory.identifiers import stored_name
from firefly_memory.messages.quoted_text import FACTS, fenced
from firefly_memory.messages.storage import sendable
from firefly_memory.protocols import ABSENT, SAME_METADATA, Readable
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import at_least
from firefly_memory.working import WorkingMemory, fact_entry

logger = logging.getLogger("firefly_memory")

_ATTEMPTS = 10  # an attempt fails only when another writer succeeds


@dataclass(frozen=True)
class Limits:
    """How much a model may write, and how many tokens of facts the instructions may have."""

    max_fact_tokens: int = 2000
    max_facts: int = 100
    max_key_length: int = 200
    max_value_length: int = 2000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            at_least(1, name, value)


class _FactText(NamedTuple):
    """A fact, and its text in the instructions."""

    entry: MemoryEntry
    text: str

    @property
    def rank(self) -> tuple[bool, float]:
        """Facts of the application come first, so that no model crowds them out; then the most important ones."""
        return self.entry.metadata == BY_A_MODEL, -self.entry.importance


class RunFacts:
    """The facts of the manager, ``shared``, and then those of the scope that the model writes to, ``own``; the two may
    be one. A key of the manager's hides the same key of the other scope."""

    def __init__(
        self, shared: WorkingMemory, own: WorkingMemory, limits: Limits, *, overwrite: bool, is_fenced: bool
    ) -> None:
        self._shared = shared
        self._own = own
        self._view = shared.store.suspending
        self._limits = limits
        self._overwrite = overwrite
        self._is_fenced = is_fenced
        self._written = 0
        self._one_at_a_time = asyncio.Lock()  # the calls of one response run at once

    @property
    def writes(self) -> int:
        """The number of facts that this run and the manager have written."""
        return self._written + self._shared.writes

    async def instructions(self, estimator: TokenEstimator) -> str:
        """The facts as text, the manager's first, and no more of them than ``max_fact_tokens`` allows."""
        facts = [fact for entry in await self._load() if (fact := self._fact_text(entry)) is not None]
        if not facts:
            return ""
        ranked = sorted(facts, key=lambda fact: fact.rank)
        positions = fitting((fact.text for fact in ranked), self._limits.max_fact_tokens, estimator)
        chosen = {ranked[position].entry.key for position in positions}
        return self._text([fact for fact in facts if fact.entry.key in chosen], len(facts) - len(chosen))

    async def remember(self, key: str, value: str) -> str:
        """Write a fact for the model; return the answer of the tool. ``ModelRetry`` says what the model can correct."""
        stored_name("key", key)
        limits = self._limits
        for what, text, longest in (("key", key, limits.max_key_length), ("value", value, limits.max_value_length)):
            if len(text) > longest:
                raise ModelRetry(f"the {what} has {len(text)} characters, and may have {longest}: make it shorter")
        async with self._one_at_a_time:
            refusal = await self._write(key, value)
            self._written += refusal is None
        return refusal or "remembered"

    async def recall(self, key: str) -> Any:
        """The value of a fact, in a form that can be sent to a model."""
        entry = None
        for namespace in self._namespaces:
            entry = entry or await self._view.load_by_key(namespace, key)
        return None if entry is None else _sendable(entry.content)

    @property
    def _namespaces(self) -> list[str]:
        return list(dict.fromkeys((self._shared.namespace, self._own.namespace)))

    async def _write(self, key: str, value: str) -> str | None:
        """Write the fact; return the reason if it is refused."""
        shared, own = self._shared.namespace, self._own.namespace
        if shared != own and await self._view.load_by_key(shared, key) is not None:
            return _refusal_of(key)
        entry = fact_entry(own, key, value, metadata=dict(BY_A_MODEL))
        for _ in range(_ATTEMPTS):
            # The write itself checks who wrote the stored fact: others may write at the same time.
            if await self._view.save_if(own, entry, SAME_METADATA):
                return None
            there = await self._view.load_by_key(own, key)
            if there is not None and self._overwrite:
                await self._view.save(own, entry)
                return None
            if there is not None and there.metadata != BY_A_MODEL:
                return _refusal_of(key)
            if there is None and await self._view.count(own) >= self._limits.max_facts:
                most = self._limits.max_facts
                return f"not remembered: there are {most} facts, and no more are kept; use a key that is there already"
            if there is None and await self._view.save_if(own, entry, ABSENT):
                return None
        raise ConflictError(f"{key!r} was changed by others {_ATTEMPTS} times while it was to be remembered")

    async def _load(self) -> list[MemoryEntry]:
        """The readable facts, each key once. A damaged fact hides the same key of the other scope, too."""
        try:
            found = await self._view.load_readable(self._namespaces)
        except CorruptDataError:
            found = await self._load_those_before_damage()
        facts: list[MemoryEntry] = []
        hidden: set[str | None] = {None}
        for readable in found.values():
            of_scope = {entry.key: entry for entry in readable.entries}
            facts += [entry for key, entry in of_scope.items() if key not in hidden]
            hidden |= of_scope.keys() | readable.damaged
        return facts

    async def _load_those_before_damage(self) -> dict[str, Readable]:
        """The facts of the scopes before the first unreadable scope, which may hide keys of all later scopes."""
        found: dict[str, Readable] = {}
        try:
            for namespace in self._namespaces:
                found |= await self._view.load_readable([namespace])
        except CorruptDataError as exc:
            logger.warning("a run goes on without facts that cannot be read, and those that they may hide: %s", exc)
        return found

    def _fact_text(self, entry: MemoryEntry) -> _FactText | None:
        """The fact with its text; ``None`` for a value that cannot be written as text."""
        text = fact_text(str(entry.key), entry.content, is_fenced=self._is_fenced)
        return None if text is None else _FactText(entry, text)

    def _text(self, facts: Sequence[_FactText], left_out: int) -> str:
        if self._is_fenced:
            lines = [fenced({str(fact.entry.key): fact.entry.content for fact in facts})]
        else:
            lines = [fact.text for fact in facts]
        said = [f"(not shown: {left_out} {'fact' if left_out == 1 else 'facts'}; limit reached)"] if left_out else []
        return "\n".join([FACTS, *lines, *said])


def _refusal_of(key: str) -> str:
    return f"not remembered: {key!r} is a fact of the application; remember this under another key"


def _sendable(content: Any) -> Any:
    if isinstance(content, str):
        return sendable(content)
    try:
        text = json.dumps(content, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return "a value that cannot be written as text"
    return content if sendable(text) == text else sendable(text)
