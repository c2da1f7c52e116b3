"""PostgreSQL servers with other settings, or a full disk."""

from __future__ import annotations

import os
import time

import psycopg
import pytest

from firefly_memory import DatabaseStoreError, FireflyMemoryError, MemoryEntry, PostgreSQLStore
from firefly_memory.testing import Mode, checks
from tests.support.backends import Place
from tests.support.servers import EmbeddedPostgreSQL
from tests.support.stoppable_postgresql import IN_BOTH_MODES, url
from tests.support.store_caller import MakeStoreCaller

pytestmark = pytest.mark.thorough


def test_other_time_zones_of_server_and_client_change_no_value(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("Asia/Kathmandu", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        own = EmbeddedPostgreSQL(TimeZone=zone)
        try:
            own.start()
            for driver in ("asyncpg", "psycopg"):
                for check in checks():
                    if check.rule in ("R1", "R4", "R6"):
                        for mode in Mode:
                            check.run(lambda: PostgreSQLStore(url(own, driver)), mode)  # noqa: B023
        finally:
            own.remove()
    monkeypatch.undo()
    time.tzset()


@IN_BOTH_MODES
def test_settings_for_encoding_and_float_digits_change_no_value(
    mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c extra_float_digits=0")
    entry = MemoryEntry(content="漢字", importance=0.12345678901234566)
    for driver in ("asyncpg", "psycopg"):
        for options in ("client_encoding=LATIN1", "options=-c%20extra_float_digits%3D0"):
            store = using(PostgreSQLStore(f"{url(server, driver)}?{options}", schema_name="values"), mode)
            store("clear", "n")
            store("save", "n", entry)
            assert store("load", "n") == [entry]


def test_a_full_disk_of_the_server_raises_one_clear_error() -> None:
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
