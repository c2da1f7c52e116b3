"""The command upgrades a database of an earlier version: everything is still there and works.

``tests/data/release_before_facets`` has such databases as text, what the public API gave back of each, and the module
that wrote them.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from bson import json_util
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pymongo import MongoClient
from pymongo.database import Database as MongoDatabase

from firefly_memory import ConversationMemory, EntryStore, MemoryEntry, SQLiteStore, WorkingMemory, connect
from firefly_memory.archive import async_import_jsonl
from firefly_memory.urls import StoreOptions
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.documentation import ROOT
from tests.support.store_contents import agent_conversations, archive_of, contents_of, read, written

RELEASE = ROOT / "tests" / "data" / "release_before_facets"
COMMAND = Path(sys.executable).with_name("firefly-memory")

pytestmark = [pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mongodb"]), pytest.mark.thorough]


@pytest.fixture
def before(kind: str) -> Any:
    """What the public API of that version gave back."""
    return read((RELEASE / kind / "expected.json").read_text())


@dataclass(frozen=True)
class Database:
    url: str
    name: str | None = None
    """On a server of MongoDB, which has several."""

    def open(self) -> EntryStore:
        options: StoreOptions = {"migrate": False}
        if self.name is not None:
            options["database"] = self.name
        return connect(self.url, **options)

    def run(self, action: str) -> None:
        name = [] if self.name is None else ["--database", self.name]
        command = [str(COMMAND), "db", action, "--url", self.url, *name]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def database(kind: str, place: Place) -> Iterator[Database]:
    """As that version left it."""
    match kind:
        case "sqlite":
            url = f"sqlite:///{place.directory}/memory.db"
            execute(url, (RELEASE / kind / "dump.sql").read_text())
            yield Database(url)
        case "postgresql":
            with empty_postgresql(place.postgresql()) as url:
                execute(url, (RELEASE / kind / "dump.sql").read_text())
                yield Database(url)
        case _:
            with MongoClient[dict[str, Any]](place.mongodb()) as client:
                name = f"before_{uuid4().hex[:12]}"
                load_documents(client[name], RELEASE / kind)
                yield Database(place.mongodb(), name)
                client.drop_database(name)


def load_documents(database: MongoDatabase[dict[str, Any]], directory: Path) -> None:
    options = json_util.CANONICAL_JSON_OPTIONS
    indexes = json_util.loads((directory / "indexes.json").read_text(), json_options=options)
    for collection in indexes:
        lines = (directory / f"{collection}.jsonl").read_text().splitlines()
        database[collection].insert_many([json_util.loads(line, json_options=options) for line in lines])
        database.command("createIndexes", collection, indexes=indexes[collection])


@pytest.fixture
def upgraded(database: Database) -> Database:
    database.run("upgrade")
    return database


async def test_an_upgrade_loses_nothing(upgraded: Database, kind: str, before: Any) -> None:
    upgraded.run("check")
    async with upgraded.open() as store:
        now = await contents_of(store, [each["of"] for each in before["facts"]])
        assert now == before
        assert written(now) == written(before)  # the order of keys, and 1 is not 1.0
        assert_no_line_is_lost(await archive_of(store), archive(kind))


async def test_an_archive_of_the_earlier_version_can_be_imported(kind: str) -> None:
    async with SQLiteStore(":memory:") as store:
        await async_import_jsonl(store, io.StringIO(archive(kind)))
        assert_no_line_is_lost(await archive_of(store), archive(kind))


def archive(kind: str) -> str:
    """What that version exported."""
    return (RELEASE / kind / "archive.jsonl").read_text()


def assert_no_line_is_lost(now: str, before: str) -> None:
    """A later version may say more in a line, and may have lines of other kinds."""
    found = items(now)
    for kind, lines in items(before).items():
        assert len(found[kind]) == len(lines)
        assert [line for line in lines if not any(line.items() <= other.items() for other in found[kind])] == []


def items(text: str) -> dict[str, list[dict[str, str]]]:
    """The lines of an archive by their kind, each as the JSON text of its fields."""
    found = defaultdict(list)
    for line in list(io.StringIO(text))[1:-1]:  # without the date of the first one and the counts of the last one
        ((kind, fields),) = json.loads(line).items()
        found[kind].append({name: json.dumps(value) for name, value in fields.items()})
    return found


async def test_an_upgraded_database_can_be_used(upgraded: Database, before: Any) -> None:
    async with upgraded.open() as store:
        memory = ConversationMemory(store=store)
        turns = {each["info"]["conversation_id"]: each["info"]["turns"] for each in before["conversations"]}
        for conversation_id, count in turns.items():
            added = await memory.async_add_turn(conversation_id, "still there?", "yes")
            assert added.turn_id == count
        retried = await memory.async_add_turn(
            "travel", "Which train leaves at 7 o'clock for Zürich?", "The one on platform 7.", idempotency_key="train 7"
        )
        assert retried.turn_id == 8

        for namespace, known in before["namespaces"].items():
            if not namespace.startswith("working:"):
                await store.async_save(namespace, MemoryEntry(content="new"))
                assert await store.async_count(namespace) == known["count"] + 1
        assert await store.cleanup_expired() == 1
        for each in before["facts"]:
            working = WorkingMemory(store=store, **each["of"])
            assert await working.async_increment("counter") == dict(each["facts"])["counter"] + 1
            assert len(await working.async_items()) == len(each["facts"])

        conversations = agent_conversations(store)
        for each in before["agent_conversations"]:
            conversation_id = each["record"]["conversation_id"]
            conversation = await conversations.load(conversation_id)
            assert conversation is not None
            conversation.messages.append(ModelRequest([UserPromptPart("still there?")]))
            (entry,) = await conversations.save(conversation)
            assert entry.parent_id == each["record"]["head_id"]
        await conversations.delete("long")
        for each in before["agent_conversations"]:
            if each["record"]["conversation_id"] != "long":  # its forks keep what they share with it
                left = await conversations.load(each["record"]["conversation_id"])
                assert left is not None
                assert len(left.messages) == (len(each["histories"][0]) if each["histories"] else 0) + 1
