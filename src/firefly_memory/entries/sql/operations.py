"""What a store does in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.operation import REPEAT, REPORT, UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.entries.ordered_records import is_live
from firefly_memory.entries.record import Position, Record, Row
from firefly_memory.entries.scopes import identities_of_namespace
from firefly_memory.entries.sql.statements import EntryStatements
from firefly_memory.errors import ConflictError, EntryOwnershipError
from firefly_memory.facets import Purged
from firefly_memory.identifiers import original_name
from firefly_memory.protocols import ABSENT, SAME_METADATA
from firefly_memory.tombstones.log import Identity
from firefly_memory.tombstones.sql.refusal import refusal_of_several, refuse_erased, unless_erased

_ROWS_PER_QUERY = 1_000
"""The most that a query for namespaces reads."""


def save_unless_saved(session: Session, record: Record, now: datetime) -> None:
    """:func:`save` after a lost answer. If the entry is not as it was saved, it may have been saved and changed by
    others since: saving again would undo that."""
    if not _are_saved(session, [record], now):
        refuse_erased(session, "save", _identities([record]))
        raise UndecidedError


def _are_saved(session: Session, records: Sequence[Record], now: datetime) -> bool:
    """Whether each that is not expired, which nobody would see, is there as it is given."""
    statements = session.statements(EntryStatements)
    values = [statements.values(record) for record in records if is_live(record, now)]
    return all(session.fetch(statements.is_saved, each) for each in values)


def _save(session: Session, record: Record, now: datetime) -> None:
    statements = session.statements(EntryStatements)
    values = statements.values_at(record, now)
    identities = _identities([record])
    if identities:
        upsert = partial(_touches, session, statements.upsert_unless_erased, values)
        is_saved = unless_erased(session, "save", identities, upsert)
    else:
        is_saved = _touches(session, statements.upsert, values)
    if not is_saved:
        raise not_the_owner(record)


def _touches(session: Session, statement: Statement, values: Values, refusal: Values = MappingProxyType({})) -> bool:
    """Run a statement that writes one row; whether it did."""
    with session.writing():
        return session.execute(statement, {**values, **refusal}) == 1


def _identities(records: Sequence[Record]) -> list[Identity]:
    """Those that may be refused."""
    namespaces = dict.fromkeys(record.namespace for record in records)
    return [identity for namespace in namespaces for identity in identities_of_namespace(namespace)]


@operation(name="save", on_lost_reply=REPORT)
def save_group(session: Session, saves: Sequence[tuple[Record, datetime]]) -> list[ConflictError | None]:
    """Save records of different callers, each for itself; the errors of those that are refused. Durable when it
    returns."""
    records, now = [record for record, _ in saves], max(now for _, now in saves)
    identities = _identities(records)
    refusal = refusal_of_several(session, identities) if identities else None
    refused = session.statements(EntryStatements).write_group(session, records, now, refusal)
    errors = {
        record.entry_id: _saved_alone(session, record, now) if identities else not_the_owner(record)
        for record in refused
    }
    return [errors.get(record.entry_id) for record in records]


def _saved_alone(session: Session, record: Record, now: datetime) -> ConflictError | None:
    """Save a record that was not saved with others; why it is refused."""
    try:
        _save(session, record, now)
    except ConflictError as error:
        return error
    return None


_SAVES = Grouping(
    key=lambda record, _: record.entry_id,
    size=lambda record, _: len(record.content),
    several=save_group,
    after_cancellation=operation(name="save", on_lost_reply=save_unless_saved)(_save),  # saving twice is saving once
    after_lost_reply=operation(name="save", on_lost_reply=REPEAT)(save_unless_saved),
)

save = operation(name="save", on_lost_reply=save_unless_saved, grouping=_SAVES)(_save)


@operation(on_lost_reply=REPORT, retryable=False)
def save_if(session: Session, record: Record, expected: Any, now: datetime) -> bool:
    statements = session.statements(EntryStatements)
    values = statements.values_at(record, now)
    statement = statements.insert_if_absent
    if expected is not ABSENT:
        by_metadata = expected is SAME_METADATA
        statement = statements.update_if_same_metadata if by_metadata else statements.update_if_same
        values["expected"] = values["metadata"] if by_metadata else expected
        values |= {"this_id": record.entry_id, "this_namespace": record.namespace}
    identities = _identities([record])
    if not identities:
        return _touches(session, statement, values)
    if expected is ABSENT:
        statement = statements.insert_if_absent_unless_erased  # what is there already needs no tombstone to be deleted
    return unless_erased(session, "save_if", identities, partial(_touches, session, statement, values))


def save_many_unless_saved(session: Session, records: Sequence[Record], now: datetime) -> None:
    """:func:`save_many` after a lost answer."""
    if not _are_saved(session, records, now):
        refuse_erased(session, "save_many", _identities(records))
        raise UndecidedError


@operation(on_lost_reply=save_many_unless_saved)
def save_many(session: Session, records: Sequence[Record], now: datetime) -> None:
    with session.transaction():
        refused = session.statements(EntryStatements).write_all(session, records, now)
        if refused:
            raise not_the_owner(refused[0])
        refuse_erased(session, "save_many", _identities(records))


@reads
def load(session: Session, namespace: str, limit: int | None, after: Position | None, now: datetime) -> Sequence[Row]:
    statements = session.statements(EntryStatements)
    values: dict[str, Any] = {"namespace": namespace, "now": session.dialect.native_instant(now), "limit": limit}
    statement = statements.load if limit is None else statements.first_page
    if after is not None:
        values |= {"created_at": session.dialect.instant(after.created_at), "entry_id": after.entry_id}
        statement = statements.next_page
    return session.fetch(statement, values)


@reads
def load_several(session: Session, namespaces: Sequence[str], now: datetime) -> Sequence[Row]:
    statements = session.statements(EntryStatements)
    values = {"namespaces": session.dialect.texts(namespaces), "now": session.dialect.native_instant(now)}
    return session.fetch(statements.load_several, values)


@reads
def load_by_key(session: Session, namespace: str, key: str, now: datetime) -> Row | None:
    statements = session.statements(EntryStatements)
    rows = session.fetch(
        statements.newest, {"namespace": namespace, "key": key, "now": session.dialect.native_instant(now)}
    )
    return rows[0] if rows else None


def delete_unless_deleted(session: Session, namespace: str, entry_id: str, now: datetime) -> None:
    """:func:`delete` after a lost answer. If the entry is there, others may have saved it since."""
    statements = session.statements(EntryStatements)
    values = {"namespace": namespace, "entry_id": entry_id, "now": session.dialect.native_instant(now)}
    if session.fetch(statements.is_there, values):
        raise UndecidedError


@operation(on_lost_reply=delete_unless_deleted)
def delete(session: Session, namespace: str, entry_id: str, now: datetime) -> None:
    statements = session.statements(EntryStatements)
    values = {"namespace": namespace, "entry_id": entry_id, "now": session.dialect.native_instant(now)}
    with session.writing():
        session.execute(statements.delete, values)


@operation(on_lost_reply=REPORT)
def delete_many(session: Session, namespace: str, entry_ids: Sequence[str], now: datetime) -> int:
    statements = session.statements(EntryStatements)
    values = {
        "namespace": namespace,
        "entry_ids": session.dialect.texts(entry_ids),
        "now": session.dialect.native_instant(now),
    }
    with session.writing():
        return session.execute(statements.delete_many, values)


def clear_unless_cleared(session: Session, namespace: str) -> None:
    """:func:`clear` after a lost answer. What is there, others may have saved since."""
    if session.fetch(session.statements(EntryStatements).is_used, {"namespace": namespace}):
        raise UndecidedError


@operation(on_lost_reply=clear_unless_cleared)
def clear(session: Session, namespace: str) -> None:
    with session.writing():
        session.execute(session.statements(EntryStatements).clear, {"namespace": namespace})


@reads
def count(session: Session, namespace: str, now: datetime) -> int:
    statements = session.statements(EntryStatements)
    rows = session.fetch(statements.count, {"namespace": namespace, "now": session.dialect.native_instant(now)})
    return int(rows[0][0])


@reads
def namespaces(session: Session, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
    """Hops from namespace to namespace by index, in plain queries, which distributed tables answer as well."""
    statements = session.statements(EntryStatements)
    found, rows = list[str](), statements.rows_per_namespace
    values = {"prefix": prefix, "now": session.dialect.native_instant(now)}
    while len(found) < limit:
        names = [row[0] for row in session.fetch(statements.next_namespaces, {**values, "after": after, "rows": rows})]
        fitting = dict.fromkeys(name for name in names if isinstance(name, str) and name.startswith(prefix))
        found += fitting
        if len(names) < rows or names[-1] not in fitting:
            break
        after = found[-1]
        # Small namespaces are read many at a time. Of a large one a few rows are read, however many it has.
        is_worth_it = rows <= statements.rows_per_namespace * len(fitting)
        rows = min(2 * rows, _ROWS_PER_QUERY) if is_worth_it else rows // 2
    return found[:limit]


@operation(on_lost_reply=REPORT)
def cleanup_expired(session: Session, limit: int, now: datetime) -> Purged:
    with session.writing():
        return session.statements(EntryStatements).purge(session, limit, now)


def not_the_owner(record: Record) -> EntryOwnershipError:
    return EntryOwnershipError(original_name(record.entry_id), original_name(record.namespace))
