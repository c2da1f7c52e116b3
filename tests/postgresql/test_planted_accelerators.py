"""No accelerator runs what somebody has planted in the search path of the caller's connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import NotSupportedError, PostgreSQLStore
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.service import (
    accelerators,
    async_accelerators,
    async_disable_accelerator,
    async_enable_accelerator,
    disable_accelerator,
    enable_accelerator,
)
from tests.support.accelerated import DebianPostgreSQL, debian, small_limit, texts, wheel
from tests.support.databases import execute
from tests.support.knowledge_stores import Letters
from tests.support.planted_functions import calls, planted_database
from tests.support.servers import EmbeddedPostgreSQL

__all__ = ["debian", "small_limit", "wheel"]

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("small_limit")]


@pytest.fixture(scope="module")
def of_wheel(wheel: EmbeddedPostgreSQL) -> Iterator[str]:
    with planted_database(wheel.url, "planter") as url:
        execute(url, "CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")
        yield url


@pytest.fixture(scope="module")
def of_debian(debian: DebianPostgreSQL) -> Iterator[str]:
    with planted_database(debian.url, "planter") as url:
        execute(url, "CREATE SCHEMA extensions; CREATE EXTENSION pg_trgm SCHEMA extensions")
        yield url


def test_pgvector_on_an_engine_of_the_caller_s_own(of_wheel: str) -> None:
    engine = create_engine(of_wheel.replace("postgresql:", "postgresql+psycopg:"))
    with PostgreSQLStore(engine=engine) as store:
        knowledge = KnowledgeStore(store, embedder=Letters(), space="blocking")
        knowledge.add("notes", texts(60))
        with pytest.raises(NotSupportedError):  # so what follows is found by the accelerator
            knowledge.search("notes", "abc", 10, "semantic")
        enable_accelerator(store, "pgvector", embedder=Letters())
        knowledge.add("notes", "one more")
        assert len(knowledge.search("notes", "abc", 10, "semantic")) == 10
        knowledge.add("empty", [f"zz {number}" for number in range(30)])
        assert knowledge.search("empty", "abc zz", 10)
        assert [each.state for each in accelerators(store) if (each.kind, each.name) == ("chunks", "pgvector")] == [
            "enabled"
        ]
        with engine.connect() as connection, connection.begin():
            bound = KnowledgeStore(store.bind(connection), embedder=Letters(), space="blocking")
            assert len(bound.search("notes", "abc", 10, "semantic")) == 10
        disable_accelerator(store, "pgvector")
    engine.dispose()
    assert calls(of_wheel) == 0


async def test_pgvector_on_an_asynchronous_engine_of_the_caller_s_own(of_wheel: str) -> None:
    engine = create_async_engine(of_wheel.replace("postgresql:", "postgresql+asyncpg:"))
    async with PostgreSQLStore(engine=engine) as store:
        knowledge = KnowledgeStore(store, embedder=Letters(), space="suspending")
        await knowledge.async_add("notes", texts(60))
        await async_enable_accelerator(store, "pgvector", embedder=Letters())
        assert len(await knowledge.async_search("notes", "abc", 10, "semantic")) == 10
        assert await async_accelerators(store)
        await async_disable_accelerator(store, "pgvector")
    await engine.dispose()
    assert calls(of_wheel) == 0


def test_pg_trgm_on_an_engine_of_the_caller_s_own(of_debian: str) -> None:
    engine = create_engine(of_debian.replace("postgresql:", "postgresql+psycopg:"))
    with PostgreSQLStore(engine=engine) as store:
        knowledge = KnowledgeStore(store, embedder=None)
        knowledge.add("notes", texts(60))
        enable_accelerator(store, "pg_trgm")
        assert knowledge.search("notes", " 59", 10, "fuzzy")
        disable_accelerator(store, "pg_trgm")
    engine.dispose()
    assert calls(of_debian) == 0
