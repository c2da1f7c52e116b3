"""Facts and people: read, looked up, listed, searched and written; among few facts, and among many."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from pymongo import AsyncMongoClient

from benchmarks.bare_long_term import (
    BareAiosqliteLongTerm,
    BareAsyncpgLongTerm,
    BareLongTerm,
    BarePsycopgLongTerm,
    BareSQLiteLongTerm,
    LongTerm,
)
from benchmarks.bare_long_term_mongodb import BareMongoLongTerm
from benchmarks.harness import Growth, Result, Work, interleaved, measure
from benchmarks.long_term_facts import (
    AGENTS,
    FEW,
    MANY,
    NONE,
    OF_A_PERSON,
    Ids,
    Whose,
    global_count,
    global_key,
    people,
    personal_key,
    sessions,
)
from benchmarks.long_term_places import Filled, filled
from benchmarks.long_term_sides import Blocking, Suspending
from benchmarks.stores import Places
from firefly_memory.longterm import MemoryService
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder

_OPERATIONS = 64  # of a round
_FEW_OPERATIONS = 4  # of what takes milliseconds
_CALLERS = 32
_CONCURRENT_OPERATIONS = 256
_STEP = 7  # between the facts that are asked for
_LISTED = 100
_HITS = 10
_MANY_FACTS = 10_000
_OF_A_MODE = 1_000_000  # writes, at most
_QUESTION = "when are the bills of the customer paid after the delivery"


@dataclass(frozen=True, eq=False)
class Compared:
    """One mode of one store, and its bare driver."""

    name: str
    size: int
    ours: Blocking | Suspending
    bare: BareLongTerm
    aim: float = 1.2
    limit: float = 1.5

    @property
    def is_concurrent(self) -> bool:
        return isinstance(self.ours, Suspending)


@dataclass(frozen=True)
class WithVectors:
    """What vectors cost: the same with the default embedder and with none, in microseconds, medians."""

    backend: str
    operation: str
    size: int
    without: float
    vectors: float | None
    """``None`` where there are no vectors."""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        vectors = "" if self.vectors is None else f", with vectors {self.vectors:>10.1f} µs"
        return f"{self.backend:<18} {self.operation:<28} size {self.size:>7} {self.without:>10.1f} µs{vectors}"


async def long_term(places: Places, sizes: Sequence[int], rounds: int) -> AsyncIterator[Result | Growth | WithVectors]:
    """One backend after the other: each operation alone; ours among few facts against ours among many; 32 tasks; and
    with vectors."""
    ends = sorted({min(sizes), max(sizes)})
    for backend in ("sqlite", "postgresql", "mongodb"):
        if places.only not in backend:
            continue
        async with AsyncExitStack() as stack:
            stores = {size: stack.enter_context(filled(places, backend, size)) for size in ends}
            sides = {size: [each async for each in _opened(made, size, stack)] for size, made in stores.items()}
            async for result in _results(sides, rounds):
                yield result
            for size, made in stores.items():
                async for cost in _with_vectors(made, sides[size][0].name, size, rounds, vectors=size == ends[0]):
                    yield cost


async def _opened(made: Filled, size: int, stack: AsyncExitStack) -> AsyncIterator[Compared]:
    service = MemoryService(made.store, embedder=None)
    await made.store.initialize()
    match made.backend:
        case "sqlite":
            yield Compared("sqlite sync", size, Blocking(service), BareSQLiteLongTerm(made.bare), 2.0, 4.0)
            suspending = await BareAiosqliteLongTerm.open(made.bare)
            stack.push_async_callback(suspending.close)
            yield Compared("sqlite async", size, Suspending(service), suspending, 1.3, 2.0)
        case "postgresql":
            bare = await BareAsyncpgLongTerm.open(made.bare, made.name)
            stack.push_async_callback(bare.close)
            yield Compared("postgresql async", size, Suspending(service), bare)
            blocking = BarePsycopgLongTerm(made.bare, made.name)
            stack.push_async_callback(blocking.close)
            yield Compared("postgresql sync", size, Blocking(service), blocking)
        case "mongodb":
            client: AsyncMongoClient[Any] = AsyncMongoClient(made.bare, maxPoolSize=10)
            stack.push_async_callback(client.close)
            yield Compared("mongodb async", size, Suspending(service), BareMongoLongTerm(client, made.name))


async def _results(sides: Mapping[int, Sequence[Compared]], rounds: int) -> AsyncIterator[Result | Growth]:
    every = [side for compared in sides.values() for side in compared]
    for side in every:
        for read in _reads(side.size):
            yield await _measured(side, read, rounds)
    for few, many in zip(sides[min(sides)], sides[max(sides)], strict=True):
        for read in _reads(few.size):
            if read.is_flat and few is not many:
                yield await _growth(few, many, read.operation, rounds)
    for side in every:
        for write in _WRITES:
            yield await _written(side, write, rounds)
    for side in sides[min(sides)]:
        if side.is_concurrent:
            yield await _together(side, rounds)
            yield await _written(side, "set_fact, new value", rounds, _CALLERS)


# Reads

Ask = Callable[[LongTerm, int, int], Awaitable[Any]]
"""Given a side, how many facts there are, and how many questions there were before."""


@dataclass(frozen=True)
class _Read:
    operation: str
    ask: Ask
    is_flat: bool = True
    """Whether the number of facts should not matter."""
    operations: int = _OPERATIONS
    items: int = 1

    def of(self, side: LongTerm, size: int) -> Work:
        turns = count()

        async def read() -> None:
            assert await self.ask(side, size, next(turns)) is not None

        return read


def _ids(size: int, turn: int) -> Ids:
    agent, session = AGENTS[turn % len(AGENTS)], _one_of(sessions(size), turn)
    return Ids(agent, _one_of(people(size), turn), session)


def _one_of(names: Sequence[str], turn: int) -> str:
    return names[turn * _STEP % len(names)]


def _a_global_key(size: int, turn: int) -> str:
    return global_key(turn * _STEP % global_count(size))


def _get(side: LongTerm, size: int, turn: int) -> Awaitable[Any]:
    return side.get(_a_global_key(size, turn), Ids())


def _get_of_four(side: LongTerm, size: int, turn: int) -> Awaitable[Any]:
    return side.get(_a_global_key(size, turn), _ids(size, turn))


def _find(side: LongTerm, size: int, turn: int) -> Awaitable[Any]:
    return side.find(personal_key(turn), Whose("user", _one_of(people(size), turn)))


def _recall(side: LongTerm, size: int, turn: int) -> Awaitable[Any]:
    return side.recall(personal_key(turn), _one_of(people(size), turn))


async def _context(side: LongTerm, size: int, turn: int) -> Any:
    found = (await side.context(_one_of(people(size), turn)))["facts"]
    assert len(found) == OF_A_PERSON
    return found


def _listed(side: LongTerm, size: int, turn: int) -> Awaitable[Any]:
    return side.listed(_ids(size, turn), _LISTED)


def _searching(query: str) -> Ask:
    def search(side: LongTerm, size: int, turn: int) -> Awaitable[Any]:
        return side.search(query, _ids(size, turn), _HITS)

    return search


def _reads(size: int) -> list[_Read]:
    slow = _FEW_OPERATIONS if size >= _MANY_FACTS else _OPERATIONS
    return [
        _Read("get_fact", _get),
        _Read("get_fact, four scopes", _get_of_four),
        _Read("find_fact", _find),
        _Read("recall of a key", _recall),
        _Read("get_user_context", _context, items=OF_A_PERSON),
        _Read(f"list_facts, {_LISTED}", _listed, items=_LISTED),
        _Read("search_facts, many hits", _searching(MANY), is_flat=False),
        _Read("search_facts, 3 hits", _searching(FEW), is_flat=False, operations=slow),
        _Read("search_facts, no hits", _searching(NONE), is_flat=False, operations=slow),
    ]


async def _measured(side: Compared, read: _Read, rounds: int) -> Result:
    found = [_plain(await read.ask(each, side.size, 1)) for each in (side.ours, side.bare)]
    assert found[0] == found[1], (read.operation, *found)
    works = read.of(side.ours, side.size), read.of(side.bare, side.size)
    times = await measure(*works, operations=read.operations, rounds=rounds)
    aim, limit = (1.3, 2.0) if read.items == _LISTED else (side.aim, side.limit)
    return Result(side.name, read.operation, 1, side.size, *times, aim, limit)


def _plain(found: Any) -> Any:
    """What a side has found, as both of them have it."""
    return [(each["key"], each["value"]) if isinstance(each, dict) else each for each in found]


async def _growth(few: Compared, many: Compared, operation: str, rounds: int) -> Growth:
    works = {}
    for side in (few, many):
        read = next(each for each in _reads(side.size) if each.operation == operation)
        works[str(side.size)] = read.of(side.ours, side.size)
    times = await interleaved(works, operations=_OPERATIONS, rounds=rounds)
    return Growth(few.name, operation, (few.size, many.size), times[str(few.size)], times[str(many.size)])


async def _together(side: Compared, rounds: int) -> Result:
    read = _Read("get_fact", _get)
    works = read.of(side.ours, side.size), read.of(side.bare, side.size)
    times = await measure(*works, operations=_CONCURRENT_OPERATIONS, callers=_CALLERS, rounds=rounds)
    return Result(side.name, read.operation, _CALLERS, side.size, *times, 1.0, 1.3)


# Writes

Put = Callable[[LongTerm, int, int], Awaitable[int | str]]
"""Given a side, how many facts there are, and how many writes there were before."""


def _new_key(side: LongTerm, size: int, turn: int) -> Awaitable[int]:
    return side.set(
        f"learned_{turn:06}", "The office is closed on Mondays.", Whose("user", _one_of(people(size), turn))
    )


def _new_value(side: LongTerm, size: int, turn: int) -> Awaitable[int]:
    person = Whose("user", _one_of(people(size), turn))
    return side.set(personal_key(turn % (OF_A_PERSON - 1)), f"Since visit {turn} it is another one.", person)


def _same_value(side: LongTerm, size: int, turn: int) -> Awaitable[int]:
    """Of the fact of each person that gets no other value."""
    person = Whose("user", _one_of(people(size), turn % _OPERATIONS))
    return side.set(personal_key(OF_A_PERSON - 1), "It is the same as always.", person)


def _remember(side: LongTerm, size: int, turn: int) -> Awaitable[str]:
    return side.remember(_a_global_key(size, turn), f"Since visit {turn} it is another one.")


_WRITES: Mapping[str, Put] = {
    "set_fact, new key": _new_key,
    "set_fact, new value": _new_value,
    "set_fact, same value": _same_value,
    "remember, new value": _remember,
}


async def _written(side: Compared, operation: str, rounds: int, callers: int = 1) -> Result:
    operations = _OPERATIONS if callers == 1 else _CONCURRENT_OPERATIONS
    works = [_writing(each, side, operation, callers) for each in (side.ours, side.bare)]
    times = await measure(*works, operations=operations, callers=callers, rounds=rounds)
    aim, limit = (side.aim, side.limit) if callers == 1 else (1.0, 1.3)
    return Result(side.name, operation, callers, side.size, *times, aim, limit)


def _writing(of: LongTerm, side: Compared, operation: str, callers: int = 1) -> Work:
    # Sides of both modes write to the same store: no key and no value of one is that of another.
    turns = count(_OF_A_MODE * (side.is_concurrent + (callers > 1)))
    is_new = operation == "set_fact, new key"

    async def write() -> None:
        said = await _WRITES[operation](of, side.size, next(turns))
        if isinstance(said, str):
            assert said.startswith("Remembered: "), said
            assert said.endswith("(updated)"), said
        else:
            assert (said == 1) is is_new, said

    return write


# Vectors


async def _with_vectors(
    made: Filled, name: str, size: int, rounds: int, *, vectors: bool
) -> AsyncIterator[WithVectors]:
    """One mode: what is added is the same in both."""
    services = {"without": MemoryService(made.store, embedder=None)}
    if vectors:
        services["vectors"] = MemoryService(made.store, embedder=WordLlamaEmbedder())
        services["vectors"].embed_missing()
    asked = {key: _searching_best(each, size) for key, each in services.items()}
    times = await interleaved(asked, operations=_FEW_OPERATIONS, rounds=rounds)
    backend = name.partition(" ")[0]
    yield WithVectors(backend, 'search_facts, mode="best"', size, times["without"], times.get("vectors"))
    if vectors:
        written = {key: _setting(each, size, offset) for offset, (key, each) in enumerate(services.items())}
        times = await interleaved(written, operations=_OPERATIONS, rounds=rounds)
        yield WithVectors(backend, "set_fact, new value", size, times["without"], times["vectors"])


def _searching_best(service: MemoryService, size: int) -> Work:
    turns = count()

    async def search() -> None:
        turn = next(turns)
        question = f"{_QUESTION} of {turn}"
        assert service.search_facts(question, **_ids(size, turn)._asdict(), limit=_HITS, mode="best")

    return search


def _setting(service: MemoryService, size: int, offset: int) -> Work:
    side, turns = Blocking(service), count(_OF_A_MODE * (3 + offset))

    async def write() -> None:
        await _new_value(side, size, next(turns))

    return write
