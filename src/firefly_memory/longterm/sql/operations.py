"""What is done with facts in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.operation import REPEAT, REPORT, UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import (
    FACTS,
    FactPosition,
    FactRow,
    FactWrite,
    Filters,
    PersonMovedError,
    VersionRow,
    Written,
    identities_of,
)
from firefly_memory.longterm.sql.deleting import delete_with_all
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.longterm.sql.people_statements import PeopleStatements
from firefly_memory.longterm.sql.pruning import last_written_by
from firefly_memory.longterm.sql.statements import FactStatements, parameters_of
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.index import write_vectors
from firefly_memory.search.sql.languages import agree_on_language
from firefly_memory.search.sql.mending import index_damage, mend
from firefly_memory.tombstones.sql.refusal import refuse_erased, unless_erased


class _NotNewError(Exception):
    """Rolls the transaction back: an index without a fact has no language."""


def set_unless_set(
    session: Session, writes: Sequence[FactWrite], language: IndexLanguage | None
) -> list[Written] | PersonMovedError:
    """:func:`set_facts` after a lost answer. A fact that somebody else has written since is left alone."""
    statements = session.statements(FactStatements)
    there = [_facts(session, statements.at_place, {"scope": each.row.scope, "key": each.row.key}) for each in writes]
    found = [(write, rows[0] if rows else None) for write, rows in zip(writes, there, strict=True)]
    if any(row is not None and {row.id, row.written_by} & {write.row.id, write.row.written_by} for write, row in found):
        done = [Written(row, "created" if row.id == write.row.id else "updated") for write, row in found if row]
        if len(done) == len(writes):
            return done
    if any(write.overwrite and row is not None and row.newest > write.row.newest for write, row in found):
        raise UndecidedError
    return set_facts(session, writes, language)


@operation(on_lost_reply=set_unless_set)
def set_facts(
    session: Session, writes: Sequence[FactWrite], language: IndexLanguage | None
) -> list[Written] | PersonMovedError:
    if not writes:
        return []
    try:
        return session.statements(FactStatements).write(session, writes, language)
    except PersonMovedError as moved:
        return moved  # not raised: a connection on which something unknown happens is thrown away


def restore_unless_restored(
    session: Session, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None
) -> bool | PersonMovedError:
    """:func:`restore_fact` after a lost answer. Looks last: the first attempt may still be under way when the second
    one begins."""
    if restored := restore_fact(session, row, versions, language):
        return restored
    there = read_facts(session, [row.id])
    return bool(there) and there[0] == row._replace(words=tuple(row.words))


@operation(on_lost_reply=restore_unless_restored)
def restore_fact(
    session: Session, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None
) -> bool | PersonMovedError:
    def restore(refusal: Values) -> bool:
        try:
            with session.transaction():
                return _restore(session, row, versions, language, refusal)
        except _NotNewError:
            return False

    try:
        return unless_erased(session, "restore_fact", row.identities, restore)
    except PersonMovedError as moved:
        return moved


def _restore(
    session: Session,
    row: FactRow,
    versions: Sequence[VersionRow],
    language: IndexLanguage | None,
    refusal: Values,
) -> bool:
    statements = session.statements(FactStatements)
    if row.fact_scope == "user":
        session.statements(PeopleStatements).hold(session, [row.scope])
    if language is not None:
        agree_on_language(session, FACTS, language)
    if session.execute(statements.insert, {**statements.values(row), **refusal}) == 0:
        raise _NotNewError
    session.execute_many(statements.add_version, [statements.version_values(each) for each in versions])
    refuse_erased(session, "restore_fact", list(identities_of(row, versions)))
    return True


def get_unless_counted(session: Session, lookup: Lookup, key: str, now: datetime) -> FactRow | None:
    """:func:`get_fact` after a lost answer. The instant tells whether the access was counted, unless somebody else has
    read the fact since: then it may be counted twice."""
    row = find_fact(session, lookup, key)
    return row if row is None or row.last_accessed == now else get_fact(session, lookup, key, now)


@operation(on_lost_reply=get_unless_counted)
def get_fact(session: Session, lookup: Lookup, key: str, now: datetime) -> FactRow | None:
    statements = session.statements(FactStatements)
    statement = statements.count_access[lookup.shape]
    values = {**parameters_of(lookup, key), "now": session.dialect.instant(now)}
    while True:
        with session.writing():
            rows = session.fetch(statement, values)
        if not rows:
            return None
        if rows[0][0] is not None:
            return statements.row_of(rows[0])
        # It was deleted, or moved to another person, after it had been found.


@reads
def find_fact(session: Session, lookup: Lookup, key: str) -> FactRow | None:
    statements = session.statements(FactStatements)
    rows = session.fetch(statements.seen[lookup.shape], parameters_of(lookup, key))
    return statements.row_of(rows[0]) if rows else None


@reads
def read_fact_as_of(session: Session, lookup: Lookup, key: str, at: datetime) -> FactRow | None:
    statements = session.statements(FactStatements)
    values = {**parameters_of(lookup, key), "at": session.dialect.instant(at)}
    rows = session.fetch(statements.said_at, values)
    return statements.as_it_was(rows[0]) if rows else None


@reads
def read_facts(session: Session, ids: Sequence[str]) -> list[FactRow]:
    return _facts(session, session.statements(FactStatements).these, {"ids": session.dialect.texts(ids)})


@reads
def read_page(session: Session, limit: int, after: str) -> list[FactRow]:
    return _facts(session, session.statements(FactStatements).page, {"limit": limit, "after": after})


@reads
def list_facts(
    session: Session,
    words: Sequence[str],
    filters: Filters,
    limit: int,
    after: FactPosition | None,
    person: str | None = None,
) -> list[FactRow]:
    places = list(dict.fromkeys(words))
    if not places:
        return []
    return _facts(session, *session.statements(ListStatements).asked(places, filters, limit, after, person))


def _facts(session: Session, statement: Statement, values: Values) -> list[FactRow]:
    statements = session.statements(FactStatements)
    return [statements.row_of(row) for row in session.fetch(statement, values)]


@reads
def read_ids_of_owner(session: Session, owner: str, limit: int, after: str) -> list[str]:
    values = {"owner": owner, "limit": limit, "after": after}
    return [row[0] for row in session.fetch(session.statements(FactStatements).of_owner, values)]


@reads
def count_facts(session: Session) -> int:
    return int(session.fetch(session.statements(FactStatements).count, {})[0][0])


def confirm_unless_confirmed(
    session: Session, space: str, fact_id: str, write_id: str, now: datetime
) -> FactRow | None:
    """:func:`confirm_fact` after a lost answer."""
    return _unless_written(session, fact_id, write_id, now) or confirm_fact(session, space, fact_id, write_id, now)


@operation(on_lost_reply=confirm_unless_confirmed)
def confirm_fact(session: Session, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
    return _changed(session, session.statements(FactStatements).confirm, space, fact_id, write_id, now)


def contradict_unless_contradicted(
    session: Session, space: str, fact_id: str, write_id: str, now: datetime
) -> FactRow | None:
    """:func:`contradict_fact` after a lost answer."""
    return _unless_written(session, fact_id, write_id, now) or contradict_fact(session, space, fact_id, write_id, now)


@operation(on_lost_reply=contradict_unless_contradicted)
def contradict_fact(session: Session, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
    return _changed(session, session.statements(FactStatements).contradict, space, fact_id, write_id, now)


def _unless_written(session: Session, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
    """The fact, if it has this write. If somebody else has written it since, nobody knows."""
    row = next(iter(read_facts(session, [fact_id])), None)
    if row is None or row.written_by == write_id:
        return row
    if row.newest > now:
        raise UndecidedError
    return None


def _changed(
    session: Session, statement: Statement, space: str, fact_id: str, write_id: str, now: datetime
) -> FactRow | None:
    values = {"space": space, "this_id": fact_id, "written_by": write_id, "newest": session.dialect.instant(now)}
    with session.writing():
        rows = session.fetch(statement, values)
    if rows:
        return session.statements(FactStatements).row_of(rows[0])
    there = [row for row in read_facts(session, [fact_id]) if row.space == space and row.written_by == write_id]
    return there[0] if there else None


@reads
def read_versions(session: Session, fact_id: str, limit: int, after: int) -> list[VersionRow]:
    statements = session.statements(FactStatements)
    values = {"fact_id": fact_id, "limit": limit, "after": after}
    return [statements.version_of(row) for row in session.fetch(statements.versions_of, values)]


@operation(on_lost_reply=REPORT)
def delete_facts(session: Session, ids: Sequence[str], written_by: Sequence[str] | None = None) -> int:
    with session.transaction():
        these = ids if written_by is None else last_written_by(session, ids, written_by)
        return delete_with_all(session, these)


@operation(on_lost_reply=REPORT)
def delete_versions(session: Session, names: Sequence[tuple[str, int]]) -> int:
    texts = session.dialect.texts
    values = {
        "ids": texts(sorted({fact_id for fact_id, _ in names})),
        "names": texts([f"{fact_id}/{number}" for fact_id, number in names]),
    }
    with session.writing():
        return session.execute(session.statements(FactStatements).delete_versions, values)


@reads
def read_versions_of_owner(session: Session, owner: str, limit: int, after: tuple[str, int]) -> list[tuple[str, int]]:
    statement = session.statements(FactStatements).versions_of_owner
    values = {"owner": owner, "limit": limit, "after": after[0], "after_number": after[1]}
    return [(row[0], row[1]) for row in session.fetch(statement, values)]


@reads
def read_page_of_versions(session: Session, limit: int, after: tuple[str, int]) -> list[VersionRow]:
    statements = session.statements(FactStatements)
    values = {"limit": limit, "after": after[0], "after_number": after[1]}
    return [statements.version_of(row) for row in session.fetch(statements.page_of_versions, values)]


@reads
def count_versions(session: Session) -> int:
    return int(session.fetch(session.statements(FactStatements).count_versions, {})[0][0])


@reads
def count_versions_of(session: Session, fact_ids: Sequence[str]) -> dict[str, int]:
    values = {"ids": session.dialect.texts(fact_ids)}
    return {row[0]: row[1] for row in session.fetch(session.statements(FactStatements).count_versions_of, values)}


@reads
def read_without_vector(session: Session, embedder: str, limit: int, after: str) -> list[FactRow]:
    values = {"embedder": embedder, "limit": limit, "after": after}
    return _facts(session, session.statements(FactStatements).without_vector, values)


@operation(on_lost_reply=REPEAT)
def add_vectors(session: Session, vectors: Mapping[str, Vector], written_by: Sequence[str] | None = None) -> int:
    if not vectors:
        return 0
    embedder = next(iter(vectors.values())).embedder
    with session.transaction():
        ids = sorted(vectors) if written_by is None else last_written_by(session, sorted(vectors), written_by)
        values = {"ids": session.dialect.texts(ids), "embedder": embedder}
        lacking = [row[0] for row in session.fetch(session.statements(FactStatements).lacking, values)]
        write_vectors(session, FACTS, {name: vectors[name] for name in lacking})
    return len(lacking)


@operation(on_lost_reply=REPEAT)
def rewrite_facts(session: Session, rows: Sequence[FactRow]) -> int:
    words = session.dialect.words
    values = [
        {
            "this_id": row.id,
            "seen": row.written_by,
            "seen_scope": row.scope,
            "searchable": row.searchable,
            "words": words(row.words),
        }
        for row in sorted(rows, key=lambda row: row.id)
    ]
    with session.transaction():
        session.execute_many(session.statements(FactStatements).rewrite, values)
    return len(values)


@operation(on_lost_reply=REPEAT)
def find_damage(session: Session) -> list[str]:
    return index_damage(session, FACTS)


@operation(on_lost_reply=REPEAT)
def mend_index(session: Session) -> None:
    mend(session, FACTS)
