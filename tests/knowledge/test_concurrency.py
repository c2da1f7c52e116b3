"""Chunks that several processes add and delete at once, that a killed one leaves behind, and that are rolled back."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import create_engine

from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from firefly_memory.knowledge.rows import row_of, scope_of
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.stores.sql import SQLStore
from tests.support.backends import Place
from tests.support.mongodb_transactions import short_transactions
from tests.support.store_worker import killed_after, together
from tests.support.workers import Worker

pytestmark = pytest.mark.thorough

OPEN: dict[str, Callable[[str, str], EntryStore]] = {
    "sqlite": lambda where, _: SQLiteStore(where),
    "postgresql": lambda where, name: PostgreSQLStore(where, schema_name=name),
    "mongodb": lambda where, name: MongoDBStore(where, database=name),
}
"""A line for each kind of store that processes share: where it is, and the name of a schema or database."""

SCHEMA = "knowledge_of_processes"


class Letters(StaticEmbedder):
    """How often each letter is in a text."""

    name = "letters"
    dimensions = 26

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [[float(text.lower().count(letter)) for letter in ascii_lowercase] for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return self.embed(["".join(text for text, _ in pieces)])[0]


class Shared(NamedTuple):
    """A store that processes share, and a space of one test in it."""

    kind: str
    where: str
    space: str

    def opened(self) -> KnowledgeStore:
        return KnowledgeStore(OPEN[self.kind](self.where, SCHEMA), space=self.space, embedder=Letters())

    def start(self, work: str, *arguments: object) -> Worker:
        return Worker(__name__, *self, work, *arguments)


@pytest.fixture(params=OPEN)
def shared(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> Iterator[Shared]:
    kind = request.param
    if kind == "sqlite":
        path = place.directory / "memory.db"
        path.write_bytes(new_sqlite_file.read_bytes())
        yield Shared(kind, str(path), "s")
        return
    on_a_server = Shared(kind, place.postgresql() if kind == "postgresql" else place.mongodb(), uuid4().hex)
    with short_transactions(on_a_server.where) if kind == "mongodb" else nullcontext():
        yield on_a_server
        knowledge = on_a_server.opened()
        knowledge.delete("notes")
        knowledge.store.close_sync()


# What the processes do


TEXTS = [f"text {number} of all, {ascii_lowercase[number % 26] * 3}" for number in range(40)]


def _batches(texts: Sequence[str], seed: str) -> Iterator[list[str]]:
    """All texts in an order of its own, some at a time."""
    chance = random.Random(seed)
    left = list(texts)
    chance.shuffle(left)
    while left:
        size = chance.choice([1, 2, 9, 20])
        yield left[:size]
        del left[:size]


def add(knowledge: KnowledgeStore, worker: str) -> None:
    for batch in _batches(TEXTS, worker):
        knowledge.add("notes", batch)
        knowledge.add("notes", Chunk(f"{batch[0]} of {worker}", who=worker, group="talk"), owner=f"person {worker}")


def add_from_tasks(knowledge: KnowledgeStore, worker: str) -> None:
    async def main() -> None:
        calls = []
        for batch in _batches(TEXTS, worker):
            calls.append(knowledge.async_add("notes", batch))
            own = Chunk(f"{batch[0]} of {worker}", who=worker, group="talk")
            calls.append(knowledge.async_add("notes", own, owner=f"person {worker}"))
        await asyncio.gather(*calls)
        await knowledge.store.close()

    asyncio.run(main())


def add_and_delete(knowledge: KnowledgeStore, worker: str) -> None:
    chance = random.Random(worker)
    ids: list[str] = []
    for batch in [*_batches(TEXTS, worker), *_batches(TEXTS, f"again {worker}")]:
        ids += knowledge.add("notes", batch)
        knowledge.delete("notes", chance.sample(ids, min(len(ids), 7)))
        if chance.random() < 0.2:
            knowledge.embed_missing()


def add_and_delete_for_long(knowledge: KnowledgeStore, worker: str) -> None:
    for number in range(5):
        add_and_delete(knowledge, f"{worker} {number}")


def add_until_killed(knowledge: KnowledgeStore, life: str) -> None:
    """Prints the number of each five that are added, and ``-`` with the number of those that are deleted."""
    number = 0
    before: list[str] = []
    while True:
        ids = knowledge.add("notes", five(life, number))
        print(f"{life} {number}", flush=True)
        if number % 3 == 2:
            knowledge.delete("notes", before)
            print(f"-{life} {number - 1}", flush=True)
        before = ids
        number += 1


def five(life: str, number: int) -> list[Chunk]:
    return [Chunk(f"part {part} of {number} in {life}, boat", "Anna", group=f"{life} {number}") for part in range(5)]


def main() -> None:
    kind, where, space, work, *arguments = sys.argv[1:]
    knowledge = Shared(kind, where, space).opened()
    print("ready", flush=True)
    sys.stdin.readline()
    globals()[work](knowledge, *arguments)
    knowledge.store.close_sync()


# What is left


def rows_of(knowledge: KnowledgeStore) -> list[ChunkRow]:
    log = knowledge.store.blocking.log(KNOWLEDGE_LOG)
    space = knowledge._options.space
    return [row for row in run_without_loop(log.page(100_000, "")) if row.space == space]


def assert_in_step(shared: Shared, texts: Iterable[str], owners: Iterable[str | None] = (None,)) -> list[str]:
    """Each row has its words, its signature and its vector, and nothing else has any; the texts that are there.

    ``texts`` are all that were ever added.
    """
    knowledge = shared.opened()
    log, space = knowledge.store.blocking.log(KNOWLEDGE_LOG), shared.space
    rows = rows_of(knowledge)
    scopes = [scope_of(space, "notes", owner) for owner in owners]
    assert {row.scope for row in rows} <= set(scopes)
    words = {word for text in texts for word in _row(text, space).words[1:]} | {"anna", *scopes}
    counted = run_without_loop(log.index.counts(scopes, sorted(words), None))
    expected = Counter(word for row in rows for word in set(row.words))
    assert counted == {word: expected[word] for word in words}
    ids = {row.id for row in rows}
    found = run_without_loop(log.index.signatures(scopes, Letters.name, 100_000))
    assert found is not None
    assert set(found.ids) == ids
    assert len(found.ids) == len(ids)
    ever = ids | {_row(text, space).id for text in texts}
    assert set(run_without_loop(log.index.vectors(Letters.name, sorted(ever)))) == ids
    knowledge.store.close_sync()
    if shared.kind == "sqlite":
        _check_words_of_sqlite(shared.where)
    if shared.kind in ("sqlite", "postgresql"):
        _check_keys(shared)
    return [row.text for row in rows]


def _row(text: str, space: str) -> ChunkRow:
    place: dict[str, Any] = {"collection": "notes", "owner": None, "source": None, "position": 0, "language": "english"}
    return row_of(Chunk(text), space=space, created_at=datetime.now(UTC), **place)


def _check_words_of_sqlite(path: str) -> None:
    """The full-text table has the words of the rows, and no others."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO memory_chunks_words (memory_chunks_words, rank) VALUES ('integrity-check', 1)")
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, memory_chunks_words, row)")
        indexed = dict(connection.execute("SELECT term, doc FROM terms").fetchall())
        rows = Counter[str]()
        for (words,) in connection.execute("SELECT words FROM memory_chunks"):
            rows.update(set(words.split(" ")))
        assert indexed == rows
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _check_keys(shared: Shared) -> None:
    """No signature and no vector without the other one and their row, in any space."""
    schema = "" if shared.kind == "sqlite" else f"{SCHEMA}."
    joined = f"LEFT JOIN {schema}memory_chunks c ON c.id = v.id"
    keys = (
        f"SELECT id, scope FROM {schema}memory_chunks",
        f"SELECT id, scope FROM {schema}memory_chunks_signatures WHERE embedder = 'letters'",
        f"SELECT v.id, c.scope FROM {schema}memory_chunks_vectors v {joined} WHERE v.embedder = 'letters'",
    )
    found = [sorted(_fetched(shared, query)) for query in keys]
    assert found[0] == found[1] == found[2]


def _fetched(shared: Shared, query: str) -> list[Any]:
    if shared.kind == "sqlite":
        with closing(sqlite3.connect(shared.where)) as connection:
            return connection.execute(query).fetchall()
    with psycopg.connect(shared.where) as server:
        return server.execute(query.encode()).fetchall()


@pytest.mark.parametrize("processes", [2, 8])
def test_processes_that_add_the_same_texts_store_each_once(processes: int, shared: Shared) -> None:
    workers = [str(number) for number in range(processes)]
    works = ["add", "add_from_tasks"] * (processes // 2)
    together([shared.start(work, worker) for work, worker in zip(works, workers, strict=True)])
    own = [f"{batch[0]} of {worker}" for worker in workers for batch in _batches(TEXTS, worker)]
    there = assert_in_step(shared, [*TEXTS, *own], [None, *[f"person {worker}" for worker in workers]])
    assert sorted(there) == sorted([*TEXTS, *own])
    knowledge = shared.opened()
    assert sorted(each.text for each in knowledge.list("notes", 1_000)) == sorted(there)
    assert len(knowledge.search("notes", "all", 1_000, "text")) == len(TEXTS)
    assert len(knowledge.search("notes", "text", 1_000, "semantic")) == len(TEXTS)
    knowledge.store.close_sync()


def test_processes_that_add_and_delete_the_same_texts_leave_index_and_rows_in_step(shared: Shared) -> None:
    together([shared.start("add_and_delete", str(number)) for number in range(4)])
    there = assert_in_step(shared, TEXTS)
    assert len(there) == len(set(there))
    assert set(there) <= set(TEXTS)
    knowledge = shared.opened()
    knowledge.add("notes", TEXTS)
    knowledge.store.close_sync()
    assert sorted(assert_in_step(shared, TEXTS)) == sorted(TEXTS)


def test_no_plan_of_postgresql_locks_rows_in_another_order(postgresql: str) -> None:
    """A join that reads the table row by row met a deletion in the middle: each waited for the other."""
    with psycopg.connect(postgresql, autocommit=True) as server:
        for join in ("nestloop", "mergejoin"):
            server.execute(f"ALTER DATABASE {server.info.dbname} SET enable_{join} = off".encode())
    own = Shared("postgresql", postgresql, "s")
    first = own.opened()
    first.add("notes", TEXTS)
    first.store.close_sync()
    together([own.start("add_and_delete_for_long", str(number)) for number in range(6)])
    assert set(assert_in_step(own, TEXTS)) <= set(TEXTS)


def test_a_process_that_is_killed_leaves_index_and_rows_in_step(shared: Shared) -> None:
    lives, printed = [f"life {number}" for number in range(4)], []
    for number, life in enumerate(lives):
        printed += [line for line in killed_after(2 + 3 * number, shared.start("add_until_killed", life)) if line]
    most = len(printed) + 2
    attempted = [(life, number) for life in lives for number in range(most)]
    there = assert_in_step(shared, [chunk.text for each in attempted for chunk in five(*each)])
    deleted = {line.removeprefix("-") for line in printed if line.startswith("-")}
    kept = [line for line in printed if line not in deleted and not line.startswith("-")]
    missing = []
    for life, number in attempted:
        parts = [chunk.text in there for chunk in five(life, number)]
        assert all(parts) or not any(parts), "each call is done completely or not at all"
        if f"{life} {number}" in deleted:
            assert not any(parts)
        elif f"{life} {number}" in kept and not any(parts):
            missing.append((life, number))
    assert len({life for life, _ in missing}) == len(missing), "at most the deletion that was under way"
    assert len(there) % 5 == 0
    knowledge = shared.opened()
    knowledge.add("notes", TEXTS)
    knowledge.store.close_sync()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_is_rolled_back_leaves_nothing(kind: str, place: Place, new_sqlite_file: Path) -> None:
    path = place.directory / "memory.db"
    path.write_bytes(new_sqlite_file.read_bytes())
    shared = Shared(kind, str(path) if kind == "sqlite" else place.postgresql(), uuid4().hex)
    knowledge = shared.opened()
    kept = knowledge.add("notes", TEXTS[:10])
    store = knowledge.store
    assert isinstance(store, SQLStore)
    engine = create_engine(f"sqlite:///{path}" if kind == "sqlite" else place.with_driver("psycopg"))
    with engine.connect() as connection:
        bound = KnowledgeStore(store.bind(connection), space=shared.space, embedder=Letters())
        bound.add("notes", TEXTS[5:])
        bound.delete("notes", kept[:3])
        assert sorted(hit.text for hit in bound.search("notes", "all", 100, "text")) == sorted(TEXTS[3:])
        connection.rollback()
    engine.dispose()
    assert sorted(assert_in_step(shared, TEXTS)) == sorted(TEXTS[:10])
    assert knowledge.delete("notes") == 10
    assert assert_in_step(shared, TEXTS) == []
    store.close_sync()
