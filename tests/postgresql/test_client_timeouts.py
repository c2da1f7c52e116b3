"""Time-outs on PostgreSQL: a call that timed out has ended on the server, too, and the pool stays complete."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from firefly_memory import MemoryEntry, PostgreSQLStore, StoreTimeoutError
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.durations import in_the_end
from tests.support.store_caller import MakeStoreCaller, StoreCaller

pytestmark = pytest.mark.thorough

DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)

Admin = psycopg.Connection[Any]


@contextmanager
def locked(place: Place, lock: str) -> Iterator[Admin]:
    """A transaction that keeps others waiting."""
    with psycopg.connect(place.postgresql()) as other:
        other.execute(lock.encode())
        yield other


def at_work(admin: Admin, schema_name: str) -> list[Any]:
    query = "SELECT query FROM pg_stat_activity WHERE query LIKE %s AND state <> 'idle' AND pid <> pg_backend_pid()"
    return [row[0] for row in admin.execute(query, (f"%{schema_name}%",)).fetchall() if "FOR UPDATE" not in row[0]]


def url(place: Place, driver: str, options: str = "") -> str:
    separator = "&" if "?" in place.postgresql() else "?"
    return place.with_driver(driver) + (f"{separator}options={quote(options)}" if options else "")


SAVES: dict[str, Callable[[MemoryEntry], tuple[Any, ...]]] = {
    "save": lambda entry: ("save", "n", entry),
    "save_many": lambda entry: ("save_many", "n", [MemoryEntry(content="beside"), entry]),
}


@DRIVERS
@IN_BOTH_MODES
@pytest.mark.parametrize("operation", SAVES)
@pytest.mark.parametrize("ended_by", ["the server", "the driver"])
def test_a_save_that_timed_out_is_not_written_later(
    ended_by: str,
    operation: str,
    driver: str,
    mode: Mode,
    place: Place,
    name: str,
    admin: Admin,
    using: MakeStoreCaller,
) -> None:
    """The driver calls it off where the server's own time-out does not hold, as behind a pooler."""
    options = "-c statement_timeout=0" if ended_by == "the driver" else ""
    store = using(PostgreSQLStore(url(place, driver, options), schema_name=name, timeout=0.3, pool_size=2), mode)
    in_the_end(lambda: store("save", "n", MemoryEntry(entry_id="it", content="first")))
    with locked(place, f"SELECT 1 FROM {name}.memory_entries WHERE entry_id = 'it' FOR UPDATE") as holder:
        for _ in range(3):
            with pytest.raises(StoreTimeoutError) as caught:
                store(*SAVES[operation](MemoryEntry(entry_id="it", content="late")))
            assert caught.value.retryable
            assert not [query for query in at_work(admin, name) if "INSERT" in query]
        holder.execute(f"DELETE FROM {name}.memory_entries".encode())
        holder.commit()
    assert in_the_end(lambda: store("load", "n")) == []


@DRIVERS
async def test_a_save_that_was_cancelled_is_not_written_later(
    driver: str, place: Place, name: str, admin: Admin
) -> None:
    async with PostgreSQLStore(url(place, driver), schema_name=name, pool_size=1) as store:
        await store.async_save("n", MemoryEntry(entry_id="it", content="first"))
        with locked(place, f"SELECT 1 FROM {name}.memory_entries WHERE entry_id = 'it' FOR UPDATE") as holder:
            task = asyncio.create_task(store.async_save("n", MemoryEntry(entry_id="it", content="late")))
            while not at_work(admin, name):  # noqa: ASYNC110 - the server has no event to wait for
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await store.async_count("n") == 1, "the only connection is free, or another has taken its place"
            holder.execute(f"DELETE FROM {name}.memory_entries".encode())
            holder.commit()
        assert await store.async_load("n") == []


@DRIVERS
@IN_BOTH_MODES
@pytest.mark.parametrize("options", ["", "-c statement_timeout=0"])
def test_a_start_that_times_out_loses_no_connection(
    options: str, driver: str, mode: Mode, place: Place, name: str, using: MakeStoreCaller
) -> None:
    with PostgreSQLStore(place.postgresql(), schema_name=name):
        pass
    store = using(PostgreSQLStore(url(place, driver, options), schema_name=name, timeout=0.3, pool_size=2), mode)
    with locked(place, f"LOCK TABLE {name}.firefly_memory_version IN ACCESS EXCLUSIVE MODE"):
        for _ in range(4):
            with pytest.raises(StoreTimeoutError, match=r"took longer|did not answer") as caught:
                store("count", "n")
            assert caught.value.retryable
    assert in_the_end(lambda: store("count", "n")) == 0


@contextmanager
def pooler(server_url: str) -> Iterator[int]:
    """The port of something that passes everything on to the server but refuses settings, as PgBouncer does."""
    server = psycopg.conninfo.conninfo_to_dict(server_url)
    ours = b"options\0"

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            length = client.recv(4, socket.MSG_WAITALL)
            start = client.recv(int.from_bytes(length) - 4, socket.MSG_WAITALL)
            if start[:4] == (80877103).to_bytes(4):  # may we speak TLS? No
                client.sendall(b"N")
                serve(client)
                return
            if ours in start:
                fields = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
                client.sendall(b"E" + (len(fields) + 4).to_bytes(4) + fields)
                return
            with socket.create_connection((str(server["host"]), int(str(server["port"])))) as behind:
                behind.sendall(length + start)
                back = threading.Thread(target=copy, args=[behind, client])
                back.start()
                copy(client, behind)
                back.join()

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            if done.is_set():
                client.close()
                return
            serving.append(threading.Thread(target=serve, args=[client]))
            serving[-1].start()

    done = threading.Event()
    serving: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        serving.append(threading.Thread(target=accept))
        serving[0].start()
        yield port
        done.set()
        socket.create_connection(("127.0.0.1", port)).close()
        for thread in serving:
            thread.join()


@DRIVERS
@IN_BOTH_MODES
def test_a_pooler_that_refuses_settings_is_used_without_them(
    driver: str, mode: Mode, place: Place, name: str, admin: Admin
) -> None:
    server = place.postgresql()
    found = psycopg.conninfo.conninfo_to_dict(server)
    with pooler(server) as port:
        through = url(place, driver).replace(f"{found['host']}:{found['port']}", f"127.0.0.1:{port}")
        store = StoreCaller(PostgreSQLStore(through, schema_name=name, timeout=0.5, pool_size=2), mode)
        in_the_end(lambda: store("save", "n", MemoryEntry(entry_id="it")))
        with locked(place, f"SELECT 1 FROM {name}.memory_entries WHERE entry_id = 'it' FOR UPDATE"):
            with pytest.raises(StoreTimeoutError):
                store("save", "n", MemoryEntry(entry_id="it", content="late"))
            assert not at_work(admin, name)
        assert in_the_end(lambda: store("load", "n"))[0].content is None
        store.close()


@DRIVERS
@IN_BOTH_MODES
def test_settings_in_the_url_go_to_the_server_beside_ours(
    driver: str, mode: Mode, place: Place, name: str, using: MakeStoreCaller
) -> None:
    with PostgreSQLStore(place.postgresql(), schema_name=name):
        pass
    store = using(PostgreSQLStore(url(place, driver, "-c default_transaction_read_only=on"), schema_name=name), mode)
    with pytest.raises(Exception, match="read-only"):
        store("save", "n", MemoryEntry())


# In the middle of a call


@DRIVERS
@IN_BOTH_MODES
@pytest.mark.parametrize("operation", ["save", "delete_many"])
def test_a_statement_is_repeated_after_its_connection_was_lost(
    operation: str, driver: str, mode: Mode, place: Place, name: str, admin: Admin, using: MakeStoreCaller
) -> None:
    """The server said that it ended the connection, so it has undone the statement, which is done again."""
    store = using(PostgreSQLStore(url(place, driver), schema_name=name, pool_size=1), mode)
    store("save", "n", MemoryEntry(entry_id="it", content="first"))
    results: list[Any] = []
    arguments = {"save": ("n", MemoryEntry(entry_id="it", content="second")), "delete_many": ("n", ["it"])}

    def work() -> None:
        try:
            results.append(store(operation, *arguments[operation]))
        except Exception as error:  # noqa: BLE001 - looked at below
            results.append(error)

    with locked(place, f"SELECT 1 FROM {name}.memory_entries WHERE entry_id = 'it' FOR UPDATE"):
        thread = threading.Thread(target=work)
        thread.start()
        killed: list[Any] = []
        while not killed:
            waiting = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND wait_event_type = 'Lock'"
            killed = admin.execute(waiting, (f"%{name}%",)).fetchall()
    thread.join()
    (result,) = results
    assert result == {"save": None, "delete_many": 1}[operation]
    assert [entry.content for entry in store("load", "n")] == {"save": ["second"], "delete_many": []}[operation]


@DRIVERS
@IN_BOTH_MODES
def test_a_deletion_counts_correctly_after_an_idle_connection_died(
    driver: str, mode: Mode, place: Place, name: str, admin: Admin, using: MakeStoreCaller
) -> None:
    application = f"{url(place, driver)}{'&' if '?' in place.postgresql() else '?'}application_name={name}"
    store = using(PostgreSQLStore(application, schema_name=name, pool_size=1), mode)
    store("save_many", "n", [MemoryEntry(entry_id=f"{number}") for number in range(5)])
    admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (name,))
    assert store("delete_many", "n", [str(number) for number in range(5)]) == 5
