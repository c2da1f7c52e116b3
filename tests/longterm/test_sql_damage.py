"""Damaged rows of long-term memory in SQL: every operation that meets one names it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import CorruptDataError, SQLiteStore
from firefly_memory.longterm import MemoryService

NOT_TEXT = "X'00ff'"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Of Ann's, two facts, one of which has a history; and of Bob, who stands for Ann."""
    with SQLiteStore(tmp_path / "memory.db") as store:
        service = MemoryService(store, embedder=None)
        for name in ("Ann", "Bob"):
            service.get_or_create_user("chat", name)
        for value in ("old", "new"):
            service.set_fact("k", value, scope="user", user_id="chat:Ann")
        service.merge_users("chat:Bob", "chat:Ann")
    return tmp_path / "memory.db"


def damage(file: Path, statement: str) -> str:
    """The id of the fact."""
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
        ((fact_id,),) = connection.execute("SELECT id FROM memory_facts")
    connection.close()
    return str(fact_id)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("value", NOT_TEXT), ("key", NOT_TEXT), ("fact_type", NOT_TEXT), ("owner", NOT_TEXT), ("confidence", "7"),
        ("confidence", "'much'"), ("times_confirmed", "'often'"), ("versions", "0.5"), ("valid_from", "'soon'"),
        ("newest", NOT_TEXT), ("last_accessed", "'never'"), ("words", NOT_TEXT), ("searchable", NOT_TEXT),
        ("source_episode_id", NOT_TEXT),
    ],
)  # fmt: skip
def test_a_damaged_fact_is_an_error_that_names_it(column: str, value: str, file: Path) -> None:
    fact_id = damage(file, f"UPDATE memory_facts SET {column} = {value}")
    ids: dict[str, Any] = {"user_id": "chat:Ann"}
    with SQLiteStore(file) as store:
        service = MemoryService(store, embedder=None)
        reads: list[Callable[[], Any]] = [
            lambda: service.read_fact(fact_id),
            lambda: service.get_user_facts("chat:Ann"),
        ]
        if column == "words":  # which lookups and lists do not read
            del reads[1:]
        elif column != "key":
            reads += [
                lambda: service.find_fact("k", "user", **ids),
                lambda: service.set_fact("k", 1, scope="user", **ids),
            ]
        for read in reads:
            with pytest.raises(CorruptDataError, match=fact_id):
                read()


@pytest.mark.parametrize("value", [NOT_TEXT, "'['"])
def test_a_damaged_value_is_an_error_of_its_readers_and_may_be_replaced(value: str, file: Path) -> None:
    fact_id = damage(file, f"UPDATE memory_facts SET value = {value}")
    with SQLiteStore(file) as store:
        service = MemoryService(store, embedder=None)
        with pytest.raises(CorruptDataError, match=fact_id):
            service.get_fact("k", user_id="chat:Ann")


@pytest.mark.parametrize(
    ("column", "value"), [("value", NOT_TEXT), ("valid_from", "'soon'"), ("superseded_at", NOT_TEXT), ("number", "1.5")]
)
def test_a_damaged_version_is_an_error_that_names_its_fact(column: str, value: str, file: Path) -> None:
    fact_id = damage(file, f"UPDATE memory_fact_versions SET {column} = {value}")
    with SQLiteStore(file) as store, pytest.raises(CorruptDataError, match=fact_id):
        MemoryService(store, embedder=None).history(fact_id)


@pytest.mark.parametrize(
    ("column", "value"),
    [("space", NOT_TEXT), ("display_name", NOT_TEXT), ("total_conversations", "'many'"), ("first_seen", "'soon'"), ("last_conversation_at", "'soon'")],
)  # fmt: skip
def test_a_damaged_person_is_an_error_that_names_the_person(column: str, value: str, file: Path) -> None:
    damage(file, f"UPDATE memory_users SET {column} = {value} WHERE canonical_id = 'chat:Ann'")
    with SQLiteStore(file) as store:
        service = MemoryService(store, embedder=None)
        for name in ("chat:Ann", "chat:Bob"):
            with pytest.raises(CorruptDataError, match="person '"):
                service.get_user_context(name)


def test_a_person_who_stands_for_nobody_is_an_error_and_no_endless_loop(file: Path) -> None:
    damage(file, "UPDATE memory_users SET stands_for = 'nobody' WHERE canonical_id = 'chat:Bob'")
    with SQLiteStore(file) as store, pytest.raises(CorruptDataError, match="chat:Bob"):
        MemoryService(store, embedder=None).get_or_create_user("chat", "Bob")
