"""Group commit: when saves form a group, and when they do not. Plain coroutines stand for the database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from firefly_memory.concurrency.group_commit import LARGEST_GROUP, GroupedWrite, Grouping
from firefly_memory.entries.record import Record

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def record(entry_id: str) -> Record:
    return Record(entry_id, "n", "working", None, "1", "{}", NOW, None, 0.5)


class Place:
    """Where the saves go. It answers when it is told to, or at once."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.calls: list[list[str]] = []
        self.refuse: set[str] = set()
        self.break_on: set[str] = set()
        self.answer = asyncio.Event()
        if at_once:
            self.answer.set()
        saves = Grouping(
            key=lambda record, _: record.entry_id,
            size=lambda record, _: len(record.content),
            several=self.save_group,
            after_cancellation=self.save_one,
            after_lost_reply=self.save_one,
        )
        self.commit = GroupedWrite(self.save_one, saves, retryable=True)

    async def save_one(self, record: Record, now: datetime) -> None:
        self.calls.append([record.entry_id])
        await self.answer.wait()
        if record.entry_id in self.break_on:
            raise ArithmeticError(record.entry_id)
        if record.entry_id in self.refuse:
            raise LookupError(record.entry_id)

    async def save_group(self, saves: list[tuple[Record, datetime]]) -> list[Exception | None]:
        records = [record for record, _ in saves]
        self.calls.append([record.entry_id for record in records])
        await self.answer.wait()
        if self.break_on & {record.entry_id for record in records}:
            raise ArithmeticError("the whole group")
        return [LookupError(record.entry_id) if record.entry_id in self.refuse else None for record in records]

    def save(self, entry_id: str) -> asyncio.Task[None]:
        return asyncio.create_task(self.commit(record(entry_id), NOW))


async def until(condition: object) -> None:
    """Let the other tasks go on until something has happened."""
    assert callable(condition)
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)


async def test_a_single_save_is_made_at_once() -> None:
    place = Place(at_once=True)
    for name in "abc":
        await place.commit(record(name), NOW)
    assert place.calls == [["a"], ["b"], ["c"]]


async def test_saves_that_arrive_during_a_save_form_a_group() -> None:
    place = Place()
    tasks = [place.save(name) for name in "abcd"]
    await until(lambda: place.calls)
    assert place.calls == [["a"]]
    assert not any(task.done() for task in tasks)
    place.answer.set()
    await asyncio.gather(*tasks)
    assert place.calls == [["a"], ["b", "c", "d"]]


async def test_two_saves_of_one_entry_keep_their_order() -> None:
    place = Place()
    tasks = [place.save(name) for name in ["x", "a", "b", "a", "a"]]
    await until(lambda: place.calls)
    place.answer.set()
    await asyncio.gather(*tasks)
    assert place.calls == [["x"], ["a", "b"], ["a"], ["a"]]


async def test_a_group_has_a_maximal_size() -> None:
    place = Place()
    tasks = [place.save(f"id-{number}") for number in range(LARGEST_GROUP + 2)]
    await until(lambda: place.calls)
    place.answer.set()
    await asyncio.gather(*tasks)
    assert [len(call) for call in place.calls] == [1, LARGEST_GROUP, 1]


async def test_every_caller_gets_its_own_result() -> None:
    place = Place()
    place.refuse = {"b", "x"}
    tasks = [place.save(name) for name in ["x", "a", "b", "c"]]
    await until(lambda: place.calls)
    place.answer.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [LookupError, type(None), LookupError, type(None)]


async def test_the_saves_of_a_failed_group_are_tried_one_by_one() -> None:
    place = Place()
    place.break_on = {"b"}
    tasks = [place.save(name) for name in ["x", "a", "b", "c"]]
    await until(lambda: place.calls)
    place.answer.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), type(None), ArithmeticError, type(None)]
    assert place.calls[:2] == [["x"], ["a", "b", "c"]]
    assert sorted(place.calls[2:]) == [["a"], ["b"], ["c"]]


async def test_a_cancelled_caller_does_not_cancel_the_others() -> None:
    place = Place()
    tasks = [place.save(name) for name in ["x", "a", "b", "c"]]
    await until(lambda: place.calls)
    tasks[0].cancel()  # saving
    tasks[2].cancel()  # waiting
    await until(lambda: len(place.calls) == 2)
    place.answer.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [
        asyncio.CancelledError, type(None), asyncio.CancelledError, type(None),
    ]  # fmt: skip
    assert place.calls == [["x"], ["a", "c"]]


async def test_a_caller_cancelled_during_the_save_does_not_cancel_the_others() -> None:
    place = Place()
    tasks = [place.save(name) for name in ["x", "a", "b"]]
    await until(lambda: place.calls)
    tasks[0].cancel()
    await until(lambda: len(place.calls) == 2)
    tasks[1].cancel()
    await asyncio.sleep(0)
    place.answer.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results][1:] == [asyncio.CancelledError, type(None)]
    place.break_on = {"c"}
    await place.commit(record("d"), NOW)
    with pytest.raises(ArithmeticError):
        await place.commit(record("c"), NOW)


async def test_later_saves_do_not_wait_for_a_hanging_save() -> None:
    place = Place()
    hanging = place.save("x")
    await until(lambda: place.calls)
    others = [place.save(name) for name in "ab"]
    await until(lambda: len(place.calls) == 2)  # after some time, without an answer
    assert place.calls == [["x"], ["a", "b"]]
    late = place.save("c")
    await until(lambda: len(place.calls) == 3)
    place.answer.set()
    await asyncio.gather(hanging, late, *others)
    assert place.calls == [["x"], ["a", "b"], ["c"]]
    await place.commit(record("d"), NOW)
    assert place.calls[-1] == ["d"]


def drains() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if "_drain" in repr(task.get_coro())]


async def test_another_task_continues_when_the_saving_task_is_cancelled() -> None:
    place = Place()
    tasks = [place.save(name) for name in ["x", "a", "b"]]
    await until(lambda: place.calls)
    tasks[0].cancel()
    await until(lambda: len(place.calls) == 2)
    tasks.append(place.save("c"))
    (drain,) = drains()
    drain.cancel()
    await until(lambda: len(place.calls) == 3)
    place.answer.set()
    async with asyncio.timeout(60):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError, type(None), type(None), type(None)]
    assert place.calls == [["x"], ["a", "b"], ["a"], ["b"], ["c"]], "what may have been written goes alone"
    await place.commit(record("d"), NOW)
    assert place.calls[-1] == ["d"]


async def test_the_other_saving_task_continues_when_one_is_cancelled() -> None:
    place = Place()
    hanging = place.save("x")
    await until(lambda: place.calls)
    tasks = [place.save("a")]
    await until(lambda: len(place.calls) == 2)  # the lone save is overdue
    (overdue,) = drains()
    tasks.append(place.save("b"))
    await until(lambda: len(place.calls) == 3)  # and so is the first task
    overdue.cancel()
    place.answer.set()
    async with asyncio.timeout(60):
        await asyncio.gather(hanging, *tasks)
    assert place.calls == [["x"], ["a"], ["b"], ["a"]]


async def test_nothing_is_saved_when_every_caller_is_cancelled() -> None:
    place = Place()
    tasks = [place.save(name) for name in ["x", "a", "b"]]
    await until(lambda: place.calls)
    tasks[0].cancel()
    await until(lambda: len(place.calls) == 2)
    late = place.save("c")
    await asyncio.sleep(0)
    everybody = [*drains(), *tasks, late]
    for task in everybody:
        task.cancel()
    await asyncio.gather(*everybody, return_exceptions=True)
    assert not drains()
    place.answer.set()
    await place.commit(record("d"), NOW)
    assert place.calls == [["x"], ["a", "b"], ["d"]]


async def test_a_cancelled_call_waits_for_its_running_save() -> None:
    """Or it might be written after what its caller, or somebody else, saves next."""
    place = Place()
    tasks = [place.save(name) for name in ["x", "a", "b"]]
    await until(lambda: place.calls)
    tasks[0].cancel()
    await until(lambda: len(place.calls) == 2)
    for _ in range(3):
        tasks[1].cancel()
        await asyncio.sleep(0)
    assert not tasks[1].done()
    place.answer.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results[1:]] == [asyncio.CancelledError, type(None)]
