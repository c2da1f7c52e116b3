"""Every read names a damaged row, even in columns that accept any type."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    EntryStore,
    PostgreSQLStore,
    SQLiteStore,
)
from firefly_memory.archive import export_jsonl
from tests.fuzzing.sample_data import fill
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute

Damage = Callable[[str], None]

NOT_TEXT, NOT_A_NUMBER = "X'00ff'", "'many'"

ON_SQLITE = {
    "turns": {
        "turn_id": [NOT_A_NUMBER, "1.5"],
        "tokens": [NOT_A_NUMBER, "1.5", "-1"],
        "user_prompt": [NOT_TEXT],
        "assistant_response": [NOT_TEXT],
        "messages": [NOT_TEXT, "'['"],
        "metadata": [NOT_TEXT, "'['"],
        "idempotency_key": [NOT_TEXT],
        "created_at": [NOT_TEXT, "'soon'", "'2024-01-01'"],
        "input_tokens": [NOT_A_NUMBER, "1.5", "-1"],
    },
    "flushes": {
        "strategy": [NOT_TEXT],
        "turns": [NOT_A_NUMBER, "1.5", "-1"],
        "turns_before": [NOT_A_NUMBER],
        "tokens_before": [NOT_A_NUMBER],
        "created_at": [NOT_TEXT, "'soon'"],
    },
    "conversations": {
        "turns": [NOT_A_NUMBER, "1.5", "-1"],
        "tokens": [NOT_A_NUMBER],
        "evicted_turns": [NOT_A_NUMBER],
        "dropped_turns": [NOT_A_NUMBER, "-1"],
        "flush_id": [NOT_TEXT],
        "marks": [NOT_TEXT, "'['", "'[1]'"],
        "created_at": [NOT_TEXT, "'soon'"],
        "updated_at": [NOT_TEXT, "'soon'"],
    },
    "agent_history": {
        "revision": [NOT_TEXT],
        "scope": [NOT_TEXT],
        "forked_from": [NOT_TEXT],
        "branches": [NOT_TEXT, "'['", "'{}'", "'[1]'"],
        "usage": [NOT_TEXT],
        "updated_at": [NOT_TEXT, "'soon'"],
        "format_version": [NOT_A_NUMBER],
    },
    "agent_history_entries": {"kind": [NOT_TEXT], "message": [NOT_TEXT], "parent_id": [NOT_TEXT]},
}


def _export(store: EntryStore) -> None:
    export_jsonl(store, io.StringIO())


@contextmanager
def _damaged(url: str, table: str, column: str, value: str) -> Iterator[None]:
    """Inside the block, one row of the table has ``value`` there."""
    execute(url, f"CREATE TABLE kept AS SELECT * FROM {table}")
    place = "rowid" if url.startswith("sqlite") else "ctid"
    newest = "turn_id DESC" if table.endswith("memory_turns") else place
    execute(
        url,
        f"UPDATE {table} SET {column} = {value} WHERE {place} IN (SELECT {place} FROM {table} ORDER BY {newest} LIMIT 1)",
    )
    try:
        yield
    finally:
        execute(url, f"DELETE FROM {table}")
        execute(url, f"INSERT INTO {table} SELECT * FROM kept")
        execute(url, "DROP TABLE kept")


@pytest.mark.parametrize("table", ON_SQLITE)
def test_an_export_names_damaged_values_in_sqlite(table: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with SQLiteStore(tmp_path / "memory.db") as store:
        fill(store)
        _export(store)
        for column, values in ON_SQLITE[table].items():
            for value in values:
                damaged = _damaged(url, f"memory_{table}", column, value)
                with damaged, pytest.raises(CorruptDataError, match="is damaged"):
                    _export(store)
                    pytest.fail(f"{column} of {table} was {value}")
        _export(store)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_a_postgresql_timestamp_beyond_pythons_range_is_damage(driver: str, place: Place) -> None:
    columns = [
        ("memory_entries", "created_at"), ("memory_turns", "created_at"), ("memory_agent_history", "updated_at"), ("memory_flushes", "created_at"),
        ("memory_conversations", "created_at"), ("memory_conversations", "updated_at"),
    ]  # fmt: skip
    with empty_postgresql(place.postgresql()) as url, PostgreSQLStore(_with(driver, url)) as store:
        fill(store)
        for (table, column), instant in product(columns, ["infinity", "-infinity"]):
            damaged = _damaged(url, f"firefly_memory.{table}", column, f"'{instant}'")
            with damaged, pytest.raises(CorruptDataError, match="is damaged"):
                _export(store)
                pytest.fail(f"{column} of {table} was {instant}")
        _export(store)


def _with(driver: str, url: str) -> str:
    return url.replace("postgresql:", f"postgresql+{driver}:")


def test_a_retry_of_a_damaged_turn_is_an_error(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        fill(store)
        memory = ConversationMemory(store=store)
        for value in (NOT_TEXT, "'['", '\'{"~int": "z"}\''):
            damaged = _damaged(f"sqlite:///{tmp_path}/memory.db", "memory_turns", "metadata", value)
            with damaged, pytest.raises(CorruptDataError, match="is damaged"):
                memory.add_turn("chat", "p", "a", turn_id=3)


def test_a_turn_with_the_highest_number_is_damage(url: str) -> None:
    database = SQLiteStore(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else PostgreSQLStore(url)
    with database as store:
        fill(store)
        table = "memory_turns" if url.startswith("sqlite") else "firefly_memory.memory_turns"
        memory = ConversationMemory(store=store)
        with _damaged(url, table, "turn_id", str(2**31 - 1)), pytest.raises(CorruptDataError, match="so many turns"):
            memory.export_conversation("chat")
