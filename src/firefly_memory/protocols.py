"""The contract: what a store is, and the rules that every store keeps.

The conformance suite in :mod:`firefly_memory.testing` tests each rule by its number. A backend of your own needs the
five methods of :class:`MemoryStore`; wherever a store is taken, :func:`firefly_memory.adapt` gives it the rest.

The rules
=========

R1, the same value back
    ``load`` gives back an equal value for every JSON value: any unicode, U+0000 and surrogates included, in text and
    in keys; any key; integers of up to 4,300 digits; floats bit for bit; objects in their own key order; ``None``;
    nesting up to 500 levels. Other Python values are normalised in one documented way
    (:mod:`firefly_memory.codec`). What cannot be kept is refused with ``InvalidEntryError``, which names its path,
    before anything is written.
R2, yours
    A value that you saved or got back is yours: changing it afterwards changes nothing in the store.
R3, upsert
    Saving an ``entry_id`` again replaces the entry; it keeps its ``created_at`` and so its place in the order. An
    ``entry_id`` that lives in another namespace is refused with ``EntryOwnershipError`` (a ``ConflictError``) and
    that entry is neither changed nor moved. A store without ``Capability.UNIQUE_IDS`` keeps both entries instead.
R4, order
    ``load`` is oldest first by ``created_at``; ties by ``entry_id``, compared by code point. The default
    ``entry_id`` grows with every entry a process makes.
R5, by key
    ``load_by_key`` returns the newest live entry with that key (the last one in the order of R4), or ``None``.
R6, expiry
    From ``expires_at`` on, an entry is as good as deleted: no call returns or counts it, its ``entry_id`` is free,
    and saving under that id makes a new entry. ``cleanup_expired`` deletes such entries for good, in batches, and
    returns how many; nothing else about a store depends on whether it ran. The reading process's clock decides.
    Instants have a time zone and are compared in UTC.
R7, isolation
    No namespace sees, changes or deletes another's entries. Namespaces and keys are compared character by
    character: no wildcards, no paths, no case folding, no normalisation. Namespaces that begin with
    ``conversation:`` are refused: conversations may be kept there. An id that begins with ``fact:`` is refused for
    every entry but the fact of working memory whose id it is.
R8, atomic
    One call is all or nothing, ``save_many`` included. A crash or a cancelled task leaves the old state or the new.
    A cancelled call is over when its caller gets the ``CancelledError``: it undoes nothing that is done later. Where
    a thread works for it that cannot be stopped, the caller waits for the end of what this has begun.
    A store without ``Capability.ATOMIC_BATCHES`` promises all this for each entry only.
R9, acknowledged is durable
    When a call returns, killing the process or the server does not undo it (stores with ``Capability.DURABLE``).
R10, concurrent
    Threads, tasks and, with ``Capability.SHARED``, processes that write at once lose nothing.
R11, bounded
    No call reads or writes more than it returns, ``FileStore`` excepted, whose unit is the file. Lists are paged by
    position, so that entries that come or go meanwhile neither repeat nor hide others.
R12, clear
    Trouble is one typed error (:mod:`firefly_memory.errors`) that says what to do. Nothing is silently reset,
    dropped, truncated or retried for ever. No password appears in a message, log or ``repr``.

What is built on stores keeps rules of its own, whichever store it is built on:

C1, appending
    The turns of a conversation are numbered 0, 1, 2 … without gaps, in the order in which the store took them,
    however many tasks, threads and processes append. A turn comes back as it was stored.
C2, retries
    ``turn_id`` or ``idempotency_key`` makes a repeated append return the turn that is stored, and is a
    ``TurnConflictError`` if the content differs. ``expected_turns`` refuses, with ``StaleConversationError``, a turn
    whose author had not seen the newest one. Of several that expect the same, one succeeds.
C3, the window
    The history is the newest turns that fit the budget, whole, oldest first; a call and its result are both in it or
    both out. What is counted is what is replayed. A ``Window`` says what was left out, and why.
C4, the summary
    Above the threshold the oldest turns are handed to the summarizer and leave the window, each of them once, by
    whichever writer came first; the earlier summary is handed to it as the first turn. They stay stored. A summarizer
    that fails changes nothing.
C5, elsewhere
    An export is JSON and makes an equal conversation when it is imported; importing it again changes nothing. A fork
    has the turns that it was made of, all of them or none, and what is done to one of the two later does nothing to
    the other. A deleted conversation starts again from nothing. Conversations are listed newest first.
C6, owners
    The owner of a conversation is set when it is made, by ``new_conversation``, by its first turn, or as that of the
    conversation that it is a fork or an import of. It never changes. A call with another ``owner`` is a
    ``ConflictError`` and reads and writes nothing; so is a call with an ``owner`` for a conversation that has none. The
    list of an owner has the owner's conversations and no others. With ``order="updated"`` the conversation with the
    newest turn is first.
C7, erasure
    Everything of a person who is erased is deleted, in every facet, and nothing of others. What is written afterwards
    of this person, of what was erased, or of the person's own scope of facts, is an ``ErasedError`` and is not stored,
    until the person is readmitted. What was interrupted goes on when it is started again.
C8, flushes
    A flush takes the oldest turns out of the window. It is one change: the turns, the summary that replaces them, or
    none, and the mark of the strategy; also where turns are deleted by it. Each of them is flushed once, by whichever
    writer came first. A flush that fails, or whose writer dies, changes nothing. The flushes of a conversation are a
    chain, and ``restore_flush`` gives the window back the turns and the summary from before a flush, and from before
    those that came after it.
W1, facts
    A key of a scope has one fact, the last one set, until it is deleted or its ``ttl`` is over. Keys keep the order
    in which they were first set. Scopes see nothing of each other.
W2, facts of many writers
    One fact is left of many that are set at once. ``increment`` counts every addition, and of several calls of
    ``compare_and_set`` that expect the same, one succeeds.
W3, facts in a prompt
    ``to_context_string`` has one line for each fact, whatever its value is.

Ids, namespaces and keys are any non-empty text of up to 512 characters; anything else is refused at the door with
``InvalidEntryError``.

Two modes
=========

Every operation exists twice: ``store.save(…)`` and ``await store.async_save(…)``. The three names that were
coroutines from the start, ``initialize``, ``close`` and ``cleanup_expired``, are coroutines on every store, and their
blocking forms end in ``_sync``. They have names with ``async_`` as well: ``async_initialize``, ``async_close`` and
``async_cleanup_expired``. Code that must serve both is written once, as a coroutine over a :class:`StoreView`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload, runtime_checkable

from firefly_memory.entries.entry import MemoryEntry

if TYPE_CHECKING:
    from firefly_memory.facets import LogOf

L = TypeVar("L")


class Capability(Enum):
    """A promise that not every kind of store can make. ``store.capabilities`` says which ones a store makes."""

    UNIQUE_IDS = "an entry_id lives in one namespace at a time"
    ATOMIC_BATCHES = "calls that touch several entries are all or nothing"
    LISTING = "namespaces() and cleanup_expired() work; without it they raise NotSupportedError"
    DURABLE = "entries outlive the process"
    SHARED = "several processes may use the same data at once"


class Absence(Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "no value"


ABSENT = Absence.ABSENT
"""For ``save_if`` and ``compare_and_set``: there is to be no value."""


class Sameness(Enum):
    """The type of :data:`SAME_METADATA`."""

    SAME_METADATA = "any value with the metadata of the new one"


SAME_METADATA = Sameness.SAME_METADATA
"""For ``save_if``: there is to be an entry that has the metadata of the new one, whatever its content is."""


@runtime_checkable
class MemoryStore(Protocol):
    """What a backend has to offer: the five methods every store has."""

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        """Save ``entry``, replacing the one with its ``entry_id``."""

    def load(self, namespace: str) -> list[MemoryEntry]:
        """All live entries of ``namespace``, oldest first. An unknown namespace is empty."""

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        """The newest live entry with ``key``, or ``None``."""

    def delete(self, namespace: str, entry_id: str) -> None:
        """Delete one entry. Deleting what is not there changes nothing."""

    def clear(self, namespace: str) -> None:
        """Delete every entry of ``namespace``."""


@runtime_checkable
class AsyncMemoryStore(Protocol):
    """The asynchronous forms. A backend that has these too is awaited; one without them runs in a worker thread."""

    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        """Save ``entry``, replacing the one with its ``entry_id``."""

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        """All live entries of ``namespace``, oldest first. An unknown namespace is empty."""

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        """The newest live entry with ``key``, or ``None``."""

    async def async_delete(self, namespace: str, entry_id: str) -> None:
        """Delete one entry. Deleting what is not there changes nothing."""

    async def async_clear(self, namespace: str) -> None:
        """Delete every entry of ``namespace``."""


class Readable(NamedTuple):
    """What could be read of a namespace."""

    entries: list[MemoryEntry]
    damaged: set[str]
    """The keys of entries that could not be read."""


@dataclass(frozen=True, slots=True)
class Page(Sequence[MemoryEntry]):
    """Some entries of a namespace, and in ``next`` where to go on: ``load_page(…, after=page.next)``."""

    entries: tuple[MemoryEntry, ...]
    """The entries of this page."""
    next: str | None
    """``None`` on the last page."""

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[MemoryEntry]:
        return iter(self.entries)

    @overload
    def __getitem__(self, index: int) -> MemoryEntry: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[MemoryEntry]: ...

    def __getitem__(self, index: int | slice) -> MemoryEntry | Sequence[MemoryEntry]:
        return self.entries[index]


class StoreView(Protocol):
    """Every operation of a store, as coroutines: what code above the stores is written against.

    ``store.suspending`` awaits; the methods of ``store.blocking`` finish without ever suspending, so that
    :func:`firefly_memory.concurrency.sync_bridge.run_without_loop` can run a coroutine made of them.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The promises this store makes beyond those that every store makes."""

    def log(self, of: LogOf[L]) -> L:
        """The operations of a facet, as ``view.log(CONVERSATION_LOG)``; ``NotSupportedError`` if the store lacks it."""

    async def initialize(self, *, migrate: bool | None = None) -> None:
        """Connect, and bring the schema up to date. Idempotent, and done on first use when skipped.

        With ``migrate=False`` the schema is only checked: ``SchemaMismatchError`` names the command to run.
        ``None`` means what the store was opened with (``True`` unless said otherwise).
        """

    async def close(self) -> None:
        """Give back what the store opened. Every later call raises ``StoreClosedError``; closing twice is fine."""

    async def save(self, namespace: str, entry: MemoryEntry) -> None:
        """Save ``entry``, replacing the one with its ``entry_id``."""

    async def save_if(self, namespace: str, entry: MemoryEntry, expected: Any) -> bool:
        """Save ``entry`` if the live entry with its ``entry_id`` has the content ``expected``; return whether it had.

        ``expected=ABSENT`` stands for no such entry, and ``SAME_METADATA`` for one with the metadata of ``entry``.
        Values are the same if they are stored the same, down to the order of keys; whether ``1`` and ``1.0`` are is up
        to the backend.
        """

    async def save_many(self, namespace: str, entries: Iterable[MemoryEntry]) -> None:
        """Save all ``entries`` or none. Of two with the same ``entry_id``, the later one wins."""

    async def load(self, namespace: str) -> list[MemoryEntry]:
        """All live entries of ``namespace``, oldest first. An unknown namespace is empty."""

    async def load_readable(self, namespaces: Sequence[str]) -> dict[str, Readable]:
        """All live entries of several namespaces, each oldest first, but for damaged ones: the log says which.

        It is one query where the store has queries.
        """

    async def load_page(self, namespace: str, limit: int = 100, after: str | None = None) -> Page:
        """Up to ``limit`` live entries, oldest first, from the start or from ``after``, an earlier page's ``next``."""

    async def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        """The newest live entry with ``key``, or ``None``."""

    async def delete(self, namespace: str, entry_id: str) -> None:
        """Delete one entry. Deleting what is not there changes nothing."""

    async def delete_many(self, namespace: str, entry_ids: Iterable[str]) -> int:
        """Delete all these entries or none, and return how many of them were there."""

    async def clear(self, namespace: str) -> None:
        """Delete every entry of ``namespace``."""

    async def count(self, namespace: str) -> int:
        """How many live entries ``namespace`` has."""

    async def namespaces(self, prefix: str = "", limit: int = 100, after: str | None = None) -> list[str]:
        """Up to ``limit`` namespaces with live entries that start with ``prefix``, in order, those after ``after``."""

    async def cleanup_expired(self) -> int:
        """Delete expired entries of all namespaces, in batches, and return how many they were."""
