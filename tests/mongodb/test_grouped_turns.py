"""Turns that tasks append to conversations in MongoDB at the same moment: together, each as if it had been alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from firefly_memory import MongoDBStore
from firefly_memory.conversations.log import CONVERSATION_LOG, Appended, ConversationLog, StoredTurn
from firefly_memory.conversations.mongodb.log import MongoConversationLog
from tests.support.backends import Place
from tests.support.turns import a_turn, is_gap_free, new_id

DATABASE = "grouped_turns"


class Groups:
    """Which turns went to the database together. The first waits until it is told to go on."""

    def __init__(self, real: Callable[..., Awaitable[Any]]) -> None:
        self.made: list[tuple[str, list[str]]] = []
        self.go_on = asyncio.Event()
        self._real = real

    async def append_all(
        self,
        log: MongoConversationLog,
        conversation_id: str,
        drafts: Sequence[StoredTurn],
        expected: int | None,
        owner: str | None = None,
    ) -> Any:
        self.made.append((conversation_id, [draft.user_prompt for draft in drafts]))
        await self.go_on.wait()
        return await self._real(log, conversation_id, drafts, expected, owner)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    made = Groups(MongoConversationLog.append_all)

    def append_all(log: MongoConversationLog, *arguments: Any) -> Any:
        return made.append_all(log, *arguments)

    monkeypatch.setattr(MongoConversationLog, "append_all", append_all)
    return made


async def appending(
    log: ConversationLog, groups: Groups, appends: Sequence[tuple[str, StoredTurn, int | None]]
) -> list[asyncio.Task[Appended | None]]:
    """The tasks that append, once all of them have begun."""
    tasks = [asyncio.ensure_future(log.append(*each)) for each in appends]
    await asyncio.sleep(0)
    return tasks


async def test_the_turns_of_one_conversation_go_together_and_of_another_apart(place: Place, groups: Groups) -> None:
    one, other = new_id(), new_id()
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log = store.suspending.log(CONVERSATION_LOG)
        tasks = await appending(log, groups, [((one, other)[n % 2], a_turn(f"{n}"), None) for n in range(8)])
        assert groups.made == [(one, ["0"]), (other, ["1"])], "nobody waits for another conversation"
        groups.go_on.set()
        appended = await asyncio.gather(*tasks)
        assert sorted(groups.made[2:]) == sorted([(one, ["2", "4", "6"]), (other, ["3", "5", "7"])])
        assert [each and each.turns for each in appended] == [1, 1, 2, 2, 3, 3, 4, 4]
        for name, prompts in ((one, ["0", "2", "4", "6"]), (other, ["1", "3", "5", "7"])):
            turns = await log.turns(name, -1, None)
            assert is_gap_free(list(turns))
            assert [turn.user_prompt for turn in turns] == prompts
            await log.delete(name)


async def test_a_turn_that_expects_a_number_of_turns_joins_no_group(place: Place, groups: Groups) -> None:
    name = new_id()
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log = store.suspending.log(CONVERSATION_LOG)
        groups.go_on.set()
        await log.append(name, a_turn("first"), None)
        groups.go_on.clear()
        tasks = await appending(log, groups, [(name, a_turn("a"), None), (name, a_turn("b"), None)])
        (expecting,) = await appending(log, groups, [(name, a_turn("expecting"), 7)])
        assert groups.made[1:] == [(name, ["a"]), (name, ["expecting"])]
        groups.go_on.set()
        assert await expecting is None, "there were never seven"
        assert [each and each.turns for each in await asyncio.gather(*tasks)] == [2, 3]
        await log.delete(name)


async def test_a_caller_that_gives_up_while_its_turn_waits_has_appended_nothing(place: Place, groups: Groups) -> None:
    name = new_id()
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log = store.suspending.log(CONVERSATION_LOG)
        tasks = await appending(log, groups, [(name, a_turn(prompt), None) for prompt in "abc"])
        tasks[1].cancel()
        groups.go_on.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[1], asyncio.CancelledError)
        assert groups.made == [(name, ["a"]), (name, ["c"])]
        assert [turn.user_prompt for turn in await log.turns(name, -1, None)] == ["a", "c"]
        await log.delete(name)


async def test_a_caller_that_gives_up_while_its_group_is_appended_goes_on_when_it_is_there(
    place: Place, groups: Groups
) -> None:
    name = new_id()
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log = store.suspending.log(CONVERSATION_LOG)
        groups.go_on.set()
        await log.append(name, a_turn("first"), None)
        tasks = await appending(log, groups, [(name, a_turn(prompt), None) for prompt in "abc"])
        async with asyncio.timeout(60):
            while len(groups.made) < 3:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        assert [turn.user_prompt for turn in await log.turns(name, -1, None)] == ["first", "a", "b", "c"]
        await asyncio.gather(tasks[0], tasks[2])
        await log.delete(name)
