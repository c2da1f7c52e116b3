"""The sweeper: one process at a time, now and then, until it is closed. No test waits: the pauses are the test's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from firefly_memory import ConfigurationError, ConversationMemory, EntryStore, MemoryEntry, MemoryManager, SQLiteStore
from firefly_memory.clock import now
from firefly_memory.copying import async_copy_store
from firefly_memory.entries.scopes import CLAIMS
from firefly_memory.errors import DatabaseStoreError
from firefly_memory.protocols import ABSENT
from firefly_memory.sweeper import LEASE, Sweeper
from firefly_memory.testing.clock import StoppedClock, stopped
from tests.support.backends import Place
from tests.support.prune_worker import sweeping

HOUR = 3600.0


class Pauses:
    """Takes the place of sleeping: a pause lasts until the test ends it."""

    def __init__(self) -> None:
        self._begun: asyncio.Condition = asyncio.Condition()
        self._pauses: list[tuple[float, asyncio.Future[None]]] = []

    async def __call__(self, seconds: float) -> None:
        ended = asyncio.get_running_loop().create_future()
        async with self._begun:
            self._pauses.append((seconds, ended))
            self._begun.notify_all()
        await ended

    async def end(self, seconds: float) -> None:
        """Wait until somebody pauses for so long, and end the pause."""
        await self.begun(seconds)
        self._waiting(seconds)[0].set_result(None)

    async def begun(self, seconds: float) -> None:
        """Wait until somebody pauses for so long."""
        async with asyncio.timeout(30), self._begun:
            await self._begun.wait_for(lambda: self._waiting(seconds))

    def _waiting(self, seconds: float) -> list[asyncio.Future[None]]:
        return [ended for length, ended in self._pauses if length == seconds and not ended.done()]


@pytest.fixture
def clock() -> Iterator[StoppedClock]:
    with stopped() as clock:
        yield clock


Make = Callable[..., tuple[Sweeper, Pauses]]


@pytest.fixture
async def make(store: EntryStore) -> Make:
    for namespace in (CLAIMS, "n"):
        await store.async_clear(namespace)

    def sweeper(**options: Any) -> tuple[Sweeper, Pauses]:
        made, pauses = Sweeper(store, every=HOUR, **options), Pauses()
        made._wait = pauses
        return made, pauses

    return sweeper


async def old_things(store: EntryStore, clock: StoppedClock, name: str = "old") -> None:
    await ConversationMemory(store=store).async_add_turn(name, "question", "answer")
    await store.async_save("n", MemoryEntry(expires_at=now() + timedelta(seconds=1)))
    clock.advance(days=2)


async def ids(store: EntryStore) -> list[str]:
    return await ConversationMemory(store=store).async_conversation_ids()


async def test_each_sweep_deletes_what_is_too_old(store: EntryStore, make: Make, clock: StoppedClock) -> None:
    await old_things(store, clock)
    sweeper, pauses = make(older_than="1d")
    async with sweeper:
        await pauses.begun(HOUR)
        assert await ids(store) == []
        await old_things(store, clock, "again")
        await pauses.end(HOUR)
        await pauses.begun(HOUR)
        assert await ids(store) == []
        await old_things(store, clock, "later")
    assert await ids(store) == ["later"]


async def test_what_has_expired_is_deleted_without_any_bound(clock: StoppedClock, place: Place) -> None:
    async with SQLiteStore(place.directory / "own.db") as store:
        await old_things(store, clock)
        sweeper, pauses = Sweeper(store, every="1h"), Pauses()
        sweeper._wait = pauses
        async with sweeper:
            await pauses.begun(HOUR)
        assert await store.cleanup_expired() == 1, "the claim, which was given back"
        assert await ids(store) == ["old"]


async def test_the_settings_say_what_stays(
    store: EntryStore, make: Make, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_RETENTION_KEEP_LAST", "1")
    for name in ("a", "b", "c"):
        await old_things(store, clock, name)
    for options, left in (({"keep_last": 2}, ["b", "c"]), ({}, ["c"])):
        sweeper, pauses = make(**options)
        async with sweeper:
            await pauses.begun(HOUR)
        assert await ids(store) == left


async def test_one_of_two_sweeps_and_the_other_takes_over(
    store: EntryStore, make: Make, clock: StoppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    first, pauses = make(older_than="1d")
    second, others = make(older_than="1d")
    async with first:
        await pauses.begun(HOUR)
        async with second:
            for _ in range(3):
                await old_things(store, clock)
                clock.advance(days=-2)
                await others.end(HOUR)
                await others.begun(HOUR)
                assert await ids(store) == ["old"], "it is not its turn"
            await first.close()
            clock.advance(days=2)
            await others.end(HOUR)
            await others.begun(HOUR)
            assert await ids(store) == []


async def test_the_claim_of_a_dead_process_runs_out(store: EntryStore, make: Make, clock: StoppedClock) -> None:
    dead, pauses = make(older_than="1d")
    await dead.__aenter__()
    await pauses.begun(HOUR)
    assert dead._task is not None
    dead._task.cancel()  # as if it were killed: nothing is given back
    await asyncio.wait([dead._task])
    await old_things(store, clock)
    clock.advance(days=-2)
    heir, others = make(older_than="1d")
    async with heir:
        await others.begun(HOUR)
        assert await ids(store) == ["old"]
        clock.advance(days=2)
        await others.end(HOUR)
        await others.begun(HOUR)
        assert await ids(store) == []


async def test_a_claim_from_a_clock_that_was_far_ahead_is_taken_over(
    store: EntryStore, make: Make, clock: StoppedClock
) -> None:
    content = {"process": "x", "longest": 60.0}
    far = MemoryEntry(entry_id="firefly-memory:sweeper", content=content, expires_at=now() + timedelta(days=900))
    assert await store.async_save_if(CLAIMS, far, ABSENT)
    await old_things(store, clock)
    sweeper, pauses = make(older_than="1d")
    async with sweeper:
        await pauses.begun(HOUR)
        assert await ids(store) == []


async def test_an_error_is_logged_and_the_next_sweep_goes_on(
    store: EntryStore,
    make: Make,
    clock: StoppedClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await old_things(store, clock)
    sweeper, pauses = make(older_than="1d")

    def broken(*_: Any) -> Any:
        raise DatabaseStoreError("page", "the server is away")

    with monkeypatch.context() as patch:
        patch.setattr("firefly_memory.conversations.retention.ConversationPruner.doomed", broken)
        await sweeper.__aenter__()
        await pauses.begun(HOUR)
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        "pruning failed; the next sweep begins as usual"
    ]
    assert await ids(store) == ["old"]
    await pauses.end(HOUR)
    await pauses.begun(HOUR)
    assert await ids(store) == []
    await sweeper.close()
    await sweeper.close()


def held_up(patch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """A sweep that is in the middle of a batch, until the second event."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def delete(_: object, doomed: Any) -> Any:
        reached.set()
        await go_on.wait()
        return {}

    patch.setattr("firefly_memory.conversations.retention.ConversationPruner.delete", delete)
    return reached, go_on


async def test_close_stops_at_once_in_the_middle_of_a_sweep(
    store: EntryStore, make: Make, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await old_things(store, clock)
    sweeper, _ = make(older_than="1d")
    reached, _ = held_up(monkeypatch)
    async with asyncio.timeout(30), sweeper:
        await reached.wait()
    assert await store.async_load(CLAIMS) == []
    assert not [task for task in asyncio.all_tasks() if "Sweeper" in repr(task)]


async def test_a_long_sweep_renews_its_claim_and_ends_when_another_process_has_it(
    store: EntryStore, make: Make, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await old_things(store, clock)
    sweeper, pauses = make(older_than="1d")
    reached, _ = held_up(monkeypatch)
    async with sweeper:
        await reached.wait()
        for _ in range(3):
            clock.advance(seconds=LEASE / 3)
            await pauses.end(LEASE / 3)
            await pauses.begun(LEASE / 3)
            (claim,) = await store.async_load(CLAIMS)
            assert claim.expires_at == now() + timedelta(seconds=LEASE)
        clock.advance(seconds=2 * LEASE)
        mine = MemoryEntry(entry_id=claim.entry_id, content={"process": "another", "longest": 1e6}, expires_at=None)
        assert await store.async_save_if(CLAIMS, mine, ABSENT)
        await pauses.end(LEASE / 3)
        await pauses.begun(HOUR)
    assert [each.content for each in await store.async_load(CLAIMS)] == [mine.content]
    await store.async_clear(CLAIMS)


async def test_the_claim_is_not_copied_along(place: Place) -> None:
    path = place.directory
    async with SQLiteStore(path / "source.db") as source, SQLiteStore(path / "target.db") as target:
        sweeper, pauses = Sweeper(source, every="1h"), Pauses()
        sweeper._wait = pauses
        async with sweeper:
            await pauses.begun(HOUR)
            result = await async_copy_store(source, target)
            assert result.equal
            assert result.source.counts.entries == 0


def test_of_two_processes_one_sweeps(place: Place) -> None:
    path = place.directory / "memory.db"
    with SQLiteStore(path) as store, stopped(now() - timedelta(days=2)):
        ConversationMemory(store=store).add_turn("old", "question", "answer")
    first, is_swept = sweeping(path)
    second, is_swept_again = sweeping(path)
    assert (is_swept, is_swept_again) == (True, False)
    first.communicate("")
    third, is_handed_over = sweeping(path)
    assert is_handed_over
    for each in (second, third):
        each.communicate("")
    assert [each.returncode for each in (first, second, third)] == [0, 0, 0]
    with SQLiteStore(path) as store:
        assert ConversationMemory(store=store).conversation_ids == []


@pytest.mark.parametrize("wrong", [{"every": 0}, {"every": "often"}, {"every": "1h", "keep_last": 0}])
async def test_wrong_arguments_are_refused(store: EntryStore, wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        Sweeper(store, **wrong)


async def test_a_sweeper_is_started_once(make: Make) -> None:
    sweeper, pauses = make()
    async with sweeper:
        with pytest.raises(ConfigurationError):
            await sweeper.__aenter__()
        await pauses.begun(HOUR)


async def test_nothing_is_swept_by_a_manager_alone(store: EntryStore, clock: StoppedClock) -> None:
    await old_things(store, clock)
    await MemoryManager(store=store).async_add_turn("new", "question", "answer")
    assert sorted(await ids(store)) == ["new", "old"]
