"""Appends in SQL: in the order of their numbers, by one statement, those of several callers together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text

from firefly_memory import EntryStore, PostgreSQLStore, SQLiteStore
from firefly_memory.concurrency import group_commit
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.sql.session import DriverSession
from firefly_memory.erasure import async_erase, erase
from firefly_memory.errors import ConflictError, ErasedError, OutcomeUnknownError, StoreTimeoutError
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.feeds.message_stores import SQLMessageStore
from firefly_memory.feeds.sql import operations
from firefly_memory.feeds.sql.notifying import CHANNEL, payload
from tests.support.backends import Place

SCHEMA = "feeds_of_tests"
SQLITE, POSTGRESQL = ["sqlite"], ["asyncpg", "psycopg"]


def opened(kind: str, place: Place) -> EntryStore:
    if kind == "sqlite":
        return SQLiteStore(place.directory / "memory.db")
    return PostgreSQLStore(place.with_driver(kind), schema_name=SCHEMA, pool_min_size=0)


@contextmanager
def holding(kind: str, place: Place, store: EntryStore) -> Iterator[tuple[SQLMessageStore, Any]]:
    """Messages in a transaction of the application's, and its connection."""
    url = f"sqlite:///{place.directory}/memory.db" if kind == "sqlite" else place.with_driver("psycopg")
    engine = create_engine(url)
    with engine.connect() as connection:
        yield SQLMessageStore(store.bind(connection)), connection  # type: ignore[attr-defined]
    engine.dispose()


def contents(items: Any) -> list[Any]:
    return [(item.number, item.message["content"]) for item in items]


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"content": content, **more}


_WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%memory_feed%'"


async def until_one_waits(place: Place) -> None:
    async with asyncio.timeout(60):
        with psycopg.connect(place.postgresql(), autocommit=True) as server:
            waiting = None
            while waiting is None:
                waiting = server.execute(_WAITING).fetchone()
                await asyncio.sleep(0)


@pytest.mark.parametrize("kind", POSTGRESQL)
async def test_a_later_number_is_never_committed_before_an_earlier_one(kind: str, place: Place, location: str) -> None:
    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        with holding(kind, place, store) as (first, connection):
            assert first.append(location, said("first")) == 1
            second = asyncio.create_task(messages.async_append(location, said("second")))
            await until_one_waits(place)
            subscriber = messages.subscribe(location, after=0, every=0.01)
            next_message = asyncio.create_task(anext(subscriber))
            assert await messages.async_get_items(location) == []
            assert not second.done()
            assert not next_message.done()
            connection.commit()
        assert await second == 2
        async with asyncio.timeout(60):
            seen = [await next_message, await anext(subscriber)]
        assert contents(seen) == [(1, "first"), (2, "second")]
        await subscriber.aclose()


@pytest.mark.parametrize("kind", POSTGRESQL)
async def test_a_number_that_was_rolled_back_is_given_again(kind: str, place: Place, location: str) -> None:
    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        with holding(kind, place, store) as (first, connection):
            assert first.append_many(location, [said(1), said(2)]) == [1, 2]
            second = asyncio.create_task(messages.async_append(location, said("second")))
            await until_one_waits(place)
            connection.rollback()
        assert await second == 1
        assert contents(await messages.async_get_items(location)) == [(1, "second")]


async def test_no_number_is_given_in_sqlite_before_the_earlier_one_is_committed(place: Place, location: str) -> None:
    async with opened("sqlite", place) as store, SQLiteStore(place.directory / "memory.db", timeout=0.05) as impatient:
        messages = SQLMessageStore(store)
        with holding("sqlite", place, store) as (first, connection):
            assert first.append(location, said("first")) == 1
            with pytest.raises(StoreTimeoutError):
                await SQLMessageStore(impatient).async_append(location, said("too early"))
            subscriber = messages.subscribe(location, after=0, every=0.01)
            next_message = asyncio.create_task(anext(subscriber))
            assert await messages.async_get_items(location) == []
            assert not next_message.done()
            connection.commit()
        assert await messages.async_append(location, said("second")) == 2
        async with asyncio.timeout(60):
            seen = [await next_message, await anext(subscriber)]
        assert contents(seen) == [(1, "first"), (2, "second")]
        await subscriber.aclose()


def test_an_append_updates_the_head_in_its_place(place: Place, location: str) -> None:
    updates = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE schemaname = :schema"
    with opened("psycopg", place) as store, holding("psycopg", place, store) as (messages, connection):
        for number in range(20):
            messages.append(location, said(number))
        of_head = text(f"{updates} AND relname = 'memory_feeds'")
        assert connection.execute(of_head, {"schema": SCHEMA}).one() == (19, 19)
        connection.rollback()


@pytest.mark.parametrize("kind", POSTGRESQL)
@pytest.mark.parametrize("count", [1, 500])
async def test_messages_are_appended_by_one_statement(
    kind: str, count: int, place: Place, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, sent = DriverSession._cursor, []

    def counted(session: DriverSession) -> Any:
        sent.append(session)
        return real(session)

    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        await messages.async_append(location, said("first"))
        monkeypatch.setattr(DriverSession, "_cursor", counted)
        numbers = await messages.async_append_many(location, [said('ä\0"\\{},', n=n) for n in range(count)])
        assert len(sent) == 1
        assert numbers == list(range(2, count + 2))
        stored = await messages.async_get_items(location, after=1)
        assert [item.message for item in stored] == [said('ä\0"\\{},', n=n) for n in range(count)]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many appends there were in each group."""
    monkeypatch.setattr(group_commit, "_OVERDUE", 30.0)  # or a busy machine has some go ahead
    sizes: list[int] = []
    real = operations.append_group.work

    def counting(session: Any, appends: Any) -> Any:
        sizes.append(len(appends))
        return real(session, appends)

    monkeypatch.setattr(operations.append_group, "work", counting)
    return sizes


EVERYWHERE = pytest.mark.parametrize("kind", [*SQLITE, *POSTGRESQL])


@EVERYWHERE
@pytest.mark.parametrize("owner", [None, "Ann"])
async def test_simultaneous_appends_go_together_in_the_order_in_which_they_came(
    kind: str, owner: str | None, place: Place, location: str, groups: list[int]
) -> None:
    locations = [f"{location} {number}" for number in range(3)]
    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        assert await messages.async_append(locations[0], said("there before"), owner) == 1
        calls = [
            messages.async_append_many(locations[n % 3], [said(n, part=part) for part in range(n % 4)], owner)
            for n in range(40)
        ]
        numbers = await asyncio.gather(*calls)
        assert max(groups) >= 20
        for place_of, name in enumerate(locations):
            stored = (await messages.async_get_items(name))[1 if place_of == 0 else 0 :]
            expected = [(n, part) for n in range(place_of, 40, 3) for part in range(n % 4)]
            assert [(item.message["content"], item.message["part"]) for item in stored] == expected
            own = [number for n in range(place_of, 40, 3) for number in numbers[n]]
            assert own == [item.number for item in stored], "every caller got the numbers of its own messages"
            feed = await store.suspending.log(FEED_LOG).feed(name)
            assert feed is not None
            assert (feed.newest, feed.owner) == (own[-1], owner)


@EVERYWHERE
async def test_of_appends_that_go_together_only_refused_ones_fail(
    kind: str, place: Place, location: str, groups: list[int]
) -> None:
    mine, hers, erased = (f"{location} {name}" for name in ("mine", "hers", "erased"))
    ann, bob = f"Ann {location}", f"Bob {location}"
    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        await messages.async_append(hers, said("hers"), ann)
        await messages.async_append(erased, said("gone"), bob)

        async def append(name: str, owner: str | None) -> Any:
            try:
                return await messages.async_append(name, said("new"), owner)
            except (ConflictError, ErasedError) as error:
                return type(error)

        assert await asyncio.gather(*[append(name, ann + "!") for name in (mine, mine, hers, mine, hers)]) == [
            *(1, 2, ConflictError, 3, ConflictError)
        ]
        with opened(kind, place) as other:
            erase(other, bob)
        names = (hers, hers, erased, mine, hers)
        assert await asyncio.gather(*[append(name, None) for name in names]) == [2, 3, ErasedError, 4, 4]
        assert len(groups) >= 2


@EVERYWHERE
async def test_messages_of_a_group_whose_answer_was_lost_are_not_appended_twice(
    kind: str, place: Place, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the connection is lost after the commit: the answer is an error, and the messages are there."""
    real, lost = operations.append_group.work, list[int]()

    def answer_lost(session: Any, appends: Any) -> Any:
        lost.append(len(real(session, appends)))
        raise OutcomeUnknownError("append_messages", "the answer was lost", retryable=False)

    monkeypatch.setattr(operations.append_group, "work", answer_lost)
    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        calls = [messages.async_append_many(location, [said(n), said(n)]) for n in range(20)]
        numbers = await asyncio.gather(*calls)
        assert sum(lost) > 0
        stored = contents(await messages.async_get_items(location))
        assert [number for number, _ in stored] == list(range(1, 41))
        assert sorted((number, n) for n, own in enumerate(numbers) for number in own) == stored


@pytest.mark.parametrize("kind", POSTGRESQL)
async def test_a_locked_feed_delays_no_other(kind: str, place: Place, location: str) -> None:
    others = [f"{location} {number}" for number in range(10)]
    async with opened(kind, place) as store:
        messages = SQLMessageStore(store)
        for name in (location, *others):
            await messages.async_append(name, said("first"))
        with psycopg.connect(place.postgresql()) as holder:
            lock = f"SELECT 1 FROM {SCHEMA}.memory_feeds WHERE location = %s FOR UPDATE"
            holder.execute(lock.encode(), (location,))
            waiting = [asyncio.create_task(messages.async_append(location, said(n))) for n in range(3)]
            async with asyncio.timeout(60):
                assert (
                    await asyncio.gather(*[messages.async_append(name, said("second")) for name in others]) == [2] * 10
                )
            assert not any(task.done() for task in waiting)
        assert sorted(await asyncio.gather(*waiting)) == [2, 3, 4]


@pytest.mark.parametrize("kind", POSTGRESQL)
async def test_listeners_are_told_of_an_append_only_if_that_is_asked_for(
    kind: str, place: Place, location: str, groups: list[int]
) -> None:
    end = "no more"
    async with opened(kind, place) as store:
        log = store.suspending.log(FEED_LOG)
        new = MessageForm(log).new
        with psycopg.connect(place.postgresql(), autocommit=True) as listener:
            listener.execute(f"LISTEN {CHANNEL}".encode())
            await asyncio.gather(*[log.append(location, [new(said(n))], None) for n in range(5)])
            calls = [log.append(f"{location} {n % 2}", [new(said(n))] * 2, None, notify=True) for n in range(9)]
            await asyncio.gather(*calls)
            assert sum(groups) == 12, "those with a notice and those without each went together"
            listener.execute(f"NOTIFY {CHANNEL}, '{end}'".encode())
            told: list[str] = []
            for each in listener.notifies(timeout=60):
                if each.payload == end:
                    break
                told.append(each.payload)
        # The first one went alone; the others together, in one transaction, which tells everything once.
        assert Counter(told) == {payload(SCHEMA, f"{location} 0"): 2, payload(SCHEMA, f"{location} 1"): 1}
        assert not any(location in each for each in told)


def test_a_feed_is_deleted_only_as_it_was_seen(place: Place, location: str) -> None:
    with opened("sqlite", place) as store:
        messages, log = SQLMessageStore(store), store.blocking.log(FEED_LOG)
        messages.append_many(location, [said(n) for n in range(3)])
        assert run_without_loop(log.delete(location, 2)) is None
        assert len(messages.get_items(location)) == 3
        assert run_without_loop(log.delete(location, 3)) == 3
        assert run_without_loop(log.delete(location, 3)) is None


async def test_messages_beside_one_that_is_refused_are_appended_once(place: Place) -> None:
    """Also if SQLite begins the group again, because another writer of the process is in the way."""
    for number in range(12):
        async with opened("sqlite", place) as eraser, opened("sqlite", place) as store:
            messages, erased, mine = SQLMessageStore(store), f"erased {number}", f"mine {number}"
            await messages.async_append(erased, {}, f"ann {number}")
            await async_erase(eraser, f"ann {number}")

            async def is_appended(location: str, owner: str | None, messages: SQLMessageStore = messages) -> bool:
                try:
                    await messages.async_append(location, {}, owner)
                except ErasedError:
                    return False
                return True

            calls = ((erased, None), (erased, f"ann {number}"), (mine, None)) * 3
            assert await asyncio.gather(*[is_appended(*each) for each in calls]) == [False, False, True] * 3
            assert [each.number for each in await messages.async_get_items(mine)] == [1, 2, 3]
