"""Conversations that are copied while others write and delete: the copy is whole, or it is not there."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pymongo
import pytest

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    ConversationTurn,
    EntryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    UnknownConversationError,
)
from firefly_memory.colours import finish
from firefly_memory.stores.mongodb import conversation_documents
from firefly_memory.stores.sql import conversation_operations
from firefly_memory.stores.sql.operation import REPEAT, operation, reads
from tests.backends import Place
from tests.conversing import NOW, a_turn, is_gap_free, new_id
from tests.five_methods import FolderStore
from tests.interrupting import cancelled_at
from tests.test_conversation_races_mongodb import AtCommand


async def test_a_copy_is_whole_while_others_append_and_delete(store: EntryStore) -> None:
    memory = ConversationMemory(store=store)

    async def copy(name: str) -> str | None:
        try:
            return await memory.async_fork_conversation(name)
        except UnknownConversationError:
            return None

    copies = 0
    for number in range(30):
        name = f"copied {number}"
        for turn in range(5):
            await memory.async_add_turn(name, f"prompt {turn}", "answer")
        appending = [memory.async_add_turn(name, f"late {late}", "answer") for late in range(4)]
        results: list[Any] = await asyncio.gather(copy(name), *appending, memory.async_clear(name))
        fork = results[0]
        if fork is None:
            continue
        copies += 1
        turns = await memory.async_get_turns(fork)
        assert is_gap_free(turns)
        assert [turn.user_prompt for turn in turns[:5]] in ([f"prompt {n}" for n in range(5)], [], _late(turns[:5]))
        assert await memory.async_get_total_tokens(fork) == sum(turn.token_estimate for turn in turns)
        assert (await memory.async_add_turn(fork, "goes on", "")).turn_id == len(turns)
    assert copies


def _late(turns: list[Any]) -> list[str]:
    """The prompts, if all of them were said after the conversation was deleted and made again."""
    return [turn.user_prompt for turn in turns if turn.user_prompt.startswith("late")]


async def test_of_copies_to_one_id_one_is_made(store: EntryStore) -> None:
    memory = ConversationMemory(store=store)
    for name in ("a", "b"):
        for _ in range(3):
            await memory.async_add_turn(name, name, "answer")
    made = await asyncio.gather(
        *[memory.async_fork_conversation(name, "fork") for name in "abab"], return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in made) == ["ConflictError"] * 3 + ["str"]
    assert {turn.user_prompt for turn in await memory.async_get_turns("fork")} in ({"a"}, {"b"})
    assert len(await memory.async_get_turns("fork")) == 3


# SQL


def test_a_conversation_deleted_in_the_middle_leaves_no_part_of_a_copy(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, fork = new_id(), new_id()
    real = conversation_operations.conversation_head
    with PostgreSQLStore(place.postgresql()) as store, PostgreSQLStore(place.postgresql()) as other:
        memory, others = ConversationMemory(store=store), ConversationMemory(store=other)
        memory.add_turn(name, "prompt", "answer")

        @reads
        def deleted_meanwhile(session: Any, conversation_id: str) -> Any:
            if conversation_id == fork:
                others.clear(name)
            return real(session, conversation_id)

        monkeypatch.setattr(conversation_operations, "conversation_head", deleted_meanwhile)
        with pytest.raises(UnknownConversationError):
            memory.fork_conversation(name, fork)
        assert fork not in memory.conversation_ids
        assert memory.get_turns(fork) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_copy_whose_answer_was_lost_is_made_once(kind: str, place: Place) -> None:
    sqlite = kind == "sqlite"
    with SQLiteStore(place.directory / "a.db") if sqlite else PostgreSQLStore(place.postgresql()) as store:
        memory = ConversationMemory(store=store)
        log: Any = store.blocking.conversations
        name, fork, taken = new_id(), new_id(), new_id()
        memory.add_turn(name, "prompt", "answer")
        memory.new_conversation(taken)
        again = operation(on_lost_reply=REPEAT)(conversation_operations.fork_unless_forked)
        assert finish(log.fork(name, fork, None, NOW))
        assert finish(log._run(again, name, fork, None, NOW)), "it was this one"
        assert not finish(log._run(again, name, taken, None, NOW)), "that is somebody else's"
        assert finish(log._run(again, name, new_id(), None, NOW)), "it was not done yet"
        assert len(memory.get_turns(fork)) == 1


# MongoDB


@pytest.mark.parametrize("command", range(1, 7))
def test_whatever_happens_between_two_commands_a_copy_is_whole(command: int, place: Place) -> None:
    between = AtCommand()
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[between]) as listened,
        MongoDBStore(client=listened, database="forks") as store,
        MongoDBStore(place.mongodb(), database="forks") as other,
    ):
        memory, others = ConversationMemory(store=store), ConversationMemory(store=other)
        documents = listened["forks"]["memory_conversations"]
        for act in ("delete", "delete the copy", "take"):
            name, fork = new_id(), new_id()
            for _ in range(3):
                memory.add_turn(name, "prompt", "answer")

            def interfere(act: str = act, name: str = name, fork: str = fork) -> None:
                if act == "delete":
                    others.clear(name)
                elif act == "delete the copy":
                    others.clear(fork)
                else:
                    others.add_turn(fork, "somebody else's", "answer")

            between.arm(command, interfere)
            with contextlib.suppress(ConflictError, UnknownConversationError):
                memory.fork_conversation(name, fork)
            prompts = [turn.user_prompt for turn in memory.get_turns(fork)]
            assert prompts in ([], ["prompt"] * 3, ["somebody else's"], [*["prompt"] * 3, "somebody else's"])
            assert (fork in memory.conversation_ids) == bool(prompts)
            turns = {"conversation_id": fork, "turn_id": {"$exists": True}}
            assert documents.count_documents(turns) == len(prompts), "nothing is left behind"


def test_an_append_that_has_only_begun_is_not_in_the_way_of_a_copy(place: Place) -> None:
    between = AtCommand()
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[between]) as listened,
        MongoDBStore(client=listened, database="forks") as store,
        MongoDBStore(place.mongodb(), database="forks") as other,
    ):
        name, fork = new_id(), new_id()
        others = ConversationMemory(store=other)
        others.add_turn(name, "prompt", "answer")
        begun = conversation_documents.new_conversation(fork, NOW)  # by a writer who died before it was told
        listened["forks"]["memory_conversations"].insert_one(begun)
        between.arm(2, lambda: others.fork_conversation(name, fork))  # seen, but the turn is still to come
        head = finish(store.blocking.conversations.append(fork, a_turn("late"), None))
        assert head is not None
        assert [turn.user_prompt for turn in others.get_turns(fork)] == ["prompt", "late"]


@pytest.mark.parametrize("command", range(1, 8))
@pytest.mark.parametrize("begins", ["create", "fork"])
def test_a_turn_that_is_appended_while_its_conversation_is_made_is_not_lost(
    begins: str, command: int, place: Place
) -> None:
    """An earlier writer has made the conversation and died; another goes on with it at any moment."""
    between, name, new = AtCommand(), new_id(), new_id()
    appended: list[ConversationTurn] = []
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[between]) as listened,
        MongoDBStore(client=listened, database="forks") as store,
        MongoDBStore(place.mongodb(), database="forks") as other,
    ):
        memory, others = ConversationMemory(store=store), ConversationMemory(store=other)
        memory.add_turn(name, "prompt", "answer")
        begun = conversation_documents.new_conversation(new, NOW)
        listened["forks"]["memory_conversations"].insert_one(begun)
        between.arm(command, lambda: appended.append(others.add_turn(new, "late", "answer")))
        with contextlib.suppress(ConflictError):
            if begins == "create":
                memory.new_conversation(new)
            else:
                memory.fork_conversation(name, new)
        prompts = [turn.user_prompt for turn in others.get_turns(new)]
        assert [prompts[turn.turn_id] for turn in appended] == ["late"] * len(appended)
        assert others.add_turn(new, "next", "").turn_id == len(prompts)


async def test_a_copy_that_is_cancelled_leaves_nothing_behind(place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database="forks") as store:
        memory, name = ConversationMemory(store=store), new_id()
        for number in range(50):
            await memory.async_add_turn(name, f"prompt {number}", "answer")
        documents = store.database.suspending().conversations
        cancelled = 0
        for wait in range(1, 10):
            fork = new_id()
            try:
                await cancelled_at(wait, memory.async_fork_conversation(name, fork))
            except asyncio.CancelledError:
                cancelled += 1
            there = len(await memory.async_get_turns(fork))
            assert there in (0, 50)
            turns = {"conversation_id": fork, "turn_id": {"$exists": True}}
            assert await documents.count_documents(turns) == there
        assert cancelled


async def test_a_copy_that_fails_in_a_store_of_ones_own_is_not_there(place: Place) -> None:
    class Filling(FolderStore):
        room = 1_000

        def save(self, namespace: str, entry: MemoryEntry) -> None:
            if self.room == 0:
                raise OSError("the disk is full")
            self.room -= 1
            super().save(namespace, entry)

    inner = Filling(place.directory)
    memory = ConversationMemory(store=inner)
    for _ in range(3):
        memory.add_turn("a", "prompt", "answer")
    for room in range(5):
        inner.room = room
        with pytest.raises(Exception, match="disk is full"):
            memory.fork_conversation("a", "b")
        assert memory.conversation_ids == ["a"]
        assert memory.get_turns("b") == []
    inner.room = 1_000
    memory.fork_conversation("a", "b")
    assert len(memory.get_turns("b")) == 3
