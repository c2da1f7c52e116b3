"""Integers too long for Python to print: every entrance refuses them, and stored ones are damage."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import psycopg
import pymongo
import pytest

from firefly_memory import (
    ConfigurationError,
    CorruptDataError,
    EntryStore,
    FileStore,
    FireflyMemoryError,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    MemoryManager,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    TokenEstimator,
)
from firefly_memory.archive import export_jsonl, import_jsonl
from tests.support.backends import Place

HEXADECIMAL = {"~int": "0x" + "f" * 4_000}


def test_every_store_refuses_long_integers_and_keeps_the_former_value(store: EntryStore) -> None:
    store.save("ns", MemoryEntry(entry_id="e", content=1))
    memory = MemoryManager(store=store)
    for wrong in ({"content": 10**4300}, {"content": 1, "metadata": {"n": [-(10**4300)]}}, {"content": {10**4300: 1}}):
        broken = MemoryEntry(entry_id="e", **wrong)
        for save in (
            store.save,
            lambda ns, entry: store.save_many(ns, [entry]),
            lambda ns, entry: store.save_if(ns, entry, 1),
        ):
            with pytest.raises(InvalidEntryError):
                save("ns", broken)
        with pytest.raises(InvalidEntryError):
            memory.add_turn("c", "p", "a", metadata={"n": 10**4300})
        with pytest.raises(InvalidEntryError):
            memory.add_turn("c", "p", "a", [{"role": "user", "n": 10**4300}])
    assert [entry.content for entry in store.load("ns")] == [1]
    assert memory.conversation.get_turns("c") == []


@pytest.mark.parametrize(
    "make",
    [
        lambda wrong: PostgreSQLStore("postgresql://h/d", pooler=wrong),
        lambda wrong: PostgreSQLStore("postgresql://h/d", schema_name=wrong),
        lambda wrong: SQLiteStore("memory.db", synchronous=wrong),
        lambda wrong: FileStore("memory", file_mode=wrong),
        FileStore,
        lambda wrong: TokenEstimator(tokens_per_word=wrong),
    ],
    ids=["pooler", "schema_name", "synchronous", "file_mode", "base_dir", "tokens_per_word"],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_every_constructor_refuses_a_long_integer_with_a_clear_error(make: Callable[[Any], object], sign: int) -> None:
    with pytest.raises(ConfigurationError, match=r"an int too long to show|0o1"):
        make(sign * 10**4400)


def test_postgresql_names_the_entry_with_a_long_integer(place: Place) -> None:
    url = place.with_driver("psycopg")
    with PostgreSQLStore(url, schema_name="integers") as store:
        for number, damage in enumerate((json.dumps(HEXADECIMAL), "1" * 5_000)):
            store.save("ns", MemoryEntry(entry_id=f"e{number}", key=f"k{number}", content=1))
            with psycopg.connect(place.postgresql(), autocommit=True) as connection:
                statement = "UPDATE integers.memory_entries SET content = %s::jsonb WHERE entry_id = %s"
                connection.execute(statement, (damage, f"e{number}"))
            with pytest.raises(CorruptDataError, match=f"'e{number}'"):
                store.load_by_key("ns", f"k{number}")
        assert store.load_readable(["ns"])["ns"].entries == []
    with psycopg.connect(place.postgresql(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA integers CASCADE")


def test_mongodb_names_the_entry_with_a_long_integer(place: Place) -> None:
    client: pymongo.MongoClient[dict[str, Any]]
    with MongoDBStore(place.mongodb(), database="integers") as store, pymongo.MongoClient(place.mongodb()) as client:
        store.save("ns", MemoryEntry(entry_id="e", key="k", content=1))
        client.integers.entries.update_one({"entry_id": "e"}, {"$set": {"content": HEXADECIMAL}})
        with pytest.raises(CorruptDataError, match="'e'"):
            store.load_by_key("ns", "k")
        assert store.load_readable(["ns"])["ns"].entries == []
        client.drop_database("integers")


@pytest.mark.parametrize("damage", [json.dumps(HEXADECIMAL), "1" * 5_000], ids=["hexadecimal", "decimal"])
def test_an_archive_with_a_long_integer_is_refused(damage: str) -> None:
    source, target = InMemoryStore(), InMemoryStore()
    source.save("ns", MemoryEntry(content={"n": 777_777}))
    file = io.StringIO()
    export_jsonl(source, file)
    with pytest.raises(FireflyMemoryError, match=r"line|content|archive"):
        import_jsonl(target, io.StringIO(file.getvalue().replace("777777", damage)))
    assert target.namespaces() == []
