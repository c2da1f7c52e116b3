"""R12 for PostgreSQL: servers that are away, hang, refuse or fill up: each one clear error, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine

from firefly_memory import (
    ConfigurationError,
    CorruptDataError,
    DatabaseConnectionError,
    DatabaseStoreError,
    EntryStore,
    FireflyMemoryError,
    InvalidEntryError,
    MemoryEntry,
    PostgreSQLStore,
    StoreTimeoutError,
)
from firefly_memory.testing import Colour, checks
from tests.support.backends import Place
from tests.support.servers import EmbeddedPostgreSQL, free_port
from tests.support.store_caller import Using

PASSWORD = "correct-horse"
DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
COLOURS = pytest.mark.parametrize("colour", Colour)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgreSQL]:
    """A server of this module's own, to be stopped and frozen at will."""
    server = EmbeddedPostgreSQL(password=PASSWORD)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def admin(server: EmbeddedPostgreSQL) -> Callable[[str], list[Any]]:
    def run(sql: str) -> list[Any]:
        with psycopg.connect(server.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    return run


def url(server: EmbeddedPostgreSQL, driver: str) -> str:
    return server.url.replace("postgresql://", f"postgresql+{driver}://")


def prepare(server: EmbeddedPostgreSQL, schema_name: str) -> None:
    """Migrate a schema, and leave."""
    with PostgreSQLStore(server.url, schema_name=schema_name):
        pass


# Not reached


@DRIVERS
@COLOURS
def test_connections_that_died_at_rest_are_replaced_without_a_word(
    driver: str, colour: Colour, server: EmbeddedPostgreSQL, using: Using, admin: Callable[[str], list[Any]]
) -> None:
    database = PostgreSQLStore(url(server, driver), schema_name="rested", pool_size=3)
    store = using(database, colour)
    store("clear", "n")
    for number in range(3):
        admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'firefly-memory'")
        store("save", "n", MemoryEntry(content=number))
        store("save_many", "n", [MemoryEntry(content=number), MemoryEntry(content=number)])
    assert store("count", "n") == 9


@COLOURS
def test_hosts_that_do_not_exist(colour: Colour, using: Using) -> None:
    for host in (f"127.0.0.1:{free_port()}", "no-such-host.invalid", "%2Fno%2Fsuch%2Fsocket"):
        store = using(PostgreSQLStore(f"postgresql://user:{PASSWORD}@{host}/name", timeout=5), colour)
        with pytest.raises(DatabaseConnectionError) as caught:
            store("load", "n")
        assert PASSWORD not in _everything_shown(caught.value)


@COLOURS
def test_the_first_of_several_hosts_that_answers_is_used(
    colour: Colour, server: EmbeddedPostgreSQL, using: Using
) -> None:
    several = server.url.replace("@", f"@127.0.0.1:{free_port()},")
    store = using(PostgreSQLStore(several, schema_name="several", timeout=10), colour)
    store("clear", "n")
    store("save", "n", MemoryEntry())
    assert store("count", "n") == 1


@COLOURS
def test_unix_sockets(colour: Colour, place: Place, using: Using) -> None:
    own = EmbeddedPostgreSQL()
    try:
        own.start()
        for address in (
            f"postgresql://postgres@/postgres?host=/tmp&port={own.port}",
            f"postgresql://postgres@%2Ftmp:{own.port}/postgres?sslmode=disable",
        ):
            store = using(PostgreSQLStore(address), colour)
            store("save", "n", MemoryEntry())
            assert store("count", "n") >= 1
    finally:
        own.remove()


@pytest.fixture(scope="module")
def small_server() -> Iterator[EmbeddedPostgreSQL]:
    """A server with room for twelve connections."""
    server = EmbeddedPostgreSQL(max_connections="12", superuser_reserved_connections="0", max_wal_senders="0")
    server.start()
    yield server
    server.remove()


@COLOURS
def test_many_that_start_at_once_on_a_server_with_few_free_slots_take_turns(
    colour: Colour, small_server: EmbeddedPostgreSQL
) -> None:
    """Each has a store of its own, migrates, opens two connections if there is room, and leaves."""
    name = f"few_{colour}"

    def work(number: int) -> None:
        store = PostgreSQLStore(small_server.url, schema_name=name, timeout=60)
        if colour is Colour.BLOCKING:
            with store:
                store.save("n", MemoryEntry(content=number))
        else:
            asyncio.run(_saved_by_one_of_many(store, number))

    with ExitStack() as others, ThreadPoolExecutor(16) as threads:
        for _ in range(8):
            others.enter_context(psycopg.connect(small_server.url))
        list(threads.map(work, range(16)))
    with PostgreSQLStore(small_server.url, schema_name=name) as store:
        assert sorted(entry.content for entry in store.load("n")) == list(range(16))


async def _saved_by_one_of_many(store: PostgreSQLStore, number: int) -> None:
    async with store:
        await store.async_save("n", MemoryEntry(content=number))


async def test_on_a_full_server_callers_share_the_connections_that_are_there(small_server: EmbeddedPostgreSQL) -> None:
    with ExitStack() as others:
        for _ in range(10):
            others.enter_context(psycopg.connect(small_server.url))
        async with PostgreSQLStore(small_server.url, schema_name="shared", pool_size=5, timeout=10) as store:
            await asyncio.gather(*[store.async_count("n") for _ in range(20)])


@COLOURS
def test_a_server_that_stays_full_is_said_so_within_the_time_out(
    colour: Colour, small_server: EmbeddedPostgreSQL, using: Using
) -> None:
    store = using(PostgreSQLStore(small_server.url, schema_name="full", timeout=1), colour)
    with ExitStack() as others:
        for _ in range(12):
            others.enter_context(psycopg.connect(small_server.url))
        with pytest.raises(DatabaseConnectionError, match="no free connection slot; lower pool_size") as caught:
            store("count", "n")
        assert caught.value.retryable
    assert store("count", "n") == 0


# Refused


def _everything_shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


@DRIVERS
@COLOURS
def test_a_wrong_password_is_said_so_and_never_shown(
    driver: str, colour: Colour, server: EmbeddedPostgreSQL, using: Using, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = url(server, driver).replace(PASSWORD, "wr0ng-horse")
    made = PostgreSQLStore(wrong)
    store = using(made, colour)
    with pytest.raises(DatabaseConnectionError, match="refused the login") as caught:
        store("load", "n")
    assert not caught.value.retryable
    assert caught.value.__cause__ is not None
    shown = _everything_shown(caught.value) + caplog.text + repr(made) + str(made)
    assert "wr0ng-horse" not in shown
    assert "postgres:***@127.0.0.1" in repr(made)


@COLOURS
def test_a_database_that_does_not_exist(colour: Colour, server: EmbeddedPostgreSQL, using: Using) -> None:
    store = using(PostgreSQLStore(server.url.removesuffix("postgres") + "nothing"), colour)
    with pytest.raises(DatabaseConnectionError, match="the database does not exist"):
        store("load", "n")


@COLOURS
def test_a_role_without_rights_is_told_what_it_lacks(
    colour: Colour, server: EmbeddedPostgreSQL, using: Using, admin: Callable[[str], list[Any]]
) -> None:
    admin("DROP ROLE IF EXISTS stranger")
    admin(f"CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}'")
    prepare(server, "guarded")
    stranger = server.url.replace("//postgres:", "//stranger:")
    store = using(PostgreSQLStore(stranger, schema_name="guarded"), colour)
    with pytest.raises(DatabaseStoreError, match=r"lacks a privilege \(permission denied for schema guarded\)"):
        store("load", "n")
    missing = using(PostgreSQLStore(stranger, schema_name="not_there"), colour)
    with pytest.raises(DatabaseStoreError, match="lacks a privilege"):
        missing("load", "n")


@COLOURS
def test_a_role_without_ddl_rights_works_on_a_current_schema(
    colour: Colour, server: EmbeddedPostgreSQL, using: Using, admin: Callable[[str], list[Any]]
) -> None:
    admin("DROP OWNED BY worker") if admin("SELECT 1 FROM pg_roles WHERE rolname = 'worker'") else None
    admin("DROP ROLE IF EXISTS worker")
    admin(f"CREATE ROLE worker LOGIN PASSWORD '{PASSWORD}'")
    prepare(server, "granted")
    admin("GRANT USAGE ON SCHEMA granted TO worker")
    admin("GRANT SELECT, INSERT, UPDATE, DELETE ON granted.memory_entries TO worker")
    admin("GRANT SELECT ON granted.firefly_memory_version TO worker")
    for check in checks():
        if check.rule in ("R3", "R6", "R8"):
            worker = server.url.replace("//postgres:", "//worker:")
            check.run(lambda: PostgreSQLStore(worker, schema_name="granted"), colour)  # noqa: B023


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", 'a"b', "a;drop", "pg_mine", "ü", "x" * 64, "a.b", None])
def test_a_schema_name_that_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="schema_name"):
        PostgreSQLStore("postgresql://localhost/x", schema_name=name)


def test_a_schema_name_may_have_capitals_and_be_a_reserved_word(server: EmbeddedPostgreSQL) -> None:
    for name in ("MySchema", "select", "_x$1"):
        with PostgreSQLStore(server.url, schema_name=name) as store:
            store.save("n", MemoryEntry(content=name))
            assert [entry.content for entry in store.load("n")] == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either url or engine"),
        ({"url": "postgresql://h/x", "engine": create_engine("sqlite://")}, "either url or engine"),
        ({"engine": create_engine("sqlite://")}, "the engine is for sqlite"),
        ({"url": "postgresql://h/x", "pool_size": 0}, "pool_size"),
        ({"url": "postgresql://h/x", "timeout": 0}, "timeout"),
        ({"url": "mysql://h/x"}, "'mysql' is not PostgreSQL's"),
        ({"url": "h/x"}, "not a PostgreSQL URL"),
        ({"url": "postgresql://h:99999/x"}, "port"),
        ({"url": "postgresql://h:0/x"}, "port"),
        ({"url": "postgresql://h,i:1/x?port=1,2,3"}, "one port for all hosts"),
        ({"url": "postgresql://h/x?connect_timeout=abc"}, "connect_timeout"),
        ({"url": "postgresql://h/x?connect_timeout=-5"}, "connect_timeout"),
        ({"url": "postgresql://h/x?keepalives_idle=1.5"}, "keepalives_idle"),
        ({"url": "postgresql://h/x?sslmode=nonsense"}, "sslmode .* must be one of allow, disable"),
        ({"url": "postgresql://h/x?ssl=nonsense"}, "sslmode"),
        ({"url": "postgresql://h/x?target_session_attrs=nonsense"}, "target_session_attrs"),
        ({"url": "postgresql://u:n%00nsense@h/x"}, "%00"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        PostgreSQLStore(**arguments)
    assert "nsense" not in _everything_shown(caught.value), "it may be a part of the password"


# Rows


@COLOURS
def test_a_locked_row_is_not_waited_for_for_ever_and_holds_up_nobody_else(
    colour: Colour, server: EmbeddedPostgreSQL, using: Using
) -> None:
    made = PostgreSQLStore(server.url, schema_name="locked", timeout=1)
    store = using(made, colour)
    store("clear", "n")
    store("save", "n", MemoryEntry(entry_id="locked"))
    with psycopg.connect(server.url) as other:
        other.execute("SELECT 1 FROM locked.memory_entries WHERE entry_id = 'locked' FOR UPDATE")
        with pytest.raises(StoreTimeoutError) as caught:
            store("save", "n", MemoryEntry(entry_id="locked", content="late"))
        assert caught.value.retryable
        if colour is Colour.SUSPENDING:
            results = store.runner.run(_saves_beside_a_locked_one(made))
            assert [type(result) for result in results] == [StoreTimeoutError, *[type(None)] * 30]
        other.rollback()
    store("save", "n", MemoryEntry(entry_id="locked", content="now"))
    assert store("load", "n")[0].content == "now"


async def _saves_beside_a_locked_one(store: EntryStore) -> list[BaseException | None]:
    entries = [MemoryEntry(entry_id="locked"), *[MemoryEntry() for _ in range(30)]]
    return await asyncio.gather(*[store.async_save("n", entry) for entry in entries], return_exceptions=True)


async def test_the_holder_of_a_lock_can_save_something_else_meanwhile(server: EmbeddedPostgreSQL) -> None:
    """Group commit must not tie a save to another caller's locked row: the lock's owner may be waiting for it."""
    async with PostgreSQLStore(server.url, schema_name="tied", timeout=5) as store:
        await store.async_save("n", MemoryEntry(entry_id="locked"))
        with psycopg.connect(server.url) as other:
            other.execute("SELECT 1 FROM tied.memory_entries WHERE entry_id = 'locked' FOR UPDATE")
            waiting = [asyncio.create_task(store.async_save("n", MemoryEntry(entry_id="locked"))) for _ in range(3)]
            await asyncio.gather(*[store.async_save("n", MemoryEntry(content="mine")) for _ in range(20)])
            assert not any(task.done() for task in waiting)
            other.rollback()
        await asyncio.gather(*waiting)
        assert await store.async_count("n") == 21


async def test_a_cancelled_save_gives_its_connection_back(server: EmbeddedPostgreSQL) -> None:
    async with PostgreSQLStore(server.url, schema_name="cancelled", pool_size=1, timeout=5) as store:
        await store.async_save("n", MemoryEntry(entry_id="locked"))
        with psycopg.connect(server.url) as other:
            other.execute("SELECT 1 FROM cancelled.memory_entries WHERE entry_id = 'locked' FOR UPDATE")
            for _ in range(3):
                task = asyncio.create_task(store.async_save("n", MemoryEntry(entry_id="locked", content="late")))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(task, 0.1)
            assert await store.async_count("n") == 1, "the only connection of the pool is free"
            other.rollback()
        (entry,) = await store.async_load("n")
        assert entry.content is None


async def test_a_pool_of_one_serves_everybody(server: EmbeddedPostgreSQL) -> None:
    async with PostgreSQLStore(server.url, schema_name="one", pool_size=1) as store:
        await store.async_clear("n")
        await asyncio.gather(*[store.async_save("n", MemoryEntry()) for _ in range(50)])
        counts = await asyncio.gather(*[store.async_count("n") for _ in range(20)])
    assert counts == [50] * 20


@COLOURS
@pytest.mark.parametrize(
    "damage",
    ["content = '{\"~int\": \"zz\"}'", "metadata = '[]'", "scope = 'nowhere'", "created_at = 'infinity'",
     "created_at = '12000-01-01'"],
)  # fmt: skip
def test_a_damaged_row_is_named(
    damage: str, colour: Colour, server: EmbeddedPostgreSQL, using: Using, admin: Callable[[str], list[Any]]
) -> None:
    store = using(PostgreSQLStore(server.url, schema_name="damaged"), colour)
    store("clear", "n")
    store("save", "n", MemoryEntry(entry_id="it"))
    admin(f"UPDATE damaged.memory_entries SET {damage} WHERE entry_id = 'it'")
    with pytest.raises(CorruptDataError, match="'it' in namespace 'n'"):
        store("load", "n")
    assert admin("SELECT count(*) FROM damaged.memory_entries WHERE entry_id = 'it'") == [(1,)]


@COLOURS
def test_an_infinite_expiry_written_by_hand_is_none(
    colour: Colour, server: EmbeddedPostgreSQL, using: Using, admin: Callable[[str], list[Any]]
) -> None:
    store = using(PostgreSQLStore(server.url, schema_name="infinite"), colour)
    store("clear", "n")
    store("save", "n", MemoryEntry(expires_at=datetime(2999, 1, 1, tzinfo=UTC)))
    admin("UPDATE infinite.memory_entries SET expires_at = 'infinity'")
    assert store("load", "n")[0].expires_at is None


def test_names_too_long_for_an_index_are_refused(server: EmbeddedPostgreSQL) -> None:
    def unlike(start: int) -> str:
        return "".join(chr(0x4E00 + (start + 7919 * number) % 20_000) for number in range(512))

    with PostgreSQLStore(server.url, schema_name="long") as store:
        with pytest.raises(InvalidEntryError, match="too long for an index"):
            store.save(unlike(1), MemoryEntry(key=unlike(2), entry_id=unlike(3)))
        store.save(unlike(1), MemoryEntry(key="short"))
        assert store.count(unlike(1)) == 1
        store.clear(unlike(1))


# Other servers


def test_servers_and_clients_in_other_time_zones(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("Asia/Kathmandu", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        own = EmbeddedPostgreSQL(TimeZone=zone)
        try:
            own.start()
            for driver in ("asyncpg", "psycopg"):
                for check in checks():
                    if check.rule in ("R1", "R4", "R6"):
                        for colour in Colour:
                            check.run(lambda: PostgreSQLStore(url(own, driver)), colour)  # noqa: B023
        finally:
            own.remove()
    monkeypatch.undo()
    time.tzset()


@COLOURS
def test_what_the_environment_says_of_texts_and_numbers_changes_no_value(
    colour: Colour, server: EmbeddedPostgreSQL, using: Using, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c extra_float_digits=0")
    entry = MemoryEntry(content="漢字", importance=0.12345678901234566)
    for driver in ("asyncpg", "psycopg"):
        for options in ("client_encoding=LATIN1", "options=-c%20extra_float_digits%3D0"):
            store = using(PostgreSQLStore(f"{url(server, driver)}?{options}", schema_name="values"), colour)
            store("clear", "n")
            store("save", "n", entry)
            assert store("load", "n") == [entry]


def test_a_full_disk_of_the_server_is_one_clear_error() -> None:
    own = EmbeddedPostgreSQL(small_disk=True)
    try:
        own.start()
        store = PostgreSQLStore(own.url)
        store.initialize_sync()
        with psycopg.connect(own.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{own.small_disk}'".encode())
            connection.execute("ALTER TABLE firefly_memory.memory_entries SET TABLESPACE small")
        saved = 0
        error: FireflyMemoryError | None = None
        while error is None:
            assert saved < 5_000, "the disk did not fill up"
            try:
                store.save("n", MemoryEntry(content=os.urandom(1500).hex()))
                saved += 1
            except DatabaseStoreError as caught:
                error = caught
        assert isinstance(error, DatabaseStoreError)
        full = "out of disk space" in str(error)
        assert full or "File too large" in str(error), "where no small disk can be had"
        assert error.retryable == full
        assert store.count("n") == saved
        store.close_sync()
    finally:
        own.remove()
