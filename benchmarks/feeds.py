"""Messages of a team of agents: append one, and read the newest of one kind; in feeds of several lengths."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle
from typing import Any

from pymongo import AsyncMongoClient, MongoClient

from benchmarks.bare_feeds import (
    BareAiosqliteFeeds,
    BareAsyncpgFeeds,
    BareFeeds,
    BareMongoFeeds,
    BarePsycopgFeeds,
    BareSQLiteFeeds,
    Feeds,
)
from benchmarks.feed_messages import Message, agents_of, fill_mongodb, fill_postgresql, fill_sqlite, messages, trace
from benchmarks.harness import Growth, Result, Work, interleaved, measure
from benchmarks.stores import Places
from firefly_memory.feeds import FeedItem, MongoMessageStore, SQLMessageStore

Store = SQLMessageStore | MongoMessageStore

_OPERATIONS = 64  # of a round
_FEW_OPERATIONS = 16  # of what takes milliseconds
_CALLERS = 32
_CONCURRENT_OPERATIONS = 256
_CONCURRENT_SIZE = 1_000
_SHORT = 100
_BATCH = 5_000
_NEWEST = 20
_NEXT = 100
_STEP = 7  # between the agents who are asked for
_FAR = 7_919  # between the numbers


class _Blocking(Feeds):
    """Ours, in one mode."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def append(self, location: str, message: Message) -> int:
        return self.store.append(location, message)

    async def agent(self, location: str, agent_key: str, limit: int) -> list[Message]:
        return self.store.get_agent_messages(location, agent_key, limit)

    async def team(self, location: str, agent_keys: Sequence[str], limit: int) -> list[Message]:
        return self.store.get_team_messages(location, agent_keys, limit)

    async def conversation(self, location: str, limit: int) -> list[Message]:
        return self.store.get_conversation_messages(location, limit)

    async def after(self, location: str, number: int, limit: int) -> Sequence[FeedItem]:
        return self.store.get_items(location, number, limit)


class _Suspending(Feeds):
    """The same in the other mode."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def append(self, location: str, message: Message) -> int:
        return await self.store.async_append(location, message)

    async def agent(self, location: str, agent_key: str, limit: int) -> list[Message]:
        return await self.store.async_get_agent_messages(location, agent_key, limit)

    async def team(self, location: str, agent_keys: Sequence[str], limit: int) -> list[Message]:
        return await self.store.async_get_team_messages(location, agent_keys, limit)

    async def conversation(self, location: str, limit: int) -> list[Message]:
        return await self.store.async_get_conversation_messages(location, limit)

    async def after(self, location: str, number: int, limit: int) -> Sequence[FeedItem]:
        return await self.store.async_get_items(location, number, limit)


Fill = Callable[[Sequence[str], int], None]
"""Makes feeds of so many messages on both sides."""


@dataclass(frozen=True)
class Pair:
    name: str
    ours: _Blocking | _Suspending
    bare: BareFeeds
    fill: Fill
    aim: float = 1.2
    limit: float = 1.5

    @property
    def concurrent(self) -> bool:
        return isinstance(self.ours, _Suspending)


@asynccontextmanager
async def _pairs(places: Places) -> AsyncIterator[list[Pair]]:
    async with places.stores() as stores:
        found: list[Pair] = []
        if store := stores.get("sqlite"):
            sql = SQLMessageStore(store)
            fill = _filling(sql, fill_sqlite, places)
            blocking = BareSQLiteFeeds(places.bare_path)
            found.append(Pair("sqlite sync", _Blocking(sql), blocking, fill, 2.0, 4.0))
            suspending = await BareAiosqliteFeeds.open(places.bare_path)
            found.append(Pair("sqlite async", _Suspending(sql), suspending, fill, 1.3, 2.0))
        if store := stores.get("postgresql"):
            sql = SQLMessageStore(store)
            fill = _filling(sql, fill_postgresql, places)
            url = places.postgresql_url
            found.append(Pair("postgresql async", _Suspending(sql), await BareAsyncpgFeeds.open(url), fill))
            found.append(Pair("postgresql sync", _Blocking(sql), BarePsycopgFeeds(url), fill))
        if store := stores.get("mongodb"):
            mongo = MongoMessageStore(store)
            fill = _filling(mongo, fill_mongodb, places)
            client: AsyncMongoClient[Any] = AsyncMongoClient(places.mongodb_url, maxPoolSize=10)
            found.append(Pair("mongodb async", _Suspending(mongo), BareMongoFeeds(client), fill))
            other: MongoClient[Any] = MongoClient(places.mongodb_url, maxPoolSize=10)
            found.append(Pair("mongodb sync", _Blocking(mongo), BareMongoFeeds(other), fill))
        try:
            yield found
        finally:
            for pair in found:
                await pair.bare.close()


def _filling(store: Store, fill_bare: Callable[[Places, Sequence[str], int], None], places: Places) -> Fill:
    def fill(locations: Sequence[str], size: int) -> None:
        everything = list(messages(size))
        for location in locations:
            for start in range(0, size, _BATCH):
                store.append_many(location, everything[start : start + _BATCH])
        fill_bare(places, locations, size)

    return fill


async def feeds(places: Places, sizes: Sequence[int], rounds: int) -> AsyncIterator[Result | Growth]:
    """Each operation alone, in feeds of the least and of the greatest of the sizes; ours in one against ours in the
    other; then 32 tasks that append to a feed each, and to one."""
    ends = sorted({min(sizes), max(sizes)})
    async with _pairs(places) as compared:
        names = {
            (pair, size): _filled(pair, f"{pair.name} {size}", _how_many(size), size)
            for size in ends
            for pair in compared
        }
        places.settle()
        for (pair, size), (first, *others) in names.items():
            for read in _reads(size):
                yield await _measured(pair, read, first, size, rounds)
            yield await _append(pair, "append", others or [first], size, rounds)
        if len(ends) > 1:
            for pair in compared:
                for read in _reads(ends[0]):
                    yield await _growth(pair, read, {size: names[pair, size][0] for size in ends}, rounds)
        concurrent = [pair for pair in compared if pair.concurrent]
        shared = {pair: _filled(pair, f"{pair.name} shared", 1 + _CALLERS, _CONCURRENT_SIZE) for pair in concurrent}
        places.settle()
        for pair, (one, *many) in shared.items():
            yield await _append(pair, f"append, {_CALLERS} locations", many, _CONCURRENT_SIZE, rounds, _CALLERS)
            yield await _append(pair, "append, 1 location", [one] * _CALLERS, _CONCURRENT_SIZE, rounds, _CALLERS)


def _how_many(size: int) -> int:
    """An append makes a feed longer: so there is a short one for each append of a round. The first is only read."""
    return 1 + (_OPERATIONS if size <= _SHORT else 0)


def _filled(pair: Pair, prefix: str, count: int, size: int) -> list[str]:
    locations = [f"{prefix}/{number}" for number in range(count)]
    pair.fill(locations, size)
    return locations


async def _append(pair: Pair, operation: str, locations: list[str], size: int, rounds: int, callers: int = 1) -> Result:
    def work(side: Feeds) -> Work:
        free, agents = deque(locations), cycle(agents_of(size))

        async def append() -> None:
            location = free.popleft()
            assert await side.append(location, trace(next(agents))) > size
            free.append(location)

        return append

    operations = _OPERATIONS if callers == 1 else _CONCURRENT_OPERATIONS
    times = await measure(work(pair.ours), work(pair.bare), operations=operations, callers=callers, rounds=rounds)
    aim, limit = (pair.aim, pair.limit) if callers == 1 else (1.0, 1.3)
    return Result(pair.name, operation, callers, size, *times, aim, limit)


Find = Callable[[Feeds, str, int, int, int], Awaitable[Sequence[Any]]]
"""Given a side, a location, a limit, how many messages there are, and how many reads there were before."""


@dataclass(frozen=True)
class _Read:
    operation: str
    find: Find
    size: int
    limit: int = _NEWEST
    operations: int = _OPERATIONS

    def of(self, side: Feeds, location: str) -> Work:
        turns = count()

        async def read() -> None:
            assert await self.find(side, location, self.limit, self.size, next(turns))

        return read

    async def result(self, side: Feeds, location: str) -> list[Any]:
        """What it finds, as it is on either side."""
        found = await self.find(side, location, self.limit, self.size, 0)
        return [each if isinstance(each, dict) else (each.number, each.message) for each in found]


def _agent(side: Feeds, location: str, limit: int, size: int, turn: int) -> Awaitable[Sequence[Any]]:
    agents = agents_of(size)
    return side.agent(location, agents[turn * _STEP % len(agents)], limit)


def _team_of_3(side: Feeds, location: str, limit: int, size: int, turn: int) -> Awaitable[Sequence[Any]]:
    agents = agents_of(size)
    return side.team(location, [agents[(turn + each) * _STEP % len(agents)] for each in range(3)], limit)


def _everybody(side: Feeds, location: str, limit: int, size: int, _: int) -> Awaitable[Sequence[Any]]:
    return side.team(location, agents_of(size), limit)


def _conversation(side: Feeds, location: str, limit: int, *_: int) -> Awaitable[Sequence[Any]]:
    return side.conversation(location, limit)


def _after(side: Feeds, location: str, limit: int, size: int, turn: int) -> Awaitable[Sequence[Any]]:
    return side.after(location, turn * _FAR % max(1, size - limit), limit)


def _reads(size: int) -> list[_Read]:
    reads = [
        _Read(f"{_NEWEST} of an agent", _agent, size),
        _Read(f"{_NEWEST} of a team of 3", _team_of_3, size),
        _Read(f"{_NEWEST} of the conversation", _conversation, size),
        _Read(f"{_NEXT} after a number", _after, size, _NEXT),
    ]
    everybody = len(agents_of(size))
    if everybody > 3:
        reads.append(_Read(f"{_NEWEST} of a team of {everybody:,}", _everybody, size, _NEWEST, _FEW_OPERATIONS))
    return reads


async def _measured(pair: Pair, read: _Read, location: str, size: int, rounds: int) -> Result:
    assert await read.result(pair.ours, location) == await read.result(pair.bare, location)
    works = read.of(pair.ours, location), read.of(pair.bare, location)
    times = await measure(*works, operations=read.operations, rounds=rounds)
    aim, limit = (1.3, 2.0) if read.limit == _NEXT else (pair.aim, pair.limit)
    return Result(pair.name, read.operation, 1, size, *times, aim, limit)


async def _growth(pair: Pair, read: _Read, locations: dict[int, str], rounds: int) -> Growth:
    """The same read in both feeds, of as many messages as the short one has for it."""
    (short, in_short), (long, in_long) = locations.items()
    there = len(await read.result(pair.ours, in_short))
    same = replace(read, limit=there)
    works = {"short": same.of(pair.ours, in_short), "long": replace(same, size=long).of(pair.ours, in_long)}
    times = await interleaved(works, operations=read.operations, rounds=rounds)
    operation = read.operation.replace(f"{read.limit}", f"{there}", 1)
    return Growth(pair.name, operation, (short, long), times["short"], times["long"])
