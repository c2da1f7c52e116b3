"""Searches and writes on a PostgreSQL database that has pgvector switched on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import ConfigurationError, NotSupportedError, PostgreSQLStore
from firefly_memory.erasure import erase
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.longterm import MemoryService
from firefly_memory.search import searching
from firefly_memory.search.signatures import vector_bytes
from firefly_memory.service import disable_accelerator, enable_accelerator
from tests.support.accelerated import COLUMN, found, knowledge_in, of_numbers, small_limit, texts, url, wheel
from tests.support.databases import execute
from tests.support.knowledge_stores import Letters
from tests.support.pgbouncer import PgBouncer

__all__ = ["small_limit", "url", "wheel"]

QUESTIONS = ("abcabc", "jjjj ii", "a b c d e f g")


@pytest.fixture
def exact(url: str) -> dict[str, list[tuple[str, float]]]:
    """The hits of the exact search, in a database that has pgvector switched on afterwards."""
    with knowledge_in(url) as (store, knowledge):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(searching, "LARGEST_SCOPE", 1_000)
            hits = {question: found(knowledge, question) for question in QUESTIONS}
        enable_accelerator(store, "pgvector", embedder=Letters())
    return hits


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_the_hits_are_those_of_the_exact_search(driver: str, url: str, exact: Any) -> None:
    with PostgreSQLStore(url.replace("postgresql:", f"postgresql+{driver}:")) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        for question in QUESTIONS:
            assert [text for text, _ in found(knowledge, question)] == [text for text, _ in exact[question]]


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_the_hits_are_the_same_in_an_event_loop(driver: str, url: str, exact: Any) -> None:
    async with PostgreSQLStore(url.replace("postgresql:", f"postgresql+{driver}:")) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        for _ in range(8):  # the statements are prepared by then
            for question in QUESTIONS:
                hits = await knowledge.async_search("notes", question, 10, "semantic")
                assert [hit.text for hit in hits] == [text for text, _ in exact[question]]


@pytest.mark.usefixtures("small_limit")
def test_hybrid_uses_the_accelerator_and_fuzzy_and_text_do_not_need_it(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        (hit, *_) = knowledge.search("notes", "abcabc", explain=True)
        assert hit.explanation is not None
        assert hit.explanation.notes == ()
        assert "semantic" in hit.ranks
        assert len(knowledge.search("notes", "a", 5, "fuzzy")) == 5
        assert knowledge.search("notes", texts(60)[7].split()[0], 1, "text")


@pytest.mark.usefixtures("small_limit")
def test_a_process_that_runs_notices_both_switches(url: str) -> None:
    with knowledge_in(url) as (store, knowledge):
        with pytest.raises(NotSupportedError, match="index enable pgvector"):
            found(knowledge)
        enable_accelerator(store, "pgvector", embedder=Letters())
        assert len(found(knowledge)) == 10
        disable_accelerator(store, "pgvector")
        with pytest.raises(NotSupportedError, match="at most 20 chunks"):
            found(knowledge)


@pytest.mark.usefixtures("small_limit")
def test_a_row_is_found_as_soon_as_it_is_written_and_gone_when_it_is_deleted(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.add("notes", "zzzzzzzzzz qqq")
        assert found(knowledge, "zzzzzzzzzz qqq")[0][0] == "zzzzzzzzzz qqq"
        knowledge.add("notes", "yyyyyyyyyy", owner="ann")
        assert "yyyyyyyyyy" in {hit.text for hit in knowledge.search("notes", "yyyy", 5, "semantic", owner="ann")}
        assert "yyyyyyyyyy" not in dict(found(knowledge, "yyyy", 100))
        erase(store, "ann")
        assert execute(url, f"SELECT count({COLUMN}) FROM firefly_memory.memory_chunks_vectors") == [(61,)]
        knowledge.delete("notes")
        assert execute(url, "SELECT count(*) FROM firefly_memory.memory_chunks_vectors") == [(0,)]


@pytest.mark.usefixtures("small_limit")
def test_nothing_of_other_scopes_is_found_though_all_of_it_is_nearer(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.add("others", [f"zzzzzz {number}" for number in range(1_500)])
        knowledge.add("notes", "zy")
        assert found(knowledge, "zzzzzz", 3)[0][0] == "zy"
        assert not {text for text, _ in found(knowledge, "zzzzzz", 100)} & {f"zzzzzz {n}" for n in range(1_500)}


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_facts_that_pass_the_filters_are_found_though_all_others_are_nearer(driver: str, url: str) -> None:
    with PostgreSQLStore(url.replace("postgresql:", f"postgresql+{driver}:")) as store:
        memory = MemoryService(store, embedder=Letters())
        memory.update_preferences(memory.get_or_create_user("web", "ann").canonical_id, dict.fromkeys(texts(30), 1))
        for number in range(30):
            memory.set_fact(f"zzzz {number}", "zzzz", fact_type="correction", confidence=number / 100)
        memory.set_fact("sure", "zyx", fact_type="correction", confidence=0.9)
        memory.set_fact("other", "zyxw")
        enable_accelerator(store, "pgvector", kind="facts", embedder=Letters())
        for mode in ("semantic", "hybrid"):
            for options, keys in (
                ({"fact_types": ["correction"]}, ["sure"]),
                ({"fact_types": ["world_knowledge"], "min_confidence": None}, ["other"]),
                ({"min_confidence": 0.95}, ["other"]),
                ({"fact_types": ["relationship", "it's"]}, []),
            ):
                hits = memory.search_facts("zzzz", mode=mode, **options)
                assert [hit.fact.key for hit in hits] == keys, (mode, options)
            assert len(memory.search_facts("zzzz", mode=mode, limit=100, min_confidence=None)) == 32


@pytest.mark.usefixtures("small_limit")
def test_an_embedder_without_a_column_is_searched_as_without_an_accelerator(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        other = KnowledgeStore(store, embedder=of_numbers(lambda text: [float(len(text)), 1.0], 2))
        other.add("notes", [f"{text} more" for text in texts(30, seed=2)])
        with pytest.raises(NotSupportedError, match="compares at most"):
            other.search("notes", "abc", mode="semantic")
        enable_accelerator(store, "pgvector", embedder="numbers")
        assert len(other.search("notes", "abc", 5, "semantic")) == 5
        columns = (
            f"SELECT count({COLUMN}), count(*) FROM firefly_memory.memory_chunks_vectors WHERE embedder = 'numbers'"
        )
        assert execute(url, columns) == [(0, 30)]


@pytest.mark.usefixtures("small_limit")
def test_another_number_of_dimensions_under_the_same_name_is_refused(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        knowledge = KnowledgeStore(store, embedder=of_numbers(lambda _: [1.0] * 9, 9, name="letters"))
        with pytest.raises(ConfigurationError, match="another number of dimensions than 9"):
            knowledge.search("notes", "abc", mode="semantic")


@pytest.mark.usefixtures("small_limit")
def test_a_question_without_a_word_finds_nothing(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        assert not found(KnowledgeStore(store, embedder=Letters()), "???")


@pytest.mark.usefixtures("small_limit")
def test_a_collection_without_vectors_says_so(url: str, exact: Any) -> None:
    with PostgreSQLStore(url) as store:
        KnowledgeStore(store, embedder=None).add("bare", texts(30))
        knowledge = KnowledgeStore(store, embedder=Letters())
        assert knowledge.search("bare", "abc", mode="semantic") == []
        (hit, *_) = knowledge.search("bare", texts(30)[3], explain=True)
        assert hit.explanation is not None
        assert hit.explanation.notes == (searching.NO_VECTORS,)


# Writes

NUMBERS = np.random.default_rng(1).standard_normal(8).astype("<f4")
SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, 3.4e38, -1.17549435e-38, 1e-45, 0.1], dtype="<f4")


@pytest.mark.parametrize("vector", [NUMBERS, SPECIAL, np.zeros(8, dtype="<f4")], ids=["random", "special", "zeros"])
def test_the_trigger_makes_the_numbers_of_a_vector(vector: Any, url: str) -> None:
    _prepared(url)
    _written(url, vector_bytes(vector))
    ((made,),) = execute(url, f"SELECT {_column(url)}::text FROM firefly_memory.memory_chunks_vectors WHERE id = 'x'")
    numbers = np.array(made.strip("[]").split(","), dtype="<f4")
    assert np.allclose(numbers, np.where(np.abs(vector) < 1e-38, 0, vector), rtol=1e-6, atol=0)


DAMAGED = {
    "short": b"\0" * 31,
    "long": b"\0" * 36,
    "empty": b"",
    "not a number": NUMBERS[:7].tobytes() + np.array([np.nan], dtype="<f4").tobytes(),
    "infinite": np.array([-np.inf], dtype="<f4").tobytes() + NUMBERS[:7].tobytes(),
}


@pytest.mark.parametrize("vector", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_vector_is_written_and_has_nothing_in_the_column(vector: bytes, url: str) -> None:
    _prepared(url)
    _written(url, vector)
    assert execute(url, f"SELECT {_column(url)} FROM firefly_memory.memory_chunks_vectors WHERE id = 'x'") == [(None,)]


@pytest.mark.parametrize(
    "damage", ["DROP EXTENSION vector CASCADE", "ALTER EXTENSION vector SET SCHEMA moved"], ids=["dropped", "moved"]
)
def test_a_write_succeeds_when_the_extension_is_dropped_or_moved(damage: str, url: str) -> None:
    _prepared(url)
    execute(url, "CREATE SCHEMA moved")
    with PostgreSQLStore(url) as store:
        knowledge = KnowledgeStore(store, embedder=_eight())
        knowledge.add("notes", "before")
        execute(url, damage)
        knowledge.add("notes", "after")
        assert {hit.text for hit in knowledge.search("notes", "x", 10, "semantic")} >= {"before", "after"}


def _eight() -> Any:
    return of_numbers(lambda text: [float(number) + len(text) for number in NUMBERS], 8)


def _prepared(url: str) -> None:
    with PostgreSQLStore(url) as store:
        KnowledgeStore(store, embedder=_eight()).add("notes", "one")
        enable_accelerator(store, "pgvector", embedder="numbers")


def _column(url: str) -> str:
    table = "'firefly_memory.memory_chunks_vectors'::regclass"
    ((name,),) = execute(
        url, f"SELECT attname::text FROM pg_attribute WHERE attrelid = {table} AND attname LIKE 'vector\\_%'"
    )
    return str(name)


def _written(url: str, vector: bytes) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        insert = "INSERT INTO firefly_memory.memory_chunks_vectors (id, embedder, vector) VALUES ('x', 'numbers', %s)"
        connection.execute(insert, [vector])


# Connections of other people


@pytest.mark.usefixtures("small_limit")
def test_a_bound_store_searches_in_the_caller_s_transaction_and_leaves_its_settings(url: str, exact: Any) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with PostgreSQLStore(url) as store, engine.connect() as connection, connection.begin():
        bound = KnowledgeStore(store.bind(connection), embedder=Letters())
        bound.add("notes", "zzzzzz")
        before = connection.exec_driver_sql(_SHOWN).one()
        for _ in range(2):
            assert found(bound, "zzzzzz")[0][0] == "zzzzzz"
        assert (
            connection.exec_driver_sql(_SHOWN).one()
            == ("on", "40", "off", "20000")
            == (before[0], "40", "off", "20000")
        )
        with pytest.raises(NotSupportedError, match="inside a transaction"):
            enable_accelerator(store.bind(connection), "pgvector", embedder=Letters())
    engine.dispose()


_SHOWN = """SELECT current_setting('enable_sort'), current_setting('hnsw.ef_search', true),
    current_setting('hnsw.iterative_scan', true), current_setting('hnsw.max_scan_tuples', true)"""


@pytest.mark.usefixtures("small_limit")
def test_an_engine_of_the_caller_s_own_is_searched_and_switched(url: str) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with PostgreSQLStore(engine=engine) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.add("notes", texts(60))
        enable_accelerator(store, "pgvector", embedder=Letters())
        assert len(found(knowledge)) == 10
        disable_accelerator(store, "pgvector")
    engine.dispose()


@pytest.mark.usefixtures("small_limit")
async def test_an_asynchronous_engine_of_the_caller_s_own_is_searched_and_switched(url: str) -> None:
    from firefly_memory.service import async_disable_accelerator, async_enable_accelerator

    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with PostgreSQLStore(engine=engine) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        await knowledge.async_add("notes", texts(60))
        with pytest.raises(NotSupportedError, match="AsyncEngine"):
            enable_accelerator(store, "pgvector", embedder=Letters())
        await async_enable_accelerator(store, "pgvector", embedder=Letters())
        assert len(await knowledge.async_search("notes", "abc", 10, "semantic")) == 10
        await async_disable_accelerator(store, "pgvector")
    await engine.dispose()


@pytest.fixture
def pooler(url: str) -> Iterator[PgBouncer]:
    pooler = PgBouncer(url, "transaction", pool_size=2)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.remove()


@pytest.mark.thorough
@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_searches_go_through_pgbouncer(driver: str, exact: Any, pooler: PgBouncer) -> None:
    url = pooler.url.replace("postgresql:", f"postgresql+{driver}:")
    async with PostgreSQLStore(url, pooler="transaction") as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        hits = await asyncio.gather(
            *[knowledge.async_search("notes", question, 10, "semantic") for question in QUESTIONS * 5]
        )
        for question, found_now in zip(QUESTIONS * 5, hits, strict=True):
            assert [hit.text for hit in found_now] == [text for text, _ in exact[question]]
