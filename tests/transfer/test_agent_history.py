"""Copies and archives of pydantic-ai's conversations have every message once."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pymongo import MongoClient

from firefly_memory import MongoDBStore, SQLiteStore
from firefly_memory.agent_history import moving as agent_history
from firefly_memory.agents import MongoConversationStore, SQLConversationStore
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.transfer.counts import Counts
from tests.support.agent_histories import SHARED, kept, message, messages, opened, somewhere
from tests.support.agent_history_transfer import (
    Stop,
    assert_deletions_leave_nothing,
    assert_equal,
    both,
    branch,
    filled,
    grow,
)
from tests.support.backends import Place
from tests.support.command_line import run
from tests.support.copy_worker import killed_copy
from tests.support.ram_use import Work, assert_more_takes_no_more_memory
from tests.support.servers import EmbeddedMongoDB

pytestmark = pytest.mark.thorough

PAIRS = [(source, target) for source in SHARED for target in SHARED]


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kinds", PAIRS, ids=str)
async def test_a_copy_has_every_message_once(kinds: tuple[str, str], place: Place) -> None:
    async with both(kinds, place) as (source, target):
        await filled(source)
        everything = Counts(agent_conversations=8, messages=len(await kept(source)))
        for before in (Counts(), everything):
            copied = await async_copy_store(source.store, target.store)
            assert copied.equal
            assert (copied.before, copied.source.counts, copied.target.counts) == (before, everything, everything)
            await assert_equal(source, target)
        assert copy_store(source.store, target.store).source.checksum == copied.target.checksum  # the other mode
        await assert_deletions_leave_nothing(target)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kinds", PAIRS, ids=str)
async def test_an_import_restores_the_exported_agent_history(kinds: tuple[str, str], place: Place) -> None:
    async with both(kinds, place) as (source, target):
        await filled(source)
        file = io.StringIO()
        counts = await async_export_jsonl(source.store, file)
        assert counts == Counts(agent_conversations=8, messages=len(await kept(source)))
        for _ in range(2):
            assert await async_import_jsonl(target.store, io.StringIO(file.getvalue())) == counts
            await assert_equal(source, target)
        again = io.StringIO()
        export_jsonl(target.store, again)
        assert again.getvalue().splitlines()[1:] == file.getvalue().splitlines()[1:]
        assert import_jsonl(target.store, again.getvalue().splitlines()) == counts
        await assert_deletions_leave_nothing(target)


@pytest.mark.parametrize("kind", ["sqlite-aiosqlite", "postgresql-psycopg", "mongodb-motor"])
async def test_agent_history_can_be_copied_with_engines_and_clients_of_the_caller(kind: str, place: Place) -> None:
    async with both((kind, kind), place) as (source, target):
        await filled(source)
        assert (await async_copy_store(source.store, target.store)).equal
        await assert_equal(source, target)


async def test_agent_history_can_be_copied_with_a_blocking_client(place: Place) -> None:
    with somewhere("mongodb", place) as where:
        url, _, name = where.partition("#")
        async with opened("mongodb", where) as source:
            await filled(source)
        with MongoClient[dict[str, Any]](url) as client:
            blocking = MongoDBStore(client=client, database=name)
            async with (
                SQLiteStore(place.directory / "there.db") as there,
                SQLiteStore(place.directory / "b.db") as other,
            ):
                assert copy_store(blocking, there).equal
                assert (await async_copy_store(blocking, other)).equal
                await assert_equal(SQLConversationStore(there), SQLConversationStore(other))


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
async def test_a_copy_or_import_can_continue_after_any_interruption(kind: str, place: Place) -> None:
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as source:
            await filled(source)
            file = io.StringIO()
            lines = (await async_export_jsonl(source.store, file)).total
            with somewhere(kind, place) as there:
                async with opened(kind, there) as target:

                    async def copy(progress: Any) -> None:
                        await async_copy_store(source.store, target.store, progress=progress)

                    async def import_(progress: Any) -> None:
                        await async_import_jsonl(target.store, io.StringIO(file.getvalue()), progress=progress)

                    for last in range(3, lines - 6, 5):
                        for work in (copy, import_):
                            for some in (last, last + 6):
                                with pytest.raises(InterruptedError):
                                    await work(Stop(some))
                                assert all(holders for _, holders in (await kept(target)).values())
                            await work(None)
                            await assert_equal(source, target)
                            await assert_deletions_leave_nothing(target)


@pytest.mark.parametrize("kind", ["postgresql-asyncpg", "mongodb"])
async def test_a_copy_continues_after_a_killed_copy(kind: str, place: Place) -> None:
    with somewhere("sqlite", place) as one, somewhere(kind, place) as other:
        async with opened("sqlite", one) as source, opened(kind, other) as target:
            await source.save(Conversation(conversation_id="long", messages=messages(9_000)))
            await source.fork("long", at=20, new_conversation_id="zfork")
            url, _, name = other.partition("#")
            option = "--to-database" if kind == "mongodb" else "--to-schema"
            options = ["--from", f"sqlite:///{one}", "--to", url, option, name, "--json"]
            killed_copy("messages", 5_000, *options)
            record = await target.read_record("long")
            assert record is not None
            assert record.revision.startswith("copying:")
            assert record.branches == []
            there = len(await kept(target))
            assert 0 < there < 9_000
            ended = run("copy", *options, cwd=Path.cwd())
            assert (ended.returncode, ended.stderr) == (0, "")
            result = json.loads(ended.stdout)
            assert result["source"]["agent_conversations"] == result["target"]["agent_conversations"] == 2
            assert result["source"]["messages"] == 9_000
            assert result["there_before"]["messages"] >= there - 500
            await assert_equal(source, target)
            await assert_deletions_leave_nothing(target)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
async def test_a_second_copy_adds_new_messages_of_the_source(kind: str, place: Place) -> None:
    async with both(("sqlite", kind), place) as (source, target):
        await filled(source)
        assert (await async_copy_store(source.store, target.store)).equal
        await grow(source, "long", 30)
        await branch(source, "z fork", 6, 2)
        await source.fork("z fork", at=5, new_conversation_id="A")  # before all that share its messages
        await grow(source, "A", 12)
        assert (await async_copy_store(source.store, target.store)).equal
        await assert_equal(source, target)
        await assert_deletions_leave_nothing(target)


async def test_agent_history_can_be_copied_from_and_to_a_standalone_server(place: Place) -> None:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    try:
        async with MongoDBStore(server.url) as store, both(("sqlite", "sqlite"), place) as (source, target):
            standalone = MongoConversationStore(store)
            await filled(source)
            for last in range(5, 90, 6):
                with pytest.raises(InterruptedError):
                    copy_store(source.store, store, progress=Stop(last))
                assert (await async_copy_store(source.store, store)).equal
                for record in await standalone.read_records():
                    await standalone.delete(record.conversation_id)  # its messages stay
            assert copy_store(source.store, store).equal
            assert copy_store(store, target.store).equal
            await assert_equal(source, target)
    finally:
        server.remove()


@contextmanager
def exporting_and_copying(messages: int, directory: Path) -> Iterator[Sequence[Work]]:
    agent_history._PAGE = 100  # in a process of its own
    with (
        SQLiteStore(directory / "from.db") as store,
        SQLiteStore(directory / "to.db") as target,
        (directory / "out").open("w") as out,
    ):
        said = [message("x" * 1_000) for _ in range(messages)]
        asyncio.run(SQLConversationStore(store).save(Conversation(conversation_id="long", messages=said)))
        del said
        target.initialize_sync()
        yield [lambda: export_jsonl(store, out), lambda: copy_store(store, target)]


def test_copying_a_long_conversation_needs_no_more_memory(tmp_path: Path) -> None:
    assert_more_takes_no_more_memory(exporting_and_copying, tmp_path, 400, 1_600)
