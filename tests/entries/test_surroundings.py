"""What is around the stores: missing packages, old names, adapted backends, passed engines, copies."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    Capability,
    ConfigurationError,
    CorruptDataError,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    MemoryStore,
    MongoDBStore,
    NotSupportedError,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    StoreClosedError,
    adapt,
)
from firefly_memory.testing.rules.isolation import LOOKALIKES
from tests.support.backends import OWN, Backend, Place
from tests.support.folder_store import FolderStore

# Missing packages


def without(packages: str, code: str) -> str:
    """What ``code`` prints in a process that does not have ``packages``."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({packages.split()!r}))"
    command = [sys.executable, "-c", f"{hide}\n{code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def attempt(use: str) -> str:
    return f"import asyncio\nimport firefly_memory\ntry:\n    {use}\nexcept ImportError as error:\n    print(type(error).__name__, error)"


@pytest.mark.parametrize(
    ("packages", "use", "words"),
    [
        ("pymongo", "firefly_memory.MongoDBStore('mongodb://h')", "MongoDBStore needs the package 'pymongo'"),
        ("pymongo", "firefly_memory.connect('mongodb://h')", "pip install 'firefly-memory[mongodb]'"),
        ("pymongo", "from firefly_memory.database_store import MongoDBStore; MongoDBStore('mongodb://h')", "pip install 'firefly-memory[mongodb]'"),
        ("psycopg", "firefly_memory.PostgreSQLStore('postgresql://h/x').load('n')", "calling a blocking method of a PostgreSQL store needs the package 'psycopg'"),
        ("asyncpg", "asyncio.run(firefly_memory.PostgreSQLStore('postgresql://h/x').async_load('n'))", "calling an asynchronous method of a PostgreSQL store needs the package 'asyncpg'"),
        ("asyncpg psycopg", "firefly_memory.PostgreSQLStore('postgresql://h/x')", "PostgreSQLStore needs the package 'asyncpg'"),
        ("asyncpg psycopg", "firefly_memory.connect('postgresql://h/x')", "pip install 'firefly-memory[postgres]'"),
    ],
)  # fmt: skip
def test_a_missing_package_is_named_with_the_extra_that_brings_it(packages: str, use: str, words: str) -> None:
    printed = without(packages, attempt(use))
    assert printed.startswith("MissingDependencyError ")
    assert words in printed


def test_without_any_driver_every_public_name_is_there() -> None:
    code = """
import firefly_memory, inspect, pydoc
namespace = {}
exec("from firefly_memory import *", namespace)
print(set(firefly_memory.__all__) - set(namespace))
print(all(hasattr(firefly_memory, name) for name in firefly_memory.__all__))
print({name for name, _ in inspect.getmembers(firefly_memory)} >= set(firefly_memory.__all__))
print("class MongoDBStore" in pydoc.render_doc(firefly_memory, renderer=pydoc.plaintext))
"""
    assert without("asyncpg psycopg pymongo bson motor tiktoken pydantic_ai tqdm", code) == "set()\nTrue\nTrue\nTrue\n"


@pytest.mark.parametrize(
    "command",
    ["doctor", "db check", "db upgrade", "export", "db import-legacy"],
)
@pytest.mark.parametrize(
    ("url", "extra"), [("mongodb://h/", "firefly-memory[mongodb]"), ("postgresql://h/x", "firefly-memory[postgres]")]
)
def test_a_command_names_the_extra_that_its_url_needs(command: str, url: str, extra: str) -> None:
    arguments = [*command.split(), "--from" if command == "db import-legacy" else "--url", url]
    code = f"""
import contextlib, io
from firefly_memory.cli import main
with contextlib.redirect_stderr(io.StringIO()) as said:
    code = main({arguments!r})
print(code, said.getvalue())
"""
    printed = without("asyncpg psycopg pymongo bson motor", code)
    assert printed.startswith("2 ")
    assert extra in printed


def test_one_driver_is_enough_for_its_colour(place: Place) -> None:
    blocking = (
        f"s = firefly_memory.PostgreSQLStore({place.postgresql()!r}); s.count('n'); s.close_sync(); print('fine')"
    )
    assert without("asyncpg", attempt(blocking)) == "fine\n"
    code = f"""
import asyncio, firefly_memory
async def main():
    async with firefly_memory.PostgreSQLStore({place.postgresql()!r}) as store:
        await store.async_count('n')
        print('fine')
asyncio.run(main())
"""
    assert without("psycopg", code) == "fine\n"


def test_the_stores_without_servers_need_no_extra(tmp_path: Path) -> None:
    code = f"""
import asyncio, firefly_memory as f
for store in (f.InMemoryStore(), f.FileStore({str(tmp_path / "files")!r}), f.SQLiteStore({str(tmp_path / "memory.db")!r})):
    store.save('n', f.MemoryEntry())
    print(asyncio.run(store.async_count('n')))
"""
    assert without("asyncpg psycopg pymongo bson motor orjson", code) == "1\n1\n1\n"


# The first documents' names


async def test_the_old_names_work_and_warn() -> None:
    store = InMemoryStore()
    entry = MemoryEntry(content="x")
    with pytest.warns(DeprecationWarning, match=r"save_async\(\) is now called async_save\(\)") as caught:
        await store.save_async("n", entry)
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="load_async"):
        assert await store.load_async("n") == [entry]
    with pytest.warns(DeprecationWarning, match="delete_async"):
        await store.delete_async("n", entry.entry_id)
    with pytest.warns(DeprecationWarning, match="clear_async"):
        await store.clear_async("n")


# Backends of a user's own


class Recorder:
    """Five methods that remember what they were given."""

    def __init__(self) -> None:
        self.entries: dict[str, list[MemoryEntry]] = {}

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        self.entries.setdefault(namespace, []).append(entry)

    def load(self, namespace: str) -> list[MemoryEntry]:
        return self.entries.get(namespace, [])

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return next((entry for entry in self.load(namespace) if entry.key == key), None)

    def delete(self, namespace: str, entry_id: str) -> None:
        self.entries[namespace] = [entry for entry in self.load(namespace) if entry.entry_id != entry_id]

    def clear(self, namespace: str) -> None:
        self.entries.pop(namespace, None)


class AsyncRecorder(Recorder):
    """The same with twins of its own, which say that they were used."""

    awaited: int = 0

    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        self.awaited += 1
        self.save(namespace, entry)

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        self.awaited += 1
        return self.load(namespace)

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        self.awaited += 1
        return self.load_by_key(namespace, key)

    async def async_delete(self, namespace: str, entry_id: str) -> None:
        self.awaited += 1
        self.delete(namespace, entry_id)

    async def async_clear(self, namespace: str) -> None:
        self.awaited += 1
        self.clear(namespace)


def test_a_store_of_ours_is_adapted_to_itself() -> None:
    store = InMemoryStore()
    assert adapt(store) is store


def test_a_backend_gets_values_that_it_can_keep() -> None:
    backend = Recorder()
    assert isinstance(backend, MemoryStore)
    store = adapt(backend)
    value = {"a\x00": 2**70, "plain": [1.5, "text"]}
    store.save("n\x00", MemoryEntry(key="k\x00", content=value))
    ((namespace, (entry,)),) = backend.entries.items()
    assert "\x00" not in f"{namespace}{entry.key}{entry.content}"
    entry.model_dump_json()
    assert store.load("n\x00")[0].content == value
    assert backend.entries[namespace][0].content == entry.content, "reading left it as it was"
    assert "Recorder" in repr(store)


async def test_twins_of_a_backend_are_awaited() -> None:
    backend = AsyncRecorder()
    store = adapt(backend)
    entry = MemoryEntry(key="k")
    await store.async_save("n", entry)
    assert await store.async_load("n") == [entry]
    assert await store.async_load_by_key("n", "k") == entry
    await store.async_delete("n", entry.entry_id)
    await store.async_clear("n")
    assert backend.awaited == 5
    store.save("n", entry)
    assert backend.awaited == 5


def test_closing_an_adapted_backend_leaves_the_backend_alone(tmp_path: Path) -> None:
    backend = FolderStore(tmp_path / "five")
    with adapt(backend) as store:
        store.save("n", MemoryEntry())
    with pytest.raises(StoreClosedError):
        store.load("n")
    assert len(backend.load("n")) == 1


def test_what_is_no_backend_is_refused() -> None:
    things: list[Any] = [5, None, object()]
    for thing in things:
        with pytest.raises(ConfigurationError, match="is no store"):
            adapt(thing)
    classes: list[Any] = [Recorder, AsyncRecorder, InMemoryStore, FileStore]
    for each in classes:
        with pytest.raises(ConfigurationError, match=f"{each.__name__} is a class, not a store"):
            adapt(each)
    with pytest.raises(ConfigurationError, match="has no method save, load, load_by_key, delete, clear"):
        adapt(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'durable' is not a Capability"):
        adapt(Recorder(), {"durable"})  # type: ignore[arg-type]


def test_a_backend_that_returns_something_else_is_an_error() -> None:
    backend = Recorder()
    backend.entries["n"] = [{"content": 1}]  # type: ignore[list-item]
    with pytest.raises(CorruptDataError, match="the backend returned dict"):
        adapt(backend).load("n")


# Engines and clients that are the caller's


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    yield engine
    engine.dispose()


def test_a_passed_engine_is_used_with_its_events_and_stays_open(engine: Any) -> None:
    seen: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: seen.append(arguments[2]))
    with SQLiteStore(engine=engine) as store:
        store.save("n", MemoryEntry())
    assert any("INSERT INTO memory_entries" in statement for statement in seen)
    with pytest.raises(StoreClosedError):
        store.count("n")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM memory_entries").scalar() == 1
    assert "engine=Engine(sqlite:///" in repr(store)


def test_a_passed_engine_without_the_schema_is_reported_or_migrated(engine: Any) -> None:
    with pytest.raises(SchemaMismatchError):
        SQLiteStore(engine=engine, migrate=False).load("n")
    with SQLiteStore(engine=engine) as store:
        assert store.load("n") == []


async def test_an_async_engine_cannot_block(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db")
    store = SQLiteStore(engine=engine)
    await store.async_save("n", MemoryEntry())
    for call in (lambda: store.load("n"), store.initialize_sync, store.cleanup_expired_sync):
        with pytest.raises(NotSupportedError, match="blocking methods cannot use an AsyncEngine"):
            call()
    await engine.dispose()


async def test_a_passed_client_serves_its_colour_and_stays_open(place: Place) -> None:
    client: pymongo.AsyncMongoClient[Any] = pymongo.AsyncMongoClient(place.mongodb())
    async with MongoDBStore(client=client, database="passed") as store:
        await store.async_clear("n")
        await store.async_save("n", MemoryEntry())
        assert await store.async_count("n") == 1
        with pytest.raises(NotSupportedError, match="cannot use an AsyncMongoClient"):
            store.load("n")
    assert (await client.admin.command("ping"))["ok"] == 1
    await client.close()
    with pymongo.MongoClient[Any](place.mongodb()) as blocking:
        store = MongoDBStore(client=blocking, database="passed")
        assert store.count("n") == await store.async_count("n") == 1
        await store.close()
        assert blocking.admin.command("ping")["ok"] == 1


@pytest.mark.parametrize(("make", "thing"), [(SQLiteStore, "x"), (PostgreSQLStore, 5)])
def test_what_is_no_engine_is_refused(make: Any, thing: object) -> None:
    with pytest.raises(ConfigurationError, match="must be a SQLAlchemy Engine or AsyncEngine"):
        make(engine=thing)


@pytest.mark.parametrize("thing", [None, 5, "engine"])
def test_what_is_no_connection_is_refused(thing: object, engine: Any) -> None:
    store = SQLiteStore(engine=engine)
    for each in (thing, engine):
        with pytest.raises(ConfigurationError, match=r"bind\(\) needs an open Connection"):
            store.bind(each)  # type: ignore[arg-type]


# Arguments


def test_calls_with_the_wrong_kind_of_argument_say_so() -> None:
    store = InMemoryStore()
    with pytest.raises(InvalidEntryError, match="use save\\(\\) for one"):
        store.save_many("n", MemoryEntry())  # type: ignore[arg-type]
    for arguments in ({"prefix": 5}, {"after": 5}, {"limit": None}):
        with pytest.raises(InvalidEntryError, match=next(iter(arguments))):
            store.namespaces(**arguments)


@pytest.mark.parametrize("make", [FileStore, SQLiteStore])
def test_time_outs_are_seconds(make: Any) -> None:
    for timeout in (0, -1, "5", None, True, float("nan")):
        with pytest.raises(ConfigurationError, match="timeout must be a number of seconds"):
            make("x", timeout=timeout)


def test_pools_have_at_least_one_connection() -> None:
    for size in (0, -1, 1.5, "3"):
        with pytest.raises(ConfigurationError, match="pool_size"):
            SQLiteStore("x.db", pool_size=size)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", OWN, ids=str)
def test_a_store_cannot_be_pickled_or_copied_and_says_why(backend: Backend, place: Place) -> None:
    store = adapt(backend.open(place))
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open a store of its own in each process"):
            use(store)
    store.close_sync()


def test_every_promise_is_explained() -> None:
    assert all(capability.value for capability in Capability)
    assert InMemoryStore().capabilities < SQLiteStore("x.db").capabilities == frozenset(Capability)


def test_files_are_told_apart_whatever_their_namespaces_are_called(tmp_path: Path) -> None:
    """The very names, where the conformance suite adds to them in order not to meet anybody else's."""
    with FileStore(tmp_path / "files") as store:
        for name in LOOKALIKES:
            store.save(name, MemoryEntry(content=ascii(name)))
        for name in LOOKALIKES:
            assert [entry.content for entry in store.load(name)] == [ascii(name)]
        assert store.namespaces(limit=1_000) == sorted(
            LOOKALIKES,
            key=lambda name: name.replace("\x10", "\x10\x10").replace("\x00", "\x100").replace("\ud800", "\x10d800"),
        )
    folded = [path.name.lower() for path in (tmp_path / "files").glob("*.json")]
    assert len(set(folded)) == len(LOOKALIKES), "also where the file system folds case"
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
