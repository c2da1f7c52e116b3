"""A person with several ids and data in every facet, erased from every kind of store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConversationMemory, EntryStore, ErasedError, FileStore, InMemoryStore, erasing, service
from firefly_memory.erasure import async_erase, async_find_text, async_readmit, erase
from firefly_memory.errors import UnknownRecordError
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.longterm import MemoryService, people
from firefly_memory.longterm.people import LongTermEraser, MergedPeople
from firefly_memory.people import Owned
from tests.support.backends import Place
from tests.support.facet_samples import of_people
from tests.support.knowledge_stores import Letters
from tests.support.stored_facts import KINDS, kept, log_of, opened

SECRET = "Tarantella"
IDS = [f"web:{SECRET}", f"mail:{SECRET} \x00☃", f"telegram:{SECRET}-é"]
"""Of one person: the third was merged into the second, and then the second into the first."""


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EntryStore]:
    monkeypatch.setattr(people, "_PAGE", 2)
    async with opened(request.param, place, new_sqlite_file, "people_to_erase") as store:
        yield store
        for each in IDS:
            await async_readmit(store, each)


async def meet(memory: MemoryService, canonical_id: str, name: str | None = None) -> None:
    channel, _, known_as = canonical_id.partition(":")
    await memory.async_get_or_create_user(channel, known_as, name)


async def set_history(memory: MemoryService, key: str, owner: str, scope: Any = "user", times: int = 2) -> None:
    for number in range(times):
        await memory.async_set_fact(key, f"{number} of {owner}", scope=scope, user_id=owner)


async def merged_person(store: EntryStore, space: str = "default") -> MemoryService:
    """The person, with facts of each id before and after they were merged."""
    memory = MemoryService(store, space=space, embedder=Letters())
    for each in IDS:
        await meet(memory, each, f"name {each}")
        await set_history(memory, "colour", each)
        await set_history(memory, f"only of {each}", each, times=3)
        await set_history(memory, f"told by {each}", each, "global")
    await memory.async_merge_users(IDS[2], IDS[1])
    await memory.async_merge_users(IDS[1], IDS[0])
    for each in IDS:
        await set_history(memory, f"later of {each}", each)
        await set_history(memory, f"told later by {each}", each, "global")
    return memory


async def everywhere(store: EntryStore) -> MemoryService:
    """The same, with something in every facet under each id."""
    for store_data_of in of_people(store.suspending, "store_data_of"):
        if store_data_of.__module__.endswith(".longterm"):
            continue  # it makes people of the same ids
        for each in IDS:
            await store_data_of(store, each)
    await KnowledgeStore(store, embedder=Letters()).async_add("notes", f"with vectors: {SECRET}", owner=IDS[1])
    return await merged_person(store)


async def rows_in(store: EntryStore) -> dict[str, int]:
    return {each.kind: each.rows for each in await service.async_stats(store) if each.rows}


@pytest.mark.parametrize(("store", "which"), [*zip(KINDS, (0, 1, 2, 1), strict=True)], indirect=["store"])
async def test_nothing_of_a_merged_person_is_left_by_any_of_the_ids(store: EntryStore, which: int) -> None:
    before = await rows_in(store)
    memory = await everywhere(store)
    await set_history(memory, "of bob", "web:bob")
    of_bob = await async_find_text(store, "of bob")
    there = await rows_in(store)
    counted = await async_erase(store, IDS[which], dry_run=True)
    assert await async_find_text(store, SECRET) != {}
    receipt = await async_erase(store, IDS[which])
    assert await async_find_text(store, SECRET) == {}
    assert await async_find_text(store, "of bob") == of_bob
    after = await rows_in(store)
    assert receipt.rows == {kind: there[kind] - after.get(kind, 0) for kind in there if there[kind] != after.get(kind)}
    assert (receipt.further_ids, receipt.rows["users"]) == (2, 3)
    assert (counted.rows, counted.further_ids, counted.is_dry_run) == (receipt.rows, 2, True)
    assert after == {**before, "facts": 1, "fact-versions": 1}


async def test_late_writes_by_each_of_the_ids_are_refused(store: EntryStore) -> None:
    memory = await everywhere(store)
    await meet(memory, "web:bob")
    await async_erase(store, IDS[2])
    elsewhere = MemoryService(store, space="elsewhere", embedder=None)
    for each in IDS:
        for service_of in (memory, elsewhere):
            for scope in ("user", "global", "session", "agent"):
                with pytest.raises(ErasedError):
                    await service_of.async_set_fact("late", 1, scope=scope, user_id=each, session_id="s", agent_id="a")
            with pytest.raises(ErasedError):
                await meet(service_of, each)
            for source, target in ((each, "web:bob"), ("web:bob", each)):
                with pytest.raises(UnknownRecordError):
                    await service_of.async_merge_users(source, target)
            assert not await service_of.async_update_preferences(each, {"late": 1})
            assert not await service_of.async_count_conversation(each)
        with pytest.raises(ErasedError):
            await ConversationMemory(store=store).async_add_turn("late", "p", "a", owner=each)
        with pytest.raises(ErasedError):
            await KnowledgeStore(store, embedder=None).async_add("late", "late", owner=each)
    assert await async_find_text(store, SECRET) == {}
    assert await async_find_text(store, "late") == {}
    for each in IDS:
        assert await async_readmit(store, each)
        await meet(memory, each)
        user = await memory.async_get_user(each)
        assert user is not None
        assert (user.merged_into_id, user.display_name, user.preferences_cache) == (None, None, {})


async def test_what_somebody_said_before_in_the_fact_of_another_goes_and_the_fact_stays(store: EntryStore) -> None:
    memory = MemoryService(store, embedder=None)
    for owner in (IDS[0], IDS[0], "web:bob", None):
        fact = await memory.async_set_fact("office", f"by {owner}", scope="global", user_id=owner)
        again = await memory.async_set_fact("office", f"by {owner} again", scope="global", user_id=owner)
    counted = await async_erase(store, IDS[0], dry_run=True)
    receipt = await async_erase(store, IDS[0])
    assert counted.rows == receipt.rows == {"fact-versions": 4}
    assert again.id == fact.id
    assert [(each.number, each.value) for each in await memory.async_history(fact.id)] == [
        (5, "by web:bob"), (6, "by web:bob again"), (7, "by None"),
    ]  # fmt: skip
    assert await memory.async_get_fact("office") == "by None again"
    assert (await memory.async_set_fact("office", "new")).id == fact.id
    assert [each.number for each in await memory.async_history(fact.id)] == [5, 6, 7, 8]


async def test_ids_are_followed_from_one_space_to_the_next(store: EntryStore) -> None:
    """The first and the second id are one person in one space, the second and the third in another one."""
    spaces = [MemoryService(store, space=name, embedder=None) for name in ("one", "two", "three")]
    for memory in spaces:
        for each in IDS:
            await meet(memory, each)
            await set_history(memory, "colour", each)
    await spaces[0].async_merge_users(IDS[0], IDS[1])
    await spaces[1].async_merge_users(IDS[1], IDS[2])
    receipt = await async_erase(store, IDS[0])
    assert (receipt.further_ids, receipt.rows["users"]) == (2, 9)
    assert await kept(store) == ([], [], [])


class KilledError(BaseException):
    """The process is gone."""


@contextmanager
def ending_after(monkeypatch: pytest.MonkeyPatch, last: int) -> Iterator[None]:
    """Let an erasure end after so many of its writes, as if its process was killed."""
    left = iter(range(last))

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*arguments: Any) -> Any:
            result = await call(*arguments)
            if next(left, None) is None:
                raise KilledError
            return result

        return called

    class Ending:
        """An object whose writes are counted."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._inner, name)
            return counted(found) if name in ("add", "delete", "scrub", "clear") else found

    class EndingErasure(erasing._Erasure):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._tombstones: Any = Ending(self._tombstones)

    erasers, aliases = erasing._erasers_in, erasing._aliases_in
    with monkeypatch.context() as patch:
        patch.setattr(erasing, "_Erasure", EndingErasure)
        patch.setattr(erasing, "_erasers_in", lambda view: map(Ending, erasers(view)))
        patch.setattr(erasing, "_aliases_in", lambda view: map(Ending, aliases(view)))
        yield


@pytest.mark.parametrize("kind", KINDS[:2])
async def test_an_erasure_that_was_killed_at_any_step_finds_the_other_ids_again(
    kind: str, place: Place, new_sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = 0
    async with opened(kind, place, new_sqlite_file, "people_to_erase") as store:
        while True:
            await merged_person(store)
            await ConversationMemory(store=store).async_add_turn("chat", SECRET, SECRET, owner=IDS[1])
            try:
                with ending_after(monkeypatch, ends):
                    await async_erase(store, IDS[2])
                break
            except KilledError:
                ends += 1
            await async_erase(store, IDS[2])
            assert await async_find_text(store, SECRET) == {}, ends
            for each in IDS:
                await async_readmit(store, each)
        for each in IDS:
            await async_readmit(store, each)
    assert ends > 20, "each step was the last one once"


async def test_somebody_who_is_merged_while_the_erasure_begins_is_erased_as_well(
    store: EntryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = MemoryService(store, embedder=None)
    for each in IDS:
        await meet(memory, each)
        await set_history(memory, "colour", each)
    same, merges = MergedPeople.same, iter([(IDS[0], IDS[1]), (IDS[1], IDS[2])])

    async def merge_after(this: MergedPeople, owners: Any) -> Any:
        found = await same(this, owners)
        for source, target in merges:
            await memory.async_merge_users(source, target)
            break
        return found

    monkeypatch.setattr(MergedPeople, "same", merge_after)
    receipt = await async_erase(store, IDS[0])
    assert (receipt.further_ids, receipt.rows["users"]) == (2, 3)
    assert await async_find_text(store, SECRET) == {}
    for each in IDS:
        with pytest.raises(ErasedError):
            await meet(memory, each)


async def test_a_person_is_erased_while_they_are_written(store: EntryStore) -> None:
    memory = MemoryService(store, embedder=None)
    for each in IDS:
        await meet(memory, each)
    started = asyncio.Event()

    async def write(owner: str, number: int) -> None:
        for turn in itertools.count():
            try:
                await memory.async_set_fact(f"key {number}", [owner, turn], scope="user", user_id=owner)
                await memory.async_set_fact(f"told {number}", [owner, turn], scope="global", user_id=owner)
                await meet(memory, owner)
                await memory.async_update_preferences(owner, {f"preference {number}": turn})
            except ErasedError:
                return
            if turn == 2:
                started.set()
            await asyncio.sleep(0)  # a store in memory would let nobody else in

    async def merge() -> None:
        for source, target in ((IDS[2], IDS[1]), (IDS[1], IDS[0])):
            try:
                await memory.async_merge_users(source, target)
            except (ErasedError, UnknownRecordError):
                return

    writers = [asyncio.create_task(write(each, number)) for number, each in enumerate(IDS * 2)]
    merging = asyncio.create_task(merge())
    await started.wait()
    await merging
    await async_erase(store, IDS[0])
    await asyncio.gather(*writers)
    assert await async_find_text(store, SECRET) == {}
    assert await kept(store) == ([], [], [])


async def test_the_eraser_finds_facts_then_versions_in_the_facts_of_others(store: EntryStore) -> None:
    memory = MemoryService(store, embedder=None)
    await set_history(memory, "mine", IDS[0], times=3)
    await set_history(memory, "shared", IDS[0], "global")
    shared = await memory.async_set_fact("shared", "by bob", scope="global", user_id="web:bob")
    eraser, owner = LongTermEraser(store.suspending), IDS[0]
    pages = [page async for page in eraser.owned(owner)]
    (mine,) = [row.id for row in await log_of(store).facts.page(9, "") if row.key == "mine"]
    assert pages == [
        [Owned(mine, (), {"facts": 1, "fact-versions": 2})],
        [Owned(f"{shared.id}/{number}", (), {"fact-versions": 1}) for number in (1, 2)],
    ]
    assert [page async for page in eraser.owned("nobody")] == []
    assert await eraser.delete(()) == {}
    assert [await eraser.delete(page) for page in pages] == [{"facts": 1, "fact-versions": 2}, {"fact-versions": 2}]
    assert await MergedPeople(store.suspending).owned([owner]) == []


def test_a_store_without_long_term_memory_knows_no_further_ids(tmp_path: Path) -> None:
    for store in (FileStore(tmp_path), InMemoryStore()):
        with store:
            assert erase(store, "ann").further_ids == 0
