"""What is done with chunks in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.cursors import Moment
from firefly_memory.databases.sql.operation import REPEAT, REPORT, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.knowledge.log import CHUNKS, ChunkRow
from firefly_memory.knowledge.sql.statements import KnowledgeStatements
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.index import delete_vectors, write_vectors
from firefly_memory.search.sql.languages import agree_on_language
from firefly_memory.search.sql.mending import index_damage, mend
from firefly_memory.tombstones.sql.refusal import unless_erased


class _NothingNewError(Exception):
    """Rolls the transaction back: an index without a chunk has no language."""


@operation(on_lost_reply=REPEAT)
def add_chunks(
    session: Session, rows: Sequence[ChunkRow], vectors: Mapping[str, Vector], language: IndexLanguage | None
) -> int:
    def write(refusal: Values) -> int:
        written = _add_at_once(session, rows, vectors, language, refusal)
        if written:
            return written
        try:
            with session.transaction():
                return _add(session, rows, vectors, language, refusal)
        except _NothingNewError:
            return 0

    return unless_erased(session, "add_chunks", rows[0].identities, write) if rows else 0


def _add(
    session: Session,
    rows: Sequence[ChunkRow],
    vectors: Mapping[str, Vector],
    language: IndexLanguage | None,
    refusal: Values,
) -> int:
    is_new = language is not None and agree_on_language(session, CHUNKS, language)
    written = session.statements(KnowledgeStatements).write(session, rows, refusal)
    if is_new and not written:
        raise _NothingNewError
    write_vectors(session, CHUNKS, vectors)
    return written


def _add_at_once(
    session: Session,
    rows: Sequence[ChunkRow],
    vectors: Mapping[str, Vector],
    language: IndexLanguage | None,
    refusal: Values,
) -> int:
    """One new chunk with its vector needs no transaction where one statement writes both. 0 for anything else."""
    if len(rows) > 1 or language is None or vectors.keys() != {rows[0].id}:
        return 0
    statements = session.statements(KnowledgeStatements)
    return statements.write_at_once(session, rows[0], vectors[rows[0].id], language, refusal)


@reads
def read_chunks(session: Session, ids: Sequence[str]) -> list[ChunkRow]:
    statements = session.statements(KnowledgeStatements)
    return [statements.row_of(row) for row in session.fetch(statements.these, {"ids": session.dialect.texts(ids)})]


@reads
def read_page(session: Session, limit: int, after: str) -> list[ChunkRow]:
    statements = session.statements(KnowledgeStatements)
    return [statements.row_of(row) for row in session.fetch(statements.page, {"limit": limit, "after": after})]


@reads
def read_oldest(session: Session, space: str, collection: str, limit: int, after: Moment | None) -> list[ChunkRow]:
    statements = session.statements(KnowledgeStatements)
    values = {"space": space, "collection": collection, "limit": limit}
    statement = statements.oldest
    if after is not None:
        statement = statements.oldest_after
        values |= {"created_at": session.dialect.instant(after.at), "after": after.name}
    return [statements.row_of(row) for row in session.fetch(statement, values)]


@reads
def read_ids_of_owner(session: Session, owner: str, limit: int, after: str) -> list[str]:
    values = {"owner": owner, "limit": limit, "after": after}
    return [row[0] for row in session.fetch(session.statements(KnowledgeStatements).of_owner, values)]


@reads
def read_collections(session: Session, space: str, limit: int, after: str) -> list[str]:
    """Name by name, each found by one step down the index."""
    statement = session.statements(KnowledgeStatements).next_collection
    found: list[str] = []
    while len(found) < limit:
        rows = session.fetch(statement, {"space": space, "after": found[-1] if found else after, "limit": 1})
        if not rows:
            break
        found.append(rows[0][0])
    return found


@reads
def count_chunks(session: Session, space: str | None, collection: str | None) -> int:
    statements = session.statements(KnowledgeStatements)
    statement = statements.count if space is None else statements.count_of_space
    if collection is not None:
        statement = statements.count_of_collection
    return int(session.fetch(statement, {"space": space, "collection": collection})[0][0])


@operation(on_lost_reply=REPORT)
def delete_chunks(session: Session, ids: Sequence[str]) -> int:
    with session.transaction():
        return _delete(session, ids)


@operation(name="delete_chunks", on_lost_reply=REPORT)
def delete_some_chunks(session: Session, space: str, collection: str, source: str | None, limit: int) -> int:
    statements = session.statements(KnowledgeStatements)
    values = {"space": space, "collection": collection, "limit": limit}
    some = statements.some_of_collection
    if source is not None:
        some, values = statements.some_of_source, {**values, "source": source}
    with session.transaction():
        rows = session.fetch(some, values)
        return _delete(session, [row[0] for row in rows])


def _delete(session: Session, ids: Sequence[str]) -> int:
    there = delete_vectors(session, CHUNKS, ids)
    return session.execute(session.statements(KnowledgeStatements).delete, {"ids": session.dialect.texts(there)})


@reads
def read_without_vector(session: Session, embedder: str, limit: int, after: str) -> list[ChunkRow]:
    statements = session.statements(KnowledgeStatements)
    values = {"embedder": embedder, "limit": limit, "after": after}
    return [statements.row_of(row) for row in session.fetch(statements.without_vector, values)]


@operation(on_lost_reply=REPEAT)
def add_vectors(session: Session, vectors: Mapping[str, Vector]) -> int:
    if not vectors:
        return 0
    with session.transaction():
        lacking = _lacking(session, vectors)
        write_vectors(session, CHUNKS, {name: vectors[name] for name in lacking})
    return len(lacking)


def _lacking(session: Session, vectors: Mapping[str, Vector]) -> list[str]:
    embedder = next(iter(vectors.values())).embedder
    values = {"ids": session.dialect.texts(sorted(vectors)), "embedder": embedder}
    return [row[0] for row in session.fetch(session.statements(KnowledgeStatements).lacking, values)]


@operation(on_lost_reply=REPEAT)
def rewrite_chunks(session: Session, rows: Sequence[ChunkRow]) -> int:
    words = session.dialect.words
    values = [
        {"this_id": row.id, "searchable": row.searchable, "words": words(row.words)}
        for row in sorted(rows, key=lambda row: row.id)
    ]
    with session.transaction():
        session.execute_many(session.statements(KnowledgeStatements).rewrite, values)
    return len(values)


@operation(on_lost_reply=REPEAT)
def find_damage(session: Session) -> list[str]:
    return index_damage(session, CHUNKS)


@operation(on_lost_reply=REPEAT)
def mend_index(session: Session) -> None:
    mend(session, CHUNKS)
