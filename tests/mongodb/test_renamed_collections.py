"""A store renames the collections of agent history of an earlier version when it opens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai.conversation import Conversation
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

from firefly_memory import ConfigurationError, DatabaseStoreError, MongoDBStore, SchemaMismatchError
from firefly_memory.agents import MongoConversationStore
from firefly_memory.databases.mongodb import renames
from tests.support.agent_histories import messages, opened, texts
from tests.support.backends import Place
from tests.support.servers import EmbeddedMongoDB

Documents = Database[dict[str, Any]]

FORMERLY = {"memory_agent_history": "memory_dialogues", "memory_agent_history_entries": "memory_dialogue_entries"}


@pytest.fixture
def database(place: Place) -> Iterator[Documents]:
    """With two conversations, in collections that have the former names."""
    with MongoClient[dict[str, Any]](place.mongodb()) as client:
        name = f"renamed_{uuid4().hex[:12]}"
        with MongoDBStore(place.mongodb(), database=name) as store:
            fill(store)
        for new, before in FORMERLY.items():
            client[name][new].rename(before)
        yield client[name]
        client.drop_database(name)


def fill(store: MongoDBStore) -> None:
    async def save() -> None:
        for conversation_id, count in (("a", 3), ("b", 40)):
            conversation = Conversation(conversation_id=conversation_id, messages=messages(count))
            await MongoConversationStore(store).save(conversation)

    asyncio.run(save())


def documents_of(database: Documents, names: Any) -> list[list[dict[str, Any]]]:
    return [list(database[name].find().sort("_id")) for name in names]


def assert_renamed(database: Documents, before: list[list[dict[str, Any]]]) -> None:
    there = database.list_collection_names()
    assert sorted(each for each in there if "history" in each or "dialogue" in each) == sorted(FORMERLY)
    assert documents_of(database, FORMERLY) == before
    assert {"scope_1_updated_at_-1_updated_at_us_-1"} < set(database.memory_agent_history.index_information())
    assert {"chain_1_place_1"} < set(database.memory_agent_history_entries.index_information())


@pytest.mark.parametrize("kind", ["mongodb", "mongodb-motor"])
async def test_every_conversation_is_there_under_the_new_names(kind: str, database: Documents, place: Place) -> None:
    before = documents_of(database, FORMERLY.values())
    for _ in range(2):  # the second time nothing is left to do
        async with opened(kind, f"{place.mongodb()}#{database.name}") as conversations:
            assert texts(await conversations.load("b")) == [str(number) for number in range(40)]
            assert_renamed(database, before)
            async with MongoDBStore(place.mongodb(), database=database.name, migrate=False):
                pass


def test_many_processes_can_open_a_store_at_once(database: Documents, place: Place) -> None:
    before = documents_of(database, FORMERLY.values())

    def start(_: int) -> None:
        with MongoDBStore(place.mongodb(), database=database.name) as store:
            assert store.count("n") == 0

    with ThreadPoolExecutor(8) as processes:
        list(processes.map(start, range(16)))
    assert_renamed(database, before)


def test_the_next_process_continues_an_interrupted_renaming(database: Documents, place: Place) -> None:
    before = documents_of(database, FORMERLY.values())
    database.memory_dialogues.rename("memory_agent_history")
    with MongoDBStore(place.mongodb(), database=database.name):
        assert_renamed(database, before)


def test_with_migrate_false_the_error_names_the_command_and_nothing_changes(database: Documents, place: Place) -> None:
    store = MongoDBStore(place.mongodb(), database=database.name, migrate=False)
    with pytest.raises(SchemaMismatchError, match="memory_dialogues, memory_dialogue_entries") as failed:
        store.initialize_sync()
    store.close_sync()
    assert failed.value.command == "firefly-memory db upgrade"
    assert "the names memory_agent_history, memory_agent_history_entries" in str(failed.value)
    assert set(FORMERLY).isdisjoint(database.list_collection_names())


def test_an_empty_collection_of_the_former_name_is_ignored(database: Documents, place: Place) -> None:
    with MongoDBStore(place.mongodb(), database=database.name):
        pass
    before = documents_of(database, FORMERLY)
    database.create_collection("memory_dialogues")
    for migrate in (True, False):
        with MongoDBStore(place.mongodb(), database=database.name, migrate=migrate):
            assert documents_of(database, FORMERLY) == before


@pytest.mark.parametrize("is_empty", [False, True])
def test_if_both_names_exist_the_error_names_both_and_nothing_is_lost(
    is_empty: bool, database: Documents, place: Place
) -> None:
    """Also if one is empty: a process may write to it at that moment."""
    if is_empty:
        database.create_collection("memory_agent_history")
    else:
        database.memory_agent_history.insert_one({"_id": "written since"})
    before = documents_of(database, [*FORMERLY, *FORMERLY.values()])
    store = MongoDBStore(place.mongodb(), database=database.name)
    with pytest.raises(DatabaseStoreError, match="two collections memory_dialogues and memory_agent_history"):
        store.initialize_sync()
    store.close_sync()
    assert documents_of(database, [*FORMERLY, *FORMERLY.values()]) == before


def test_a_second_process_replaces_nothing(database: Documents, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process renames the collections after this one has looked which names are in use."""
    before = documents_of(database, FORMERLY.values())
    rename, others = renames._rename, list(FORMERLY.items())

    async def rename_after_another(*arguments: Any) -> None:
        while others:
            new, old = others.pop()
            database[old].rename(new, dropTarget=True)
        await rename(*arguments)

    monkeypatch.setattr(renames, "_rename", rename_after_another)
    with MongoDBStore(place.mongodb(), database=database.name):
        assert_renamed(database, before)


@pytest.mark.parametrize("name", [*FORMERLY, *FORMERLY.values()])
def test_no_store_keeps_its_entries_under_such_a_name(name: str, place: Place) -> None:
    with pytest.raises(ConfigurationError, match=name):
        MongoDBStore(place.mongodb(), collection=name)


class ServerWithUsers(EmbeddedMongoDB):
    def command(self) -> list[str]:
        return [*super().command(), "--auth"]


def test_a_user_without_the_right_to_rename_gets_an_error() -> None:
    server = ServerWithUsers(replica_set=False)
    try:
        server.start()
        with MongoClient[dict[str, Any]](server.url) as client:
            client.admin.command("createUser", "root", pwd="secret", roles=["root"])
        root = server.url.replace("mongodb://", "mongodb://root:secret@")
        with MongoClient[dict[str, Any]](root) as client:
            actions = ["find", "insert", "update", "remove", "listCollections", "listIndexes", "createIndex"]
            privilege = {"resource": {"db": "app", "collection": ""}, "actions": actions}
            client.app.command("createRole", "writer", privileges=[privilege], roles=[])
            client.app.command("createUser", "service", pwd="secret", roles=["writer"])
            client.app.memory_dialogues.insert_one({"_id": "a"})
        service = server.url.replace("mongodb://", "mongodb://service:secret@") + "&authSource=app"
        store = MongoDBStore(service, database="app")
        with pytest.raises(DatabaseStoreError, match="renameCollectionSameDB") as failed:
            store.initialize_sync()
        store.close_sync()
        assert "may not rename the collection memory_dialogues to memory_agent_history" in str(failed.value)
        assert isinstance(failed.value.__cause__, OperationFailure)
    finally:
        server.remove()
