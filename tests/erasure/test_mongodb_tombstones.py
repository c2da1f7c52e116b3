"""Tombstones in MongoDB: late writes are refused in their own command, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

import pymongo
import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import monitoring

from firefly_memory import ConversationMemory, ErasedError, MemoryEntry, MongoDBStore
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryRecord
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.databases.mongodb import estimates
from firefly_memory.databases.mongodb.clients import VERSION
from firefly_memory.databases.mongodb.legacy_collections import foreign_collections
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.errors import CorruptDataError
from firefly_memory.protocols import ABSENT, SAME_METADATA
from firefly_memory.tombstones.log import (
    TOMBSTONES as TOMBSTONE_LOG,
)
from firefly_memory.tombstones.log import (
    conversation_identity,
    history_identity,
    namespace_identity,
    owner_identity,
)
from firefly_memory.tombstones.mongodb.gates import KEY
from tests.support.backends import Place
from tests.support.mongodb_tombstones import Somewhere, View, a_record
from tests.support.servers import EmbeddedMongoDB
from tests.support.spare_places import dropped_at_the_end
from tests.support.turns import NOW, a_turn

T = TypeVar("T")
Database = pymongo.database.Database[dict[str, Any]]

COLLECTIONS = ["entries", "memory_agent_history", "memory_conversations"]
STORES = ["url", "client", "async client", "motor", "standalone"]
MODES = ["blocking", "suspending"]


@pytest.fixture(scope="module")
def standalone() -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    with dropped_at_the_end(server.url):
        yield server
    server.remove()


@pytest.fixture
def somewhere(place: Place) -> Iterator[Somewhere]:
    with ExitStack() as later:
        yield Somewhere(place.mongodb(), later, lent=True)


@pytest.fixture(params=[(kind, mode) for kind in STORES for mode in MODES], ids="-".join)
async def using(request: pytest.FixtureRequest, place: Place) -> Any:
    kind, mode = request.param
    if (kind, mode) == ("async client", "blocking"):
        kind = "url"
    with ExitStack() as later:
        url = request.getfixturevalue("standalone").url if kind == "standalone" else place.mongodb()
        somewhere = Somewhere(url, later, lent=True)
        client: Any = None
        if kind == "client":
            client = pymongo.MongoClient(url)
        elif kind == "async client":
            client = pymongo.AsyncMongoClient(url)
        elif kind == "motor":
            client = AsyncIOMotorClient(url)
        store = somewhere.store() if client is None else MongoDBStore(client=client, database=somewhere.name)
        yield somewhere, View(store.blocking if mode == "blocking" else store.suspending, mode)
        await store.close()
        if client is not None:
            closing = client.close()
            if closing is not None:
                await closing


async def refused(work: Callable[[], Awaitable[Any]]) -> None:
    with pytest.raises(ErasedError) as caught:
        await work()
    for name in ("Ann", "chat"):
        assert name not in str(caught.value), "the error names nobody"


async def test_every_late_write_is_refused_and_nothing_is_written(using: tuple[Somewhere, View]) -> None:
    somewhere, view = using
    done, log, history = view.done, view.view.log(CONVERSATION_LOG), view.view.log(AGENT_HISTORY_LOG)
    await done(log.append("source of Ann", a_turn("p"), None, "Ann"))
    await done(log.append("source of Bob", a_turn("p"), None, "Bob"))
    await done(history.write(*a_record("of Bob", "Bob"), None))
    facts = stored_facts_of("chat")
    others = [namespace_identity(facts), history_identity("history")]
    await view.refuse(owner_identity("Ann"), conversation_identity("chat"), *others)
    before = somewhere.contents()
    taken_over = a_record("of Bob", "Ann")[0]._replace(revision="r2")
    new = MemoryEntry(content="late", key="k")
    for late in (
        lambda: log.create("chat", NOW),
        lambda: log.create("new", NOW, "Ann"),
        lambda: log.append("chat", a_turn("late"), None),
        lambda: log.append("chat", a_turn("late", key="k"), None),
        lambda: log.append("chat", a_turn("late"), 0),
        lambda: log.append("chat", a_turn("late"), 7),
        lambda: log.append("chat", a_turn("late"), None, "Bob"),
        lambda: log.append("new", a_turn("late"), None, "Ann"),
        lambda: log.fork("source of Bob", "chat", None, NOW),
        lambda: log.fork("source of Ann", "new", None, NOW),
        lambda: history.write(*a_record("history", None), None),
        lambda: history.write(*a_record("history", "Bob"), "r0"),
        lambda: history.write(*a_record("new", "Ann"), None),
        lambda: history.write(taken_over, [], "r1"),
        lambda: view.view.save(facts, new),
        lambda: view.view.save_if(facts, new, ABSENT),
        lambda: view.view.save_if(facts, new, SAME_METADATA),
        lambda: view.view.save_if(facts, new, "what was there"),
        lambda: view.view.save_many(facts, [new]),
    ):
        await refused(lambda late=late: done(late()))  # type: ignore[misc]
        assert somewhere.contents() == before
    if somewhere.database.client.admin.command("hello").get("setName"):
        await refused(lambda: done(view.view.save_many(facts, [new, MemoryEntry(content="late")])))
    assert somewhere.contents() == before
    await done(view.view.save("chat", new))  # no other namespace is refused
    await done(view.view.save(stored_facts_of("another"), MemoryEntry(content="in time")))
    assert await done(log.append("source of Ann", a_turn("p"), None)), "it is there, and is still to be deleted"


async def test_a_person_who_is_readmitted_may_write_again(using: tuple[Somewhere, View]) -> None:
    somewhere, view = using
    tombstones, log = view.view.log(TOMBSTONE_LOG), view.view.log(CONVERSATION_LOG)
    ann = [owner_identity("Ann"), conversation_identity("chat"), namespace_identity(stored_facts_of("chat"))]
    await view.refuse(*ann)
    await view.refuse(*ann)  # as in a second run
    await view.refuse(owner_identity("Bob"), ann[1], owner="Bob")
    assert [await view.done(tombstones.are_there([each])) for each in (*ann, owner_identity("Carl"))] == [
        *(True, True, True),
        False,
    ]
    for name in COLLECTIONS:
        assert len(somewhere.tombstones(name)) == 4
    assert await view.done(tombstones.remove("Ann")) == 3
    assert await view.done(tombstones.remove("Ann")) == 0
    assert not await view.done(tombstones.are_there(ann))
    assert await view.done(log.append("chat", a_turn("p"), None, "Ann"))
    await refused(lambda: view.done(log.append("new", a_turn("p"), None, "Bob")))


async def test_the_turns_of_a_group_are_refused_and_those_beside_it_are_appended(somewhere: Somewhere) -> None:
    async with somewhere.store() as store:
        view, log = View(store.suspending, "suspending"), store.suspending.log(CONVERSATION_LOG)
        await view.refuse(conversation_identity("chat"))
        appends = [log.append(("chat", "other")[n % 2], a_turn(f"{n}"), None) for n in range(24)]
        results = await asyncio.gather(*appends, return_exceptions=True)
        assert all(isinstance(each, ErasedError) for each in results[::2])
        assert [each.turns for each in results[1::2]] == list(range(1, 13))  # type: ignore[union-attr]
        assert await log.turns("chat", -1, None) == []


async def test_facts_that_are_saved_together_are_refused_each_for_itself(somewhere: Somewhere) -> None:
    async with somewhere.store() as store:
        view, erased, kept = store.suspending, stored_facts_of("chat"), stored_facts_of("other")
        await View(view, "suspending").refuse(namespace_identity(erased))
        saves = [view.save((erased, kept, "notes")[n % 3], MemoryEntry(content=n)) for n in range(30)]
        results = await asyncio.gather(*saves, return_exceptions=True)
        assert all(isinstance(each, ErasedError) for each in results[::3])
        assert not any(isinstance(each, Exception) for n, each in enumerate(results) if n % 3)
        assert [await view.count(each) for each in (erased, kept, "notes")] == [0, 10, 10]


async def test_a_standalone_server_keeps_the_entries_of_an_erased_history_that_others_hold(
    standalone: EmbeddedMongoDB,
) -> None:
    def of(name: str, scope: str, head: str, revision: str = "r1") -> HistoryRecord:
        return a_record(name, scope)[0]._replace(head_id=head, revision=revision)

    with ExitStack() as later:
        somewhere = Somewhere(standalone.url, later)
        entries = somewhere.database.memory_agent_history_entries
        async with somewhere.store() as store:
            view, history = View(store.suspending, "suspending"), store.suspending.log(AGENT_HISTORY_LOG)
            one, two, three, four = (
                HistoryEntry(name, above, "request", f"message {name}")
                for name, above in (("1", None), ("2", "1"), ("3", "2"), ("4", "2"))
            )
            assert await history.write(of("of Ann", "Ann", "2"), [one, two], None)
            assert await history.write(of("of Ann", "Ann", "3", "r2"), [three], "r1")
            assert await history.write(of("of Bob", "Bob", "4"), [four], None)
            for name, revision, kept in (("of Ann", "r2", ["1", "2", "4"]), ("of Bob", "r1", [])):
                await view.refuse(history_identity(name))
                assert not await history.delete(name, "another revision")
                assert await history.delete(name, revision)
                assert sorted(entries.distinct("_id")) == kept


# What others notice


class Commands(monitoring.CommandListener):
    """The commands that are sent, and how many updates each has."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.sent.append((event.command_name, len(event.command.get("updates", ()))))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


def test_every_write_is_the_command_that_it_was(somewhere: Somewhere) -> None:
    commands = Commands()
    with somewhere.listened(commands) as store:
        store.namespaces()
        log, history = store.blocking.log(CONVERSATION_LOG), store.blocking.log(AGENT_HISTORY_LOG)
        facts, entry = stored_facts_of("chat"), MemoryEntry(content=1)
        record, entries = a_record("chat", "Ann")

        def sent(write: Callable[[], Any]) -> list[tuple[str, int]]:
            commands.sent.clear()
            done = write()
            if not isinstance(done, MemoryEntry | bool | None):
                run_without_loop(done)
            return [*commands.sent]

        looks = 2
        assert sent(lambda: log.append("chat", a_turn("p"), None)) == [("aggregate", 0), ("update", 3 + looks)]
        assert sent(lambda: log.append("chat", a_turn("p"), None)) == [("update", 2)], "as if there were no tombstones"
        assert sent(lambda: log.create("new", NOW, "Ann")) == [("update", 1 + 2 * looks)]
        assert sent(lambda: log.append("new", a_turn("p"), None)) == [("update", 2)], "its end is known"
        assert sent(lambda: store.save("notes", entry)) == [("update", 1)]
        assert sent(lambda: store.save_if("notes", MemoryEntry(content=2), ABSENT)) == [("insert", 0)]
        assert sent(lambda: store.save(facts, MemoryEntry(content=1))) == [("update", 1 + looks)]
        assert sent(lambda: store.save_if(facts, MemoryEntry(content=1), ABSENT)) == [("update", 1 + looks)]
        assert sent(lambda: history.write(record, entries, None)) == [
            *(("find", 0), ("insert", 0), ("update", 1 + looks + 1), ("commitTransaction", 0))
        ]
        assert sent(lambda: history.write(record._replace(revision="r2"), [], "r1")) == [
            *(("find", 0), ("update", 1), ("commitTransaction", 0))
        ]


def test_nobody_sees_tombstones_and_no_deletion_takes_them(somewhere: Somewhere) -> None:
    with somewhere.store() as store:
        view, log = store.blocking, store.blocking.log(CONVERSATION_LOG)
        history, memory = view.log(AGENT_HISTORY_LOG), ConversationMemory(store=store)
        identities = [owner_identity("Ann"), conversation_identity("chat"), namespace_identity("working:Ann")]
        run_without_loop(view.log(TOMBSTONE_LOG).add(identities, "Ann", NOW))
        memory.add_turn("other", "p", "a", owner="Bob")
        store.save("notes", MemoryEntry(content=1, key="k"))
        run_without_loop(history.write(*a_record("of Bob", None), None))
        before = {name: somewhere.tombstones(name) for name in COLLECTIONS}
        assert {name: len(each) for name, each in before.items()} == dict.fromkeys(COLLECTIONS, 3)
        assert store.namespaces() == ["notes"]
        assert [each.conversation_id for each in memory.list_conversations()] == ["other"]
        assert list(memory.list_conversations(owner="Ann")) == []
        assert [each.conversation_id for each in run_without_loop(history.records(None, None))] == ["of Bob"]
        assert [each.conversation_id for each in run_without_loop(history.page(9, ""))] == ["of Bob"]
        about = estimates.estimated_documents(somewhere.url, {"database": somewhere.name})
        assert {name: number for name, number in about.items() if number} == {
            **dict.fromkeys(COLLECTIONS, 1),
            "memory_conversations": 2,
            "memory_agent_history_entries": 1,
        }
        with foreign_collections(somewhere.url, timeout=9.0) as places:
            assert not places.has_others(somewhere.name, "entries")
        assert run_without_loop(view.cleanup_expired()) == 0
        memory.clear_all()
        store.clear("notes")
        run_without_loop(log.delete("chat", "working:Ann"))
        run_without_loop(history.delete("of Bob", "r1"))
        assert {name: somewhere.tombstones(name) for name in COLLECTIONS} == before


# The key


def test_the_key_is_made_once_for_a_database_and_is_random(somewhere: Somewhere, place: Place) -> None:
    keys = set()
    with ExitStack() as later:
        for there in (somewhere, Somewhere(place.mongodb(), later)):
            with there.store() as store, there.store(collection="others") as other:
                threads = [threading.Thread(target=each.namespaces) for each in (store, other)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                (key,) = there.database[VERSION].find({"_id": KEY})
                keys.add(key["secret"])
                run_without_loop(store.blocking.log(TOMBSTONE_LOG).add([conversation_identity("chat")], "Ann", NOW))
                with pytest.raises(ErasedError):
                    run_without_loop(other.blocking.log(CONVERSATION_LOG).create("chat", NOW))
    assert len(keys) == 2
    assert all(len(each) == 64 for each in keys)


def test_a_store_that_may_not_migrate_makes_the_key_when_it_needs_one(somewhere: Somewhere) -> None:
    with somewhere.store() as store:
        store.namespaces()
    versions = somewhere.database[VERSION]
    versions.delete_one({"_id": KEY})
    with somewhere.store(migrate=False) as store:
        store.save("notes", MemoryEntry(content=1))
        assert versions.find_one({"_id": KEY}) is None
        store.save("working:Ann", MemoryEntry(content=1))
        assert versions.find_one({"_id": KEY}) is not None
    versions.update_one({"_id": KEY}, {"$unset": {"secret": ""}})
    with somewhere.store(migrate=False) as store, pytest.raises(CorruptDataError, match="no key"):
        store.save("working:Ann", MemoryEntry(content=1))


def test_a_user_who_may_only_read_opens_a_database_that_has_no_key() -> None:
    class ServerWithUsers(EmbeddedMongoDB):
        def command(self) -> list[str]:
            return [*super().command(), "--auth"]

    server = ServerWithUsers(replica_set=False)
    try:
        server.start()
        with pymongo.MongoClient[dict[str, Any]](server.url) as client:
            client.admin.command("createUser", "root", pwd="secret", roles=["root"])
        root = server.url.replace("mongodb://", "mongodb://root:secret@")
        with pymongo.MongoClient[dict[str, Any]](root) as client, MongoDBStore(root, database="app") as store:
            store.save("notes", MemoryEntry(content=1))
            client.app[VERSION].delete_one({"_id": KEY})
            client.app.command("createUser", "reader", pwd="secret", roles=["read"])
        reader = server.url.replace("mongodb://", "mongodb://reader:secret@") + "&authSource=app"
        with MongoDBStore(reader, database="app") as store:
            assert store.count("notes") == 1
    finally:
        server.remove()


# Looking for a text


async def test_a_text_is_found_wherever_it_is(using: tuple[Somewhere, View]) -> None:
    somewhere, view = using
    text = 'Ann "é" \U0001f98b'
    await view.done(view.view.save("notes", MemoryEntry(content={"deep": [{"of": f"<{text}>"}]})))
    await view.done(view.view.save("notes", MemoryEntry(content=1, metadata={f"key of {text}": 1})))
    await view.done(view.view.save("notes", MemoryEntry(content="another")))
    somewhere.database.foreign.insert_many(
        [
            {"_id": 1, "binary": text.encode()},
            {"_id": "two", "json": json.dumps({"t": text})},
            {"_id": {"three": text}},
            {"_id": 4, "json": json.dumps({"t": json.dumps([text], ensure_ascii=False)})},
            {"_id": 5, "other": "Ann"},
        ]
    )
    found = dict(await view.done(view.view.log(TOMBSTONE_LOG).find_text(text)))
    assert {name: rows for name, rows in found.items() if rows} == {"entries": 2, "foreign": 4}
    assert set(found) == set(somewhere.database.list_collection_names())


def test_every_document_is_searched(somewhere: Somewhere) -> None:
    somewhere.database.foreign.insert_many([{"text": f"Ann {number}"} for number in range(1_000)])
    with somewhere.store() as store:
        found = dict(run_without_loop(store.blocking.log(TOMBSTONE_LOG).find_text("Ann")))
    assert found["foreign"] == 1_000
