"""``SQLConversationStore`` and ``MongoConversationStore``: pydantic-ai's ``ConversationStore`` on the stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter
from pydantic_ai.usage import RunUsage

from firefly_memory.agent_history.log import (
    AGENT_HISTORY_LOG,
    HistoryEntry,
    HistoryLog,
    HistoryRecord,
    in_a_circle,
    in_line,
)
from firefly_memory.agents import deferred_requests
from firefly_memory.agents.versions import NEEDED_FOR_CONVERSATION_STORES, wrong_version
from firefly_memory.errors import ConfigurationError, CorruptDataError, DatabaseStoreError, InvalidEntryError
from firefly_memory.facets import log_if_there
from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_or_none, stored_text
from firefly_memory.messages.pydantic_ai import from_json, to_json
from firefly_memory.messages.pydantic_ai_values import UnwritableError
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.kinds import MONGODB, SQL, is_of_kind

try:
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
except ImportError as exc:
    raise wrong_version("firefly_memory.agents.conversation_stores", NEEDED_FOR_CONVERSATION_STORES) from exc

if TYPE_CHECKING:
    from firefly_memory.stores.mongodb import MongoDBStore
    from firefly_memory.stores.sql import SQLStore

T = TypeVar("T")

_USAGE = TypeAdapter(RunUsage)

_DEFERRED = "deferred_tool_requests"
_FORMAT = 1


class _StoredConversations(ConversationStore):
    """The common part of both stores: it turns values into rows or documents, and back."""

    _kind: tuple[str, str]
    _works: str

    def __init__(self, store: EntryStore) -> None:
        self._log = self._log_of(store)
        self.store = store

    def _log_of(self, store: EntryStore) -> HistoryLog:
        is_one = is_of_kind(store, self._kind)
        log = log_if_there(store.suspending, AGENT_HISTORY_LOG) if is_one else None
        if log is None:
            raise ConfigurationError(
                f"{type(self).__name__} needs {self._works}, not {type(store).__name__}: conversations of pydantic-ai "
                "are kept in SQLiteStore and PostgreSQLStore (SQLConversationStore) and in MongoDBStore "
                "(MongoConversationStore)"
            )
        return log

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record for a conversation, or ``None``."""
        record = await self._log.record(stored_text(conversation_id))
        return None if record is None else _record(record)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """The records of a scope, or all, the newest first, up to ``limit``."""
        if limit is not None and limit <= 0:
            return []
        found = await self._log.records(None if scope is None else stored_text(scope), limit)
        return [_record(record) for record in found]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store the record and its new entries in one transaction, or raise ``ConversationConflict``."""
        entries = [_stored_entry(entry) for entry in new_entries]
        circle = in_a_circle(entries)
        if circle is not None:
            raise InvalidEntryError("new_entries", f"entry {original_name(circle)!r} comes before itself")
        expected = None if expected_revision is None else stored_text(expected_revision)
        if not await self._log.write(_stored_record(record), entries, expected):
            raise ConversationConflict(record.conversation_id)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete the record, and the entries that no other record's head or branches reach."""
        if not await self._log.delete(stored_text(conversation_id), stored_text(expected_revision)):
            raise ConversationConflict(conversation_id)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry, or ``KeyError``."""
        (entry,) = await self.read_history(entry_id, limit=1)
        return entry

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to ``head_id``, in order, or the last ``limit`` of them, which is also all that is read."""
        if head_id is None or (limit is not None and limit <= 0):
            return []
        head_id = stored_text(head_id)
        return _entries(in_line(await self._log.history(head_id, limit), head_id, limit))


class SQLConversationStore(_StoredConversations):
    """The conversations of pydantic-ai in a :class:`SQLiteStore` or :class:`PostgreSQLStore`.

    They are in two tables beside the store's own, on its pool, and are there once it is initialized; the store is the
    caller's to open and close. A record and its new entries are written in one transaction. ``delete`` also deletes the
    entries that no other conversation reaches, whatever is forked meanwhile, and costs what it deletes.
    """

    store: SQLStore
    _kind = SQL
    _works = "a SQLiteStore or PostgreSQLStore"


class MongoConversationStore(_StoredConversations):
    """The conversations of pydantic-ai in a :class:`MongoDBStore`, of a URL, an ``AsyncMongoClient`` or a Motor client.

    They are in two collections beside the store's own; the store is the caller's to open and close. On a replica set or
    sharded cluster everything is as in :class:`SQLConversationStore`, but that ``delete`` is several transactions: the
    conversation goes with the first one. If it breaks off, entries may be left that no conversation reaches; the next
    ``delete`` of any conversation, and ``cleanup_expired()`` of the store, go on with them. A standalone server has no
    transactions: what is loaded is always whole there too, but ``delete`` keeps the entries, and a write that lost to
    another one, or broke off, may leave entries that nobody sees.
    """

    store: MongoDBStore
    _kind = MONGODB
    _works = "a MongoDBStore"


def _stored_record(record: ConversationRecord) -> HistoryRecord:
    if record.updated_at.tzinfo is None:
        raise InvalidEntryError("updated_at", "has no time zone")
    deferred = record.deferred_tool_requests
    return HistoryRecord(
        conversation_id=stored_name("conversation_id", record.conversation_id),
        revision=stored_text(record.revision),
        head_id=stored_or_none(record.head_id),
        scope=stored_name("scope", record.scope) if record.scope else record.scope,
        forked_from=stored_or_none(record.forked_from),
        forked_at=stored_or_none(record.forked_at),
        branches=[stored_text(entry_id) for entry_id in record.branches],
        usage=_written("usage", _usage_to_json, record.usage),
        deferred_tool_requests=None if deferred is None else _written(_DEFERRED, deferred_requests.to_json, deferred),
        updated_at=record.updated_at.astimezone(UTC),
        format_version=record.format_version,
    )


def _record(stored: HistoryRecord) -> ConversationRecord:
    where = f"conversation {original_name(stored.conversation_id)!r}"
    if stored.format_version != _FORMAT:
        newer = f"{where} is in format {stored.format_version}, of a newer version; this one reads format {_FORMAT}"
        raise DatabaseStoreError("read_record", newer)
    deferred = stored.deferred_tool_requests
    return ConversationRecord(
        conversation_id=original_name(stored.conversation_id),
        head_id=original_or_none(stored.head_id),
        usage=_readable(where, _USAGE.validate_json, stored.usage),
        deferred_tool_requests=None if deferred is None else _readable(where, deferred_requests.from_json, deferred),
        scope=original_or_none(stored.scope),
        forked_from=original_or_none(stored.forked_from),
        forked_at=original_or_none(stored.forked_at),
        branches=[original_name(entry_id) for entry_id in stored.branches],
        revision=original_name(stored.revision),
        updated_at=stored.updated_at,
    )


def _stored_entry(entry: ConversationEntry) -> HistoryEntry:
    message = _written("message", to_json, [entry.message])[1:-1]  # without the list around it
    return HistoryEntry(stored_name("entry.id", entry.id), stored_or_none(entry.parent_id), entry.kind, message)


def _entries(line: Sequence[HistoryEntry]) -> list[ConversationEntry]:
    where = f"the history of entry {original_name(line[-1].entry_id)!r}"
    # All at once: half the time of one after the other.
    messages = _readable(where, from_json, f"[{','.join(entry.message for entry in line)}]")
    return [
        ConversationEntry(
            id=original_name(entry.entry_id), parent_id=original_or_none(entry.parent_id), message=message
        )
        for entry, message in zip(line, messages, strict=True)
    ]


def _usage_to_json(usage: RunUsage) -> str:
    return _USAGE.dump_json(usage).decode()


def _written(what: str, write: Callable[[T], str], value: T) -> str:
    try:
        return write(value)
    except UnwritableError as exc:
        raise InvalidEntryError(f"{what}{exc.path}", exc.problem) from exc
    except ValueError as exc:  # what pydantic raises for values that JSON does not have, and for lone surrogates
        raise InvalidEntryError(what, f"pydantic-ai cannot write it as JSON ({exc})") from exc


def _readable(where: str, read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except (LookupError, TypeError, ValueError) as exc:
        raise CorruptDataError("read", where, str(exc)) from exc
