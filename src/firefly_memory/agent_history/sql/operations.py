"""The operations of agent history in SQL. Each is one plain function over a blocking or asynchronous session.

Whoever changes which entries a record holds updates the rows of these entries. So a fork and a deletion that meet at an
entry wait for each other: the second one sees what the first one left, or gets an error that says that they collided.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from firefly_memory.agent_history.log import (
    Ascent,
    HistoryEntry,
    HistoryRecord,
    holders_gained,
    identities_of,
    released,
)
from firefly_memory.agent_history.sql.statements import HistoryStatements
from firefly_memory.databases.sql.errors import is_duplicate
from firefly_memory.databases.sql.operation import UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.tombstones.sql.refusal import unless_erased

_EVERYTHING = 2**31 - 1
_STEPS = 5_000  # entries that one statement goes up: so each ends, whatever is in the rows


class _HeadIsGoneError(Exception):
    """Rolls the transaction back."""


@reads
def read_record(session: Session, conversation_id: str) -> HistoryRecord | None:
    statements = session.statements(HistoryStatements)
    rows = session.fetch(statements.record, {"this_id": conversation_id})
    return statements.record_of(rows[0]) if rows else None


@reads
def read_records(session: Session, scope: str | None, limit: int | None) -> list[HistoryRecord]:
    statements = session.statements(HistoryStatements)
    values = {"scope": scope, "limit": _EVERYTHING if limit is None else min(limit, _EVERYTHING)}
    rows = session.fetch(statements.newest if scope is None else statements.newest_of_scope, values)
    return [statements.record_of(row) for row in rows]


@reads
def read_page(session: Session, limit: int, after: str) -> list[HistoryRecord]:
    statements = session.statements(HistoryStatements)
    return [statements.record_of(row) for row in session.fetch(statements.page, {"limit": limit, "after": after})]


@reads
def read_history(session: Session, head_id: str, limit: int | None) -> list[HistoryEntry]:
    statements, ascent = session.statements(HistoryStatements), Ascent(head_id, limit)
    while (above := ascent.next) is not None:
        values = {"head_id": above, "limit": _STEPS if ascent.left is None else min(ascent.left, _STEPS)}
        rows = session.fetch(statements.history, values)
        ascent.go_on({row[0]: row for row in rows}, statements.entry_of)
        if ascent.next == above:
            break  # it is missing
    return ascent.entries


@reads
def read_entries(session: Session, entry_ids: Sequence[str]) -> list[HistoryEntry]:
    statements, values = session.statements(HistoryStatements), {"entry_ids": session.dialect.texts(entry_ids)}
    return [statements.entry_of(row) for row in session.fetch(statements.these, values)]


@reads
def read_shared(session: Session, entry_ids: Sequence[str]) -> list[str]:
    values = {"entry_ids": session.dialect.texts(entry_ids)}
    return [row[0] for row in session.fetch(session.statements(HistoryStatements).shared, values)]


def write_unless_written(
    session: Session, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None
) -> bool:
    """:func:`write_record` after a lost answer. It writes first and reads then: the first attempt may still be under
    way when the second one begins, which is then refused."""
    if write_record(session, record, entries, expected):
        return True
    there = read_record(session, record.conversation_id)
    if there is not None and there.revision == record.revision:
        return True
    if entries and not read_entries(session, [entry.entry_id for entry in entries]):
        return False
    raise UndecidedError  # it may have been written, and written by others since


@operation(on_lost_reply=write_unless_written, retryable=False)
def write_record(
    session: Session, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None
) -> bool:
    identities = identities_of(record)
    return unless_erased(session, "write_record", identities, partial(_write, session, record, entries, expected))


def _write(
    session: Session, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None, refusal: Values
) -> bool:
    try:
        with session.transaction():
            return _written(session, record, entries, expected, refusal)
    except _HeadIsGoneError:
        return False
    except Exception as exc:
        if not is_duplicate(exc):
            raise
        return False  # an entry that is there is never replaced


def _written(
    session: Session, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None, refusal: Values
) -> bool:
    statements = session.statements(HistoryStatements)
    values = {**statements.values(record), "this_id": record.conversation_id, **refusal}
    before: frozenset[str] = frozenset()
    if expected is None:
        if session.execute(statements.create, values) == 0:
            return False
    else:
        rows = session.fetch(statements.locked, {**values, "expected": expected})
        if not rows:
            return False
        before = statements.record_of(rows[0]).ends
        if session.execute(statements.replace, values) == 0:
            return False
    gained = holders_gained(before, record.ends, entries)
    if entries:
        rows_of_entries = [{**entry._asdict(), "holders": gained.pop(entry.entry_id, 0)} for entry in entries]
        session.execute_many(statements.add, rows_of_entries)
    for entry_id, more in sorted(gained.items()):
        change = {"this_id": entry_id, "gained": more}
        if more and session.execute(statements.hold, change) == 0 and entry_id == record.head_id:
            raise _HeadIsGoneError
    return True


def delete_unless_deleted(session: Session, conversation_id: str, expected: str) -> bool:
    """:func:`delete_record` after a lost answer."""
    if delete_record(session, conversation_id, expected) or read_record(session, conversation_id) is None:
        return True
    raise UndecidedError  # it was deleted and made again, or changed before it could be deleted


@operation(on_lost_reply=delete_unless_deleted, retryable=False)
def delete_record(session: Session, conversation_id: str, expected: str) -> bool:
    try:
        with session.transaction():
            _delete(session, conversation_id, expected)
    except _HeadIsGoneError:  # nothing is committed then, so that a lost answer leaves no doubt
        return False
    return True


def _delete(session: Session, conversation_id: str, expected: str) -> None:
    statements = session.statements(HistoryStatements)
    rows = session.fetch(statements.locked, {"this_id": conversation_id, "expected": expected})
    if not rows:
        raise _HeadIsGoneError
    session.execute(statements.delete, {"this_id": conversation_id})
    for entry_id in sorted(statements.record_of(rows[0]).ends):
        session.execute(statements.hold, {"this_id": entry_id, "gained": -1})
    while _release(session):
        pass


def _release(session: Session) -> bool:
    """Delete entries without holders; whether there were any."""
    statements = session.statements(HistoryStatements)
    rows = session.fetch(statements.released, {"steps": _STEPS})
    gone, lost = released({entry_id: (parent_id, holders) for entry_id, parent_id, holders in rows})
    if gone:
        session.execute(statements.remove, {"entry_ids": session.dialect.texts(gone)})
    for entry_id, holders in lost.items():
        session.execute(statements.hold, {"this_id": entry_id, "gained": -holders})
    return bool(gone)
