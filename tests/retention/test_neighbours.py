"""Prune inside the caller's transaction, and with a role that may only read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest

from firefly_memory import ConversationMemory, DatabaseStoreError, PostgreSQLStore, WorkingMemory
from firefly_memory.clock import now
from firefly_memory.retention import prune
from firefly_memory.sweeper import Sweeper
from firefly_memory.testing.clock import stopped
from tests.support.backends import Place
from tests.support.bound_stores import KINDS, opened
from tests.support.databases import empty_postgresql, execute


@KINDS
def test_what_is_pruned_in_a_transaction_comes_back_with_its_rollback(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        memory = ConversationMemory(store=store)
        memory.clear_all()
        for name in ("a", "b"):
            memory.add_turn(name, "question", "answer")
            WorkingMemory(store=store, conversation_id=name).set("k", 1)
        for commits in (False, True):
            with engine.connect() as connection:
                assert prune(store.bind(connection), keep_last=1).rows["conversations"] == 1
                if commits:
                    connection.commit()
                else:
                    connection.rollback()
            assert memory.conversation_ids == (["b"] if commits else ["a", "b"])
            assert WorkingMemory(store=store, conversation_id="a").to_dict() == ({} if commits else {"k": 1})
        memory.clear_all()


@pytest.fixture
def reader(place: Place) -> Iterator[str]:
    """The URL of a database with an old conversation, for a role that may only read."""
    with empty_postgresql(place.postgresql()) as url:
        role = f"reader_{uuid4().hex[:12]}"
        with PostgreSQLStore(url) as store, stopped(now() - timedelta(days=2)):
            ConversationMemory(store=store).add_turn("old", "question", "answer")
        execute(url, f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
        execute(url, f"GRANT USAGE ON SCHEMA firefly_memory TO {role}")
        execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA firefly_memory TO {role}")
        yield f"postgresql://{role}:secret@" + url.rpartition("@")[2]
        with PostgreSQLStore(url) as store:
            assert ConversationMemory(store=store).conversation_ids == ["old"]
        execute(url, f"DROP OWNED BY {role}")
        execute(url, f"DROP ROLE {role}")


async def test_a_role_that_may_only_read_gets_a_clear_error(reader: str, caplog: pytest.LogCaptureFixture) -> None:
    async with PostgreSQLStore(reader, migrate=False) as store:
        with pytest.raises(DatabaseStoreError, match="permission denied"):
            prune(store, older_than="1d")
        assert prune(store, older_than="1d", dry_run=True).rows["conversations"] == 1
        paused = asyncio.Event()

        async def pause(_: float) -> None:
            paused.set()
            await asyncio.get_running_loop().create_future()

        sweeper = Sweeper(store, every="1h", older_than="1d")
        sweeper._wait = pause
        async with sweeper:
            await paused.wait()
        assert "the claim of the sweeper failed" in caplog.text
        assert "permission denied" in caplog.text
