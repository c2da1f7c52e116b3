"""The reading half of an index in SQL: each call is one operation, run by the executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from firefly_memory.codec import damaged
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import REPEAT, operation, reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.filters import Conditions, filters_in
from firefly_memory.search.index import Nearest, Signatures, Subject, Vector
from firefly_memory.search.sql.accelerators.questions import find_nearest, has_accelerator
from firefly_memory.search.sql.statements import IndexStatements, statements_of

_VECTORS_AT_ONCE = 1_000


@reads
def count_words(
    session: Session, subject: Subject, scopes: Sequence[str], words: Sequence[str], most: int | None
) -> dict[str, int]:
    statements = session.statements(statements_of(subject))
    rows = session.fetch(statements.counts, statements.engine.words(statements, scopes, words, most))
    return {row[0]: row[1] for row in rows}


@reads
def find_best(
    session: Session,
    subject: Subject,
    scopes: Sequence[str],
    weights: Mapping[str, int],
    limit: int,
    conditions: Conditions,
) -> list[str]:
    statements = session.statements(statements_of(subject, filters_in(conditions)))
    values = statements.engine.weighted(statements, scopes, list(weights), list(weights.values()))
    values |= statements.wanted(conditions)
    return [row[0] for row in session.fetch(statements.best, {**values, "limit": limit})]


@reads
def find_around(
    session: Session, subject: Subject, scopes: Sequence[str], ids: Sequence[str], conditions: Conditions, words: bool
) -> list[Candidate]:
    statements, dialect = session.statements(statements_of(subject, filters_in(conditions))), session.dialect
    statement = statements.around if words else statements.around_with_lengths
    values = {"scopes": dialect.texts(scopes), "ids": dialect.texts(ids), **statements.wanted(conditions)}
    rows = session.fetch(statement, values)
    return [_candidate(subject, row) for row in rows]


def _candidate(subject: Subject, row: Sequence[Any]) -> Candidate:
    words, found, scope, who, group_id, position = row
    try:
        return Candidate(
            id=found,
            words=words.split(" ") if isinstance(words, str) else (),
            length=words + 0 if not isinstance(words, str) else None,
            who=original_or_none(who),
            group=None if group_id is None else f"{scope} {group_id}",
            position=position + 0,
        )
    except (AttributeError, TypeError) as exc:
        raise damaged("search", f"{found!r} of {subject.kind}", exc) from exc


@reads
def find_containing(
    session: Session, subject: Subject, scopes: Sequence[str], text: str, limit: int, conditions: Conditions
) -> list[str]:
    statements = session.statements(statements_of(subject, filters_in(conditions)))
    values = {"scopes": session.dialect.texts(scopes), "wanted": text, "limit": limit}
    values |= statements.wanted(conditions)
    return [row[0] for row in session.fetch(statements.containing, values)]


@reads
def find_people(session: Session, subject: Subject, scopes: Sequence[str], limit: int) -> list[str]:
    statements = session.statements(statements_of(subject))
    values = {"scopes": session.dialect.texts(scopes), "limit": limit, **statements.wanted()}
    return [original_name(row[0]) for row in session.fetch(statements.people, values)]


@reads
def read_signatures(
    session: Session, subject: Subject, scopes: Sequence[str], embedder: str, most: int, conditions: Conditions
) -> Signatures | None:
    statements = session.statements(statements_of(subject, filters_in(conditions)))
    values = {"scopes": session.dialect.texts(scopes), "embedder": embedder, "limit": most + 1}
    values |= statements.wanted(conditions) if conditions else {}
    rows = session.fetch(statements.signatures_of, values)
    if len(rows) > most:
        return None
    return Signatures([row[0] for row in rows], [row[1] for row in rows])


@reads
def read_vectors(session: Session, subject: Subject, embedder: str, ids: Sequence[str]) -> dict[str, bytes]:
    values = {"ids": session.dialect.texts(ids), "embedder": embedder}
    return {row[0]: row[1] for row in session.fetch(session.statements(statements_of(subject)).vectors_of, values)}


class SQLSearchIndex:
    """A :class:`~firefly_memory.search.index.SearchIndex` over an executor."""

    def __init__(self, executor: Executor, subject: Subject) -> None:
        self._run = executor.run
        self._subject = subject

    async def counts(self, scopes: Sequence[str], words: Sequence[str], most: int | None) -> Mapping[str, int]:
        return await self._run(count_words, self._subject, scopes, words, most)

    async def best(
        self, scopes: Sequence[str], weights: Mapping[str, int], limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        return await self._run(find_best, self._subject, scopes, weights, limit, conditions)

    async def around(
        self, scopes: Sequence[str], ids: Sequence[str], conditions: Conditions = (), *, words: bool = True
    ) -> Sequence[Candidate]:
        return await self._run(find_around, self._subject, scopes, ids, conditions, words)

    async def containing(
        self, scopes: Sequence[str], text: str, limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        return await self._run(find_containing, self._subject, scopes, text, limit, conditions)

    async def people(self, scopes: Sequence[str], limit: int) -> Sequence[str]:
        return await self._run(find_people, self._subject, scopes, limit)

    async def signatures(
        self, scopes: Sequence[str], embedder: str, most: int, conditions: Conditions = ()
    ) -> Signatures | None:
        return await self._run(read_signatures, self._subject, scopes, embedder, most, conditions)

    async def vectors(self, embedder: str, ids: Sequence[str]) -> Mapping[str, bytes]:
        return await self._run(read_vectors, self._subject, embedder, ids)

    async def has_accelerator(self, embedder: str) -> bool:
        return await self._run(has_accelerator, self._subject, embedder)

    async def nearest(
        self, scopes: Sequence[str], embedder: str, vector: bytes, most: int, conditions: Conditions = ()
    ) -> Nearest | None:
        return await self._run(find_nearest, self._subject, scopes, embedder, vector, most, conditions)


def write_vectors(session: Session, subject: Subject, vectors: Mapping[str, Vector]) -> None:
    """Store the vectors of rows that are there and have none of this embedder. Inside a transaction."""
    statements = session.statements(statements_of(subject))
    in_order = sorted(vectors.items())
    if len(in_order) > 1 and statements.add_signatures is not None and statements.add_vectors is not None:
        _write_arrays(session, statements, in_order)
        return
    rows = [{**each._asdict(), "this_id": name} for name, each in in_order]
    for statement in (statements.add_signature, statements.add_vector):
        if len(rows) == 1:  # for which psycopg would still take the time of a pipeline
            session.execute(statement, rows[0])
        elif rows:
            session.execute_many(statement, rows)


def _write_arrays(session: Session, statements: IndexStatements, vectors: Sequence[tuple[str, Vector]]) -> None:
    assert statements.add_signatures is not None
    assert statements.add_vectors is not None
    texts = session.dialect.texts
    # All rows are locked by one statement, and in their order: a later statement may see rows that others have added
    # since, and would lock them out of order.
    held = {row[0] for row in session.fetch(statements.held, {"ids": texts([name for name, _ in vectors])})}
    alike = groupby(sorted((each for each in vectors if each[0] in held), key=_form), _form)
    for (embedder, _, _), these in alike:
        while some := list(islice(these, _VECTORS_AT_ONCE)):
            ids = texts([name for name, _ in some])
            for statement, bits in (
                (statements.add_signatures, [vector.signature for _, vector in some]),
                (statements.add_vectors, [vector.vector for _, vector in some]),
            ):
                values = {"embedder": embedder, "ids": ids, "bits": b"".join(bits), "size": len(bits[0])}
                session.execute(statement, values)


def _form(named: tuple[str, Vector]) -> tuple[str, int, int]:
    """The embedder of a row's vector, and the sizes of what is stored."""
    _, vector = named
    return vector.embedder, len(vector.vector), len(vector.signature)


def delete_vectors(session: Session, subject: Subject, ids: Sequence[str]) -> list[str]:
    """Delete the vectors of rows. Before these are deleted or replaced, in the same transaction; the ids of those of
    them that are there, and stay as they are until it ends."""
    statements, texts = session.statements(statements_of(subject)), session.dialect.texts
    rows = session.fetch(statements.locked, {"ids": texts(ids)})
    there = [row[0] for row in rows]
    if there and subject.has_vectors:
        values = {"ids": texts(there), "scopes": texts(sorted({row[1] for row in rows}))}
        session.execute(statements.delete_vectors, values)
        session.execute(statements.delete_signatures, values)
    return there


@reads
def count_vectors(session: Session, subject: Subject) -> dict[str, int]:
    """How many there are of each embedder."""
    rows = session.fetch(session.statements(statements_of(subject)).vectors_by_embedder, {})
    return {row[0]: row[1] for row in rows}


@operation(on_lost_reply=REPEAT)
def delete_vectors_of_embedder(session: Session, subject: Subject, embedder: str, limit: int, after: str) -> list[str]:
    """Those of the first rows after an id; the ids of these rows."""
    statements, texts = session.statements(statements_of(subject)), session.dialect.texts
    with session.transaction():
        found = session.fetch(statements.having_vector, {"embedder": embedder, "limit": limit, "after": after})
        ids = [row[0] for row in found]
        scopes = {row[1] for row in session.fetch(statements.locked, {"ids": texts(ids)})}
        values = {"ids": texts(ids), "scopes": texts(sorted(scopes)), "embedder": embedder}
        session.execute(statements.delete_vectors_of, values)
        session.execute(statements.delete_signatures_of, values)
    return ids
