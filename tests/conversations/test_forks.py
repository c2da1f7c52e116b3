"""Forks of conversations during concurrent writes and deletions: a fork is whole or absent."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pymongo
import pytest

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    ConversationTurn,
    CorruptDataError,
    EntryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    UnknownConversationError,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.mongodb import documents as new_documents
from firefly_memory.conversations.mongodb import queries
from firefly_memory.conversations.mongodb.documents import ALL, CONVERSATIONS
from firefly_memory.conversations.mongodb.making import Maker
from firefly_memory.conversations.mongodb.tries import tries_of
from firefly_memory.conversations.sql import operations as conversation_operations
from firefly_memory.databases.sql.operation import REPEAT, operation, reads
from firefly_memory.tombstones.mongodb.gates import Gate
from tests.support.backends import Place
from tests.support.cancellation import cancelled_at
from tests.support.folder_backend import FolderStore
from tests.support.mongodb_commands import AtCommand
from tests.support.turns import NOW, a_turn, is_gap_free, new_id


async def test_a_fork_is_whole_while_others_append_and_delete(store: EntryStore) -> None:
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


async def test_of_several_forks_to_one_id_only_one_succeeds(store: EntryStore) -> None:
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


def test_a_deletion_of_the_source_leaves_no_partial_fork(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_fork_whose_reply_was_lost_is_made_once(kind: str, place: Place) -> None:
    sqlite = kind == "sqlite"
    with SQLiteStore(place.directory / "a.db") if sqlite else PostgreSQLStore(place.postgresql()) as store:
        memory = ConversationMemory(store=store)
        log: Any = store.blocking.log(CONVERSATION_LOG)
        name, fork, taken = new_id(), new_id(), new_id()
        memory.add_turn(name, "prompt", "answer")
        memory.new_conversation(taken)
        view: Any = store.blocking
        executor = view._backend.initialize.__self__
        again = executor.method(operation(on_lost_reply=REPEAT)(conversation_operations.fork_unless_forked))
        assert run_without_loop(log.fork(name, fork, None, NOW))
        assert run_without_loop(again(name, fork, None, NOW)), "it was this one"
        assert not run_without_loop(again(name, taken, None, NOW)), "that is somebody else's"
        assert run_without_loop(again(name, new_id(), None, NOW)), "it was not done yet"
        assert len(memory.get_turns(fork)) == 1


# MongoDB


@pytest.mark.parametrize("command", range(1, 7))
def test_a_fork_is_whole_whatever_happens_between_two_commands(command: int, place: Place) -> None:
    between = AtCommand()
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[between]) as listened,
        MongoDBStore(client=listened, database="forks") as store,
        MongoDBStore(place.mongodb(), database="forks") as other,
    ):
        memory, others = ConversationMemory(store=store), ConversationMemory(store=other)
        documents = listened["forks"]["memory_conversations"]
        for act in ("delete", "delete the copy", "delete all", "copy as well", "take"):
            name, fork = new_id(), new_id()
            for _ in range(3):
                memory.add_turn(name, "prompt", "answer")

            def interfere(act: str = act, name: str = name, fork: str = fork) -> None:
                if act == "delete":
                    others.clear(name)
                elif act == "delete the copy":
                    others.clear(fork)
                elif act == "delete all":
                    others.clear_all()
                elif act == "copy as well":
                    with contextlib.suppress(ConflictError):
                        others.fork_conversation(name, fork)
                else:
                    others.add_turn(fork, "somebody else's", "answer")

            between.arm(command, interfere)
            with contextlib.suppress(ConflictError, UnknownConversationError):
                memory.fork_conversation(name, fork)
            prompts = [turn.user_prompt for turn in memory.get_turns(fork)]
            assert prompts in ([], ["prompt"] * 3, ["somebody else's"], [*["prompt"] * 3, "somebody else's"])
            assert (fork in memory.conversation_ids) == bool(prompts)
            assert prompts or act.startswith("delete")
            turns = {"conversation_id": fork, "turn_id": {"$exists": True}}
            assert documents.count_documents(turns) == len(prompts), "nothing is left behind"


def test_an_unfinished_append_does_not_block_a_fork(place: Place) -> None:
    between = AtCommand()
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[between]) as listened,
        MongoDBStore(client=listened, database="forks") as store,
        MongoDBStore(place.mongodb(), database="forks") as other,
    ):
        name, fork = new_id(), new_id()
        others = ConversationMemory(store=other)
        others.add_turn(name, "prompt", "answer")
        begun = new_documents.new_conversation(fork, NOW)  # by a writer who died before it was told
        listened["forks"]["memory_conversations"].insert_one(begun)
        between.arm(2, lambda: others.fork_conversation(name, fork))  # seen, but the turn is still to come
        head = run_without_loop(store.blocking.log(CONVERSATION_LOG).append(fork, a_turn("late"), None))
        assert head is not None
        assert [turn.user_prompt for turn in others.get_turns(fork)] == ["prompt", "late"]


@pytest.mark.parametrize("held_at", range(2, 6))
@pytest.mark.parametrize("deletes", ["clear", "clear_all"])
def test_a_fork_that_overlaps_a_deletion_is_whole_or_absent(deletes: str, held_at: int, place: Place) -> None:
    """It stops before one of its commands, and goes on to its end before one of those of the deletion."""
    copies, clears = AtCommand(), AtCommand()
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[copies]) as copying,
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[clears]) as clearing,
        MongoDBStore(client=copying, database="forks_in_deletions") as store,
        MongoDBStore(client=clearing, database="forks_in_deletions") as other,
        ThreadPoolExecutor(1) as threads,
    ):
        other.database.has_transactions = False  # one would hold what the copy writes, until this test lets it end
        memory, others = ConversationMemory(store=store), ConversationMemory(store=other)
        documents = copying["forks_in_deletions"]["memory_conversations"]
        for goes_on_at in range(1, 8):
            name, fork, held, goes_on = new_id(), new_id(), threading.Event(), threading.Event()
            for _ in range(3):
                memory.add_turn(name, "prompt", "answer")

            def hold(held: threading.Event = held, goes_on: threading.Event = goes_on) -> None:
                held.set()
                goes_on.wait()

            copies.arm(held_at, hold)
            copy = threads.submit(memory.fork_conversation, name, fork)
            held.wait()

            def let_it_end(goes_on: threading.Event = goes_on, copy: Future[str] = copy) -> None:
                goes_on.set()
                copy.exception()

            clears.arm(goes_on_at, let_it_end)
            if deletes == "clear":
                others.clear(fork)
            else:
                others.clear_all()
            clears.arm(0, lambda: None)
            goes_on.set()
            assert copy.exception() is None or isinstance(copy.exception(), UnknownConversationError)
            prompts = [turn.user_prompt for turn in memory.get_turns(fork)]
            assert prompts in ([], ["prompt"] * 3)
            assert (fork in memory.conversation_ids) == bool(prompts)
            assert documents.count_documents({"conversation_id": fork, "turn_id": {"$exists": True}}) == len(prompts)


@pytest.mark.parametrize("copied", [0, 2, 3])
async def test_turns_of_a_fork_that_died_are_invisible_and_block_nobody(copied: int, place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database="forks_that_died") as store:
        memory, log = ConversationMemory(store=store), store.suspending.log(CONVERSATION_LOG)
        name = new_id()
        for _ in range(3):
            await memory.async_add_turn(name, "prompt", "answer")
        documents = store.database.suspending()[CONVERSATIONS]
        (there,) = await (await documents.aggregate(queries.conversation(name))).to_list()
        source = await log.head(name)
        assert source is not None

        async def died() -> str:
            fork = new_documents.fork_of(source, new_id(), 3, NOW)
            await documents.insert_one(new_documents.forking(fork))
            await (await documents.aggregate(new_documents.copied_turns(there, fork, copied))).to_list()
            return str(fork["_id"])

        async def left(fork: str) -> int:
            return int(await documents.count_documents({"conversation_id": fork}))

        seen: list[list[str]] = []
        for goes_on in (
            lambda fork: memory.async_add_turn(fork, "new", ""),
            memory.async_new_conversation,
            lambda fork: memory.async_fork_conversation(name, fork, turns=1),
            memory.async_clear,
        ):
            fork = await died()
            assert await left(fork) == 1 + copied
            assert await memory.async_get_turns(fork) == []
            assert await memory.async_conversation_ids() == [name]
            await goes_on(fork)
            seen.append([turn.user_prompt for turn in await memory.async_get_turns(fork)])
            await memory.async_clear(fork)
            assert await left(fork) == 0
        assert seen == [["new"], [], ["prompt"], []]
        fork = await died()
        await memory.async_clear_all()
        assert await left(fork) == 0


def test_a_fork_that_fails_after_its_last_write_stays(place: Place) -> None:
    """Its answer was lost, and others may go on with it already."""
    with MongoDBStore(place.mongodb(), database="forks") as store:
        memory, connection = ConversationMemory(store=store), store.database.blocking()
        name, fork = new_id(), new_id()
        memory.add_turn(name, "prompt", "answer")
        memory.fork_conversation(name, fork)
        document = connection[CONVERSATIONS].find_one({"_id": fork})
        maker = Maker(connection, tries_of("fork", fork, 1.0), Gate(connection, ALL, "fork", ()))
        assert not run_without_loop(maker._give_up(document))
        assert [turn.user_prompt for turn in memory.get_turns(fork)] == ["prompt"]


def test_a_conversation_that_lacks_a_turn_is_not_forked(place: Place) -> None:
    with MongoDBStore(place.mongodb(), database="forks") as store:
        memory, (name, fork) = ConversationMemory(store=store), (new_id(), new_id())
        for _ in range(3):
            memory.add_turn(name, "prompt", "answer")
        documents = store.database.blocking()[CONVERSATIONS]
        documents.delete_one({"conversation_id": name, "turn_id": 1})
        with pytest.raises(CorruptDataError, match="2 of its first 3 turns"):
            memory.fork_conversation(name, fork)
        assert documents.count_documents({"conversation_id": fork}) == 0


@pytest.mark.parametrize("command", range(1, 8))
@pytest.mark.parametrize("begins", ["create", "fork"])
def test_a_turn_appended_to_a_half_created_conversation_is_not_lost(begins: str, command: int, place: Place) -> None:
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
        begun = new_documents.new_conversation(new, NOW)
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


async def test_a_cancelled_fork_leaves_nothing_behind(place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database="forks") as store:
        memory, name = ConversationMemory(store=store), new_id()
        for number in range(50):
            await memory.async_add_turn(name, f"prompt {number}", "answer")
        documents = store.database.suspending()[CONVERSATIONS]
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


async def test_a_failed_fork_in_a_custom_store_leaves_nothing(place: Place) -> None:
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
