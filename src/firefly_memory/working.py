"""``WorkingMemory``: facts by key, in a scope."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from firefly_memory import clock
from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.entries.entry import MemoryEntry, MemoryScope
from firefly_memory.entries.fact_ids import fact_id
from firefly_memory.entries.scopes import NAMESPACE, checked_scope, scope_of
from firefly_memory.errors import ConfigurationError, ConflictError, InvalidEntryError
from firefly_memory.identifiers import stored_text
from firefly_memory.likely_names import answers_guesses
from firefly_memory.messages.quoted_text import facts_text
from firefly_memory.protocols import ABSENT, MemoryStore, StoreView
from firefly_memory.reprs import even_half_built, shown
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.validation import checked_number

_ATTEMPTS = 1000  # each that fails is another writer's success


class WorkingMemory:
    """Facts of the scope ``scope_id``, or of a conversation, in ``store`` or, without one, in memory.

    Keys are in the order they were first set. Each has one live entry, whoever sets it at the same time, in the
    namespace ``working:<scope_id>``, which belongs to the working memory: it is not for ``store.save``. The facts of a
    conversation are in a scope that no ``scope_id`` names, and are deleted with the conversation.
    """

    @answers_guesses
    def __init__(
        self, *, scope_id: str = "default", store: MemoryStore | None = None, conversation_id: str | None = None
    ) -> None:
        if conversation_id is not None and scope_id != "default":
            raise ConfigurationError("a working memory has a scope_id or a conversation_id, not both")
        self.scope_id: str = checked_scope(scope_id) if conversation_id is None else scope_of(conversation_id)
        self.namespace: str = f"{NAMESPACE}{self.scope_id}"
        self.store: EntryStore = InMemoryStore() if store is None else adapt(store)
        self._blocking = _Flows(self.store.blocking, self.namespace)
        self._suspending = _Flows(self.store.suspending, self.namespace)

    @even_half_built
    def __repr__(self) -> str:
        return f"WorkingMemory(scope_id={self.scope_id!r}, store={self.store!r})"

    @property
    def writes(self) -> int:
        """How often facts were set or deleted through this object; not what others did."""
        return self._blocking.writes + self._suspending.writes

    def set(self, key: str, value: Any, *, importance: float = 0.5, ttl: float | timedelta | None = None) -> None:
        """Remember ``value``, in place of what ``key`` had before; for ``ttl`` seconds, or until it is deleted."""
        run_without_loop(self._blocking.set(key, value, importance, ttl))

    async def async_set(
        self, key: str, value: Any, *, importance: float = 0.5, ttl: float | timedelta | None = None
    ) -> None:
        """Remember ``value``, in place of what ``key`` had before; for ``ttl`` seconds, or until it is deleted."""
        await self._suspending.set(key, value, importance, ttl)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default`` if there is none."""
        return run_without_loop(self._blocking.get(key, default))

    async def async_get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default`` if there is none."""
        return await self._suspending.get(key, default)

    def has(self, key: str) -> bool:
        """Whether ``key`` has a value, even ``None``."""
        return run_without_loop(self._blocking.get(key, ABSENT)) is not ABSENT

    async def async_has(self, key: str) -> bool:
        """Whether ``key`` has a value, even ``None``."""
        return await self._suspending.get(key, ABSENT) is not ABSENT

    def delete(self, key: str) -> None:
        """Forget ``key``. Forgetting what is not there changes nothing."""
        run_without_loop(self._blocking.delete(key))

    async def async_delete(self, key: str) -> None:
        """Forget ``key``. Forgetting what is not there changes nothing."""
        await self._suspending.delete(key)

    def keys(self) -> list[str]:
        """The keys, in the order they were first set."""
        return list(run_without_loop(self._blocking.to_dict()))

    async def async_keys(self) -> list[str]:
        """The keys, in the order they were first set."""
        return list(await self._suspending.to_dict())

    def items(self) -> list[tuple[str, Any]]:
        """Keys and values, in the same order."""
        return list(run_without_loop(self._blocking.to_dict()).items())

    async def async_items(self) -> list[tuple[str, Any]]:
        """Keys and values, in the same order."""
        return list((await self._suspending.to_dict()).items())

    def to_dict(self) -> dict[str, Any]:
        """Keys and values as a dict, in the same order."""
        return run_without_loop(self._blocking.to_dict())

    async def async_to_dict(self) -> dict[str, Any]:
        """Keys and values as a dict, in the same order."""
        return await self._suspending.to_dict()

    def to_context_string(self) -> str:
        """All facts as a text for a prompt, a line for each; the empty text if there are none.

        Values that are no text are written as JSON; further lines of a key or value are indented, so that none of them
        looks like a fact.
        """
        return facts_text(run_without_loop(self._blocking.to_dict()))

    async def async_to_context_string(self) -> str:
        """All facts as a text for a prompt, a line for each; the empty text if there are none.

        Values that are no text are written as JSON; further lines of a key or value are indented, so that none of them
        looks like a fact.
        """
        return facts_text(await self._suspending.to_dict())

    def increment(self, key: str, by: float = 1) -> int | float:
        """Add ``by`` to the number that ``key`` has, or to 0, and return the sum; nobody's addition is lost.

        Importance and expiry stay. ``InvalidEntryError`` if the value is no number.
        """
        return run_without_loop(self._blocking.increment(key, by))

    async def async_increment(self, key: str, by: float = 1) -> int | float:
        """Add ``by`` to the number that ``key`` has, or to 0, and return the sum; nobody's addition is lost.

        Importance and expiry stay. ``InvalidEntryError`` if the value is no number.
        """
        return await self._suspending.increment(key, by)

    def compare_and_set(
        self, key: str, expected: Any, value: Any, *, importance: float = 0.5, ttl: float | timedelta | None = None
    ) -> bool:
        """Set ``key`` if it still has the value ``expected``, and return whether it had.

        ``expected=ABSENT`` stands for no value. What counts is the value as it is stored, down to the order of keys.
        """
        return run_without_loop(self._blocking.compare_and_set(key, expected, value, importance, ttl))

    async def async_compare_and_set(
        self, key: str, expected: Any, value: Any, *, importance: float = 0.5, ttl: float | timedelta | None = None
    ) -> bool:
        """Set ``key`` if it still has the value ``expected``, and return whether it had.

        ``expected=ABSENT`` stands for no value. What counts is the value as it is stored, down to the order of keys.
        """
        return await self._suspending.compare_and_set(key, expected, value, importance, ttl)

    def clear(self) -> None:
        """Forget everything in this scope."""
        run_without_loop(self._blocking.clear())

    async def async_clear(self) -> None:
        """Forget everything in this scope."""
        await self._suspending.clear()

    def clear_with_conversations(self) -> None:
        """Forget everything in this scope, and every conversation of the store, in one call to it."""
        run_without_loop(self._blocking.clear_with_conversations())

    async def async_clear_with_conversations(self) -> None:
        """Forget everything in this scope, and every conversation of the store, in one call to it."""
        await self._suspending.clear_with_conversations()


def fact_entry(
    namespace: str,
    key: str,
    value: Any,
    importance: float = 0.5,
    expires_at: datetime | None = None,
    metadata: dict[str, Any] | None = None,
) -> MemoryEntry:
    """The entry of a fact in the namespace of its scope."""
    entry_id = fact_id(namespace, key)  # says what is wrong with a key
    try:
        return MemoryEntry(
            entry_id=entry_id,
            scope=MemoryScope.WORKING,
            key=key,
            content=value,
            metadata=metadata or {},
            created_at=_later(),
            expires_at=expires_at,
            importance=importance,
        )
    except ValidationError as exc:
        raise InvalidEntryError("importance", f"must be a number from 0.0 to 1.0, not {shown(importance)}") from exc


class _Flows:
    """What working memory does, once for both modes."""

    def __init__(self, view: StoreView, namespace: str) -> None:
        self._view = view
        self._namespace = namespace
        self.writes = 0

    async def set(self, key: str, value: Any, importance: float, ttl: float | timedelta | None) -> None:
        self.writes += 1
        await self._view.save(self._namespace, self._entry(key, value, importance, _expiry(ttl)))

    async def get(self, key: str, default: Any) -> Any:
        entry = await self._view.load_by_key(self._namespace, key)
        return default if entry is None else entry.content

    async def delete(self, key: str) -> None:
        self.writes += 1
        await self._view.delete(self._namespace, self._entry_id(key))

    async def to_dict(self) -> dict[str, Any]:
        return {entry.key: entry.content for entry in await self._view.load(self._namespace) if entry.key is not None}

    async def clear(self) -> None:
        self.writes += 1
        await self._view.clear(self._namespace)

    async def clear_with_conversations(self) -> None:
        self.writes += 1
        await self._view.log(CONVERSATION_LOG).delete_all(stored_text(self._namespace))

    async def compare_and_set(
        self, key: str, expected: Any, value: Any, importance: float, ttl: float | timedelta | None
    ) -> bool:
        entry = self._entry(key, value, importance, _expiry(ttl))
        self.writes += 1
        return await self._view.save_if(self._namespace, entry, expected)

    async def increment(self, key: str, by: float) -> int | float:
        checked_number("by", by)
        self.writes += 1
        for _ in range(_ATTEMPTS):
            entry = await self._view.load_by_key(self._namespace, key)
            if entry is None:
                total, there = by, self._entry(key, by, 0.5, None)
                expected: Any = ABSENT
            else:
                try:
                    total = checked_number(f"the value of {key!r}", entry.content) + by
                except OverflowError as exc:
                    raise InvalidEntryError("by", f"cannot be added to so large a number ({exc})") from exc
                expected, there = entry.content, self._entry(key, total, entry.importance, entry.expires_at)
            if await self._view.save_if(self._namespace, there, expected):
                return total
        raise ConflictError(f"{key!r} was changed by others {_ATTEMPTS} times while it was to be incremented")

    def _entry(self, key: str, value: Any, importance: float, expires_at: datetime | None) -> MemoryEntry:
        return fact_entry(self._namespace, key, value, importance, expires_at)

    def _entry_id(self, key: str) -> str:
        return fact_id(self._namespace, key)


class _Later(ForkAware):
    """Instants that grow with every call of this process, for the order in which keys were set: a clock may stand still
    for the length of two calls, or jump back."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        self._last = datetime.min.replace(tzinfo=UTC)
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        now = clock.now()
        with self._lock:
            if now <= self._last:
                now = self._last + timedelta(microseconds=1)
            self._last = now
        return now


_later = _Later()


def _expiry(ttl: float | timedelta | None) -> datetime | None:
    if ttl is None:
        return None
    if not isinstance(ttl, timedelta):
        if isinstance(ttl, bool) or not isinstance(ttl, (int, float)):
            raise InvalidEntryError("ttl", f"must be seconds or a timedelta, not {shown(ttl)}")
        try:
            ttl = timedelta(seconds=ttl)
        except (OverflowError, ValueError) as exc:
            raise InvalidEntryError("ttl", f"cannot be {shown(ttl)} seconds") from exc
    if ttl <= timedelta(0):
        raise InvalidEntryError("ttl", f"must be longer than nothing, not {ttl}")
    try:
        return clock.now() + ttl
    except OverflowError as exc:
        raise InvalidEntryError("ttl", f"{ttl} from now is after the year 9999") from exc
