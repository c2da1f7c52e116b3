"""Chunks with their vectors in PostgreSQL: of one chunk by one statement, or by a transaction where that writes nothing;
of many by a few statements."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from firefly_memory import EntryStore
from firefly_memory.databases.sql.session import DriverSession
from firefly_memory.erasure import erase
from firefly_memory.errors import ErasedError
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage, LanguageError
from firefly_memory.search.sql import index
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from tests.knowledge import ENGLISH, Chunks, row
from tests.support.mongodb_chunks import vector

pytestmark = pytest.mark.parametrize(
    ("kind", "mode"), [(kind, mode) for kind in ("psycopg", "asyncpg") for mode in Mode]
)

Count = Callable[[], int]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How many statements were sent since the last call."""
    real, sent = DriverSession._cursor, []

    def counted(session: DriverSession) -> Any:
        sent.append(session)
        return real(session)

    def count() -> int:
        number = len(sent)
        sent.clear()
        return number

    monkeypatch.setattr(DriverSession, "_cursor", counted)
    return count


async def test_a_new_chunk_and_its_vector_are_one_statement(
    new_store: EntryStore, mode: Mode, statements: Count
) -> None:
    chunks, first, mine, theirs = Chunks(new_store, mode), row("first"), row("mine", owner="Ann"), row("mine")
    assert await chunks("add", [first], {first.id: vector(1)}, ENGLISH) == 1, "which decides the language"
    statements()
    for number, each in enumerate((mine, theirs), 2):
        assert await chunks("add", [each], {each.id: vector(number)}, ENGLISH) == 1
        assert statements() == 1
    ids = [first.id, mine.id, theirs.id]
    expected = {each: vector(number).vector for number, each in enumerate(ids, 1)}
    assert await chunks.ask("vectors", "e", ids) == expected
    found = await chunks.ask("signatures", [mine.scope], "e", 9)
    assert (found.ids, found.signatures) == ([mine.id], [vector(2).signature])


async def test_a_chunk_that_is_there_gets_the_vector_that_it_lacks_and_keeps_the_one_it_has(
    new_store: EntryStore, mode: Mode
) -> None:
    chunks, one = Chunks(new_store, mode), row("one")
    assert await chunks.add(one) == 1
    for number, name in enumerate(("e", "f", "e"), 1):
        assert await chunks("add", [one], {one.id: vector(number, name)}, ENGLISH) == 0
    for number, name in ((1, "e"), (2, "f")):
        assert await chunks.ask("vectors", name, [one.id]) == {one.id: vector(number).vector}
    assert await chunks.every() == [one]


async def test_what_the_statement_does_not_write_has_the_errors_of_the_transaction(
    new_store: EntryStore, mode: Mode
) -> None:
    chunks, mine = Chunks(new_store, mode), row("mine", owner="Ann")
    erase(new_store, "Ann")
    with pytest.raises(ErasedError):
        await chunks("add", [mine], {mine.id: vector(1)}, ENGLISH)
    assert await chunks("language") is None
    one, other = row("one"), row("Haus", language="german")
    await chunks("add", [one], {one.id: vector(1)}, ENGLISH)
    with pytest.raises(ErasedError):
        await chunks("add", [mine], {mine.id: vector(1)}, ENGLISH)
    with pytest.raises(LanguageError, match="english by the rules"):
        await chunks("add", [other], {other.id: vector(2)}, IndexLanguage("german", FORM))
    assert await chunks.every() == [one]
    assert await chunks("vectors_by_embedder") == {"e": 1}


async def test_each_of_many_chunks_gets_its_own_vector_whatever_the_sizes_are(
    new_store: EntryStore, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_VECTORS_AT_ONCE", 4)
    chunks, rows = Chunks(new_store, mode), [row(f"number {number}") for number in range(25)]
    sizes = itertools.cycle([(8, 1), (8, 2), (1024, 32), (0, 0)])
    vectors = {
        each.id: Vector("ef"[number % 3 == 0], bytes([number]) * size, bytes([number + 100]) * bits)
        for number, (each, (size, bits)) in enumerate(zip(rows, sizes, strict=False))
    }
    assert await chunks("add", rows, vectors, ENGLISH) == len(rows)
    for embedder in "ef":
        expected = {name: each for name, each in vectors.items() if each.embedder == embedder}
        stored = await chunks.ask("vectors", embedder, list(vectors))
        assert stored == {name: each.vector for name, each in expected.items()}
        signatures = await chunks.ask("signatures", [rows[0].scope], embedder, 99)
        found = dict(zip(signatures.ids, signatures.signatures, strict=True))
        assert found == {name: each.signature for name, each in expected.items()}
