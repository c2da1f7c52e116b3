"""Writes in MongoDB that are under way while a person is erased: refused, taken back, or found and deleted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

import pymongo
import pytest
from bson import ObjectId

from firefly_memory import ErasedError, MemoryEntry
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.collections import NO_TOMBSTONES
from firefly_memory.entries.mongodb import hooks
from firefly_memory.entries.mongodb.working import erased_scopes
from firefly_memory.entries.record import Record
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.protocols import ABSENT, StoreView
from firefly_memory.tombstones.log import (
    TOMBSTONES as TOMBSTONE_LOG,
)
from firefly_memory.tombstones.log import (
    conversation_identity,
    history_identity,
    namespace_identity,
    owner_identity,
)
from firefly_memory.tombstones.mongodb.gates import Gate
from tests.support.backends import Place
from tests.support.mongodb_commands import AtCommand
from tests.support.mongodb_tombstones import Somewhere, View, a_record
from tests.support.servers import EmbeddedMongoDB
from tests.support.turns import NOW, a_turn

pytestmark = pytest.mark.thorough

T = TypeVar("T")
Database = pymongo.database.Database[dict[str, Any]]


@pytest.fixture(scope="module")
def standalone() -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def somewhere(place: Place) -> Iterator[Somewhere]:
    with ExitStack() as later:
        yield Somewhere(place.mongodb(), later)


class InBetween:
    """Adds a tombstone between the first look of a write and all that follows it."""

    def __init__(self, patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
        real, self.acted = Gate._send, 0

        async def send(gate: Gate, writes: Sequence[Any], session: Any = None) -> Any:
            looks = len(gate.tombstones)
            if not looks or len(writes) == looks or self.acted:
                return await real(gate, writes, session)
            await real(gate, writes[:looks], session)
            self.acted += 1
            act()
            return await real(gate, writes[looks:], session)

        patch.setattr(Gate, "_send", send)


@pytest.mark.parametrize("server", ["replica set", "standalone"])
@pytest.mark.parametrize("late", ["create", "append", "group", "fork", "fact", "new fact", "history"])
def test_what_was_written_between_two_looks_is_taken_back(
    late: str, server: str, place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = place.mongodb() if server == "replica set" else request.getfixturevalue("standalone").url
    with ExitStack() as later:
        somewhere = Somewhere(url, later)
        store, other = later.enter_context(somewhere.store()), later.enter_context(somewhere.store())
        view, facts = store.blocking, stored_facts_of("chat")
        log: Any = view.log(CONVERSATION_LOG)
        run_without_loop(log.append("of Bob", a_turn("p"), None))
        before = somewhere.contents()
        identities = [conversation_identity("chat"), namespace_identity(facts), history_identity("chat")]
        thread = threading.Thread(
            target=lambda: run_without_loop(other.blocking.log(TOMBSTONE_LOG).add(identities, "Ann", NOW))
        )
        run_without_loop(other.blocking.log(TOMBSTONE_LOG).are_there(identities))

        def add() -> None:
            thread.start()
            thread.join()

        between = InBetween(monkeypatch, add)
        writes: dict[str, Callable[[], Any]] = {
            "create": lambda: log.create("chat", NOW),
            "append": lambda: log.append("chat", a_turn("late"), None),
            "group": lambda: log.append_all("chat", [a_turn("late"), a_turn("later")], None),
            "fork": lambda: log.fork("of Bob", "chat", None, NOW),
            "fact": lambda: view.save(facts, MemoryEntry(content="late")),
            "new fact": lambda: view.save_if(facts, MemoryEntry(content="late"), ABSENT),
            "history": lambda: view.log(AGENT_HISTORY_LOG).write(*a_record("chat", None), None),
        }
        with pytest.raises(ErasedError):
            run_without_loop(writes[late]())
        assert between.acted == 1
        assert somewhere.contents() == {**before, **{name: [] for name in somewhere.contents() if name not in before}}


@pytest.mark.parametrize("work", ["history", "facts"])
def test_a_transaction_that_began_before_the_tombstone_is_refused(work: str, somewhere: Somewhere) -> None:
    between, facts = AtCommand(), stored_facts_of("chat")
    identities = [namespace_identity(facts), history_identity("chat")]
    with somewhere.listened(between) as store, somewhere.store() as other:
        add = other.blocking.log(TOMBSTONE_LOG).add
        store.namespaces()
        run_without_loop(store.blocking.log(TOMBSTONE_LOG).are_there(identities))
        # The first command of the transaction has its snapshot. The write comes after it, and passes no fence.
        between.arm(2 if work == "history" else 1, lambda: run_without_loop(add(identities, "Ann", NOW)))
        with pytest.raises(ErasedError):
            if work == "history":
                run_without_loop(store.blocking.log(AGENT_HISTORY_LOG).write(*a_record("chat", None), None))
            else:
                store.save_many(facts, [MemoryEntry(content=each) for each in "ab"])
        assert somewhere.database.memory_agent_history.count_documents(NO_TOMBSTONES) == 0
        assert somewhere.database.memory_agent_history_entries.count_documents({}) == 0
        assert somewhere.database.entries.count_documents(NO_TOMBSTONES) == 0


@pytest.mark.parametrize("work", ["history", "facts"])
def test_a_tombstone_waits_for_a_transaction_that_has_passed(work: str, somewhere: Somewhere) -> None:
    """What was written is there when the tombstone is: it is found and deleted then."""
    before_commit, facts = AtCommand(), stored_facts_of("chat")
    identities, seen = [namespace_identity(facts), history_identity("chat")], []
    with somewhere.listened(before_commit) as store, somewhere.store() as other:
        store.namespaces()
        run_without_loop(store.blocking.log(TOMBSTONE_LOG).are_there(identities))
        collection = somewhere.database["memory_agent_history" if work == "history" else "entries"]

        def add() -> None:
            run_without_loop(other.blocking.log(TOMBSTONE_LOG).add(identities, "Ann", NOW))
            seen.append(collection.count_documents(NO_TOMBSTONES))

        thread = threading.Thread(target=add)

        def begin() -> None:
            thread.start()
            while not somewhere.tombstones(collection.name):  # from here on it waits
                thread.join(0.001)
            thread.join(0.1)
            assert thread.is_alive()

        # find, insert, update, commit; or update, commit
        before_commit.arm(4 if work == "history" else 2, begin)
        if work == "history":
            assert run_without_loop(store.blocking.log(AGENT_HISTORY_LOG).write(*a_record("chat", None), None))
        else:
            store.save_many(facts, [MemoryEntry(content=each) for each in "ab"])
        thread.join()
        assert seen == [1 if work == "history" else 2]


def test_a_conversation_that_somebody_remembers_is_not_written_to(somewhere: Somewhere) -> None:
    with somewhere.store() as store, somewhere.store() as other:
        log, others = store.blocking.log(CONVERSATION_LOG), other.blocking.log(CONVERSATION_LOG)
        run_without_loop(others.append("chat", a_turn("p"), None, "Ann"))
        for identities in ([conversation_identity("chat")], [owner_identity("Ann")]):
            run_without_loop(store.blocking.log(TOMBSTONE_LOG).add(identities, "Ann", NOW))
        run_without_loop(log.delete("chat"))
        for owner in (None, "Ann"):
            with pytest.raises(ErasedError):
                run_without_loop(others.append("chat", a_turn("late"), None, owner))
        assert somewhere.contents()["memory_conversations"] == []


async def _erased(view: StoreView, owner: str) -> None:
    """What ``erase()`` does of conversations and agent history."""
    tombstones, log, history = view.log(TOMBSTONE_LOG), view.log(CONVERSATION_LOG), view.log(AGENT_HISTORY_LOG)
    await tombstones.add([owner_identity(owner)], owner, NOW)
    found = True
    while found:
        found = False
        while heads := await log.page(50, None, owner):
            found = True
            for head in heads:
                name, facts = head.conversation_id, stored_facts_of(head.conversation_id)
                await tombstones.add([conversation_identity(name), namespace_identity(facts)], owner, NOW)
                await log.delete(name, facts)
        for record in await history.records(owner, None):
            found = True
            await tombstones.add([history_identity(record.conversation_id)], owner, NOW)
            await history.delete(record.conversation_id, record.revision)
    await tombstones.scrub()


async def test_nothing_is_left_of_a_person_whose_data_is_written_meanwhile(somewhere: Somewhere) -> None:
    secret, stop, written = "Tarantella", asyncio.Event(), 0

    async def write(view: StoreView, number: int) -> None:
        nonlocal written
        log, history, step = view.log(CONVERSATION_LOG), view.log(AGENT_HISTORY_LOG), 0
        while not stop.is_set():
            step += 1
            chat = f"{secret} {number % 3} {step // 6}"
            new = f"{chat} {number} {step}"
            works: list[Callable[[], Awaitable[object]]] = [
                partial(log.append, chat, a_turn(secret), None, secret),
                partial(log.append, chat, a_turn(secret), None),  # it is there, or is erased
                partial(log.fork, chat, new, None, NOW),
                partial(log.create, f"{new} empty", NOW, secret),
                partial(history.write, *a_record(new, secret), None),
            ]
            for work in works:
                try:
                    await work()
                    written += 1
                except ErasedError:
                    break
            await asyncio.sleep(0)

    async with somewhere.store() as one, somewhere.store() as two, somewhere.store() as eraser:
        writers = [asyncio.ensure_future(write(store.suspending, n)) for n, store in enumerate([one, two] * 3)]
        while written < 100:
            await asyncio.wait(writers, timeout=0.01)
        await _erased(eraser.suspending, secret)
        stop.set()
        await asyncio.gather(*writers)
        found = await eraser.suspending.log(TOMBSTONE_LOG).find_text(secret)
        assert {place: rows for place, rows in found if rows} == {}
        for name in ("memory_conversations", "memory_agent_history_entries"):
            assert somewhere.contents()[name] == []


async def test_an_erasure_that_was_killed_after_its_tombstones_is_finished_by_the_next(somewhere: Somewhere) -> None:
    async with somewhere.store() as store:
        log = store.suspending.log(CONVERSATION_LOG)
        await log.append("chat", a_turn("secret"), None, "Ann")
        await View(store.suspending, "suspending").refuse(owner_identity("Ann"), conversation_identity("chat"))
    async with somewhere.store() as store:
        await _erased(store.suspending, "Ann")
        assert somewhere.contents()["memory_conversations"] == []


def test_what_interrupted_writes_have_left_of_a_person_is_deleted(somewhere: Somewhere) -> None:
    with somewhere.store() as store:
        log, tombstones = store.blocking.log(CONVERSATION_LOG), store.blocking.log(TOMBSTONE_LOG)
        conversations = somewhere.database.memory_conversations
        for name, owner in (("begun", "Ann"), ("orphaned", "Ann"), ("begun by Bob", "Bob")):
            run_without_loop(log.append(name, a_turn(name), None, owner))
        conversations.delete_one({"_id": "orphaned"})
        for name in ("begun", "begun by Bob"):  # as a fork whose copies are there, and whose maker has died
            life = conversations.find_one_and_update(
                {"_id": name}, {"$unset": {"settled": ""}, "$set": {"life": ObjectId()}}
            )
            assert life is not None
            conversations.update_one({"_id": name}, {"$set": {"forks": [life["life"]]}})
        run_without_loop(tombstones.add([owner_identity("Ann"), conversation_identity("orphaned")], "Ann", NOW))
        run_without_loop(tombstones.scrub())
        left = somewhere.contents()["memory_conversations"]
        assert {each["conversation_id"] for each in left} == {"begun by Bob"}
        assert len(left) == 2


def test_nobody_appends_to_what_an_erased_person_has_only_begun(somewhere: Somewhere) -> None:
    with somewhere.store() as store, somewhere.store() as other:
        log = store.blocking.log(CONVERSATION_LOG)
        run_without_loop(log.create("chat", NOW, "Ann"))
        somewhere.database.memory_conversations.update_one({"_id": "chat"}, {"$unset": {"settled": ""}})
        run_without_loop(store.blocking.log(TOMBSTONE_LOG).add([owner_identity("Ann")], "Ann", NOW))
        with pytest.raises(ErasedError):
            run_without_loop(other.blocking.log(CONVERSATION_LOG).append("chat", a_turn("late"), None, "Ann"))
        assert somewhere.contents()["memory_conversations"] == []


async def test_facts_that_were_saved_together_between_two_looks_are_taken_back(
    somewhere: Somewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    erased, kept = stored_facts_of("chat"), stored_facts_of("other")
    looked: list[set[str]] = []
    async with somewhere.store() as store, somewhere.store() as other:

        async def look(connection: Connection, records: list[Record]) -> set[str]:
            found = await erased_scopes(connection, records)
            if not looked:
                await other.suspending.log(TOMBSTONE_LOG).add([namespace_identity(erased)], "Ann", NOW)
            looked.append(found)
            return found

        monkeypatch.setattr(hooks, "erased_scopes", look)
        saves = [store.suspending.save((erased, kept)[n % 2], MemoryEntry(content=n)) for n in range(12)]
        results = await asyncio.gather(*saves, return_exceptions=True)
        assert looked[:2] == [set(), {erased}]
        assert [isinstance(each, ErasedError) for each in results] == [False, False, *[True, False] * 5]
        assert [each["content"] for each in somewhere.contents()["entries"] if each["namespace"] == erased] == [0]
        assert await store.suspending.count(kept) == 6
