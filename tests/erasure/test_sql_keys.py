"""The key of tombstones belongs to one database, and is read once."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, event, text

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    ErasedError,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
    clock,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.sql.operation import REPORT, Operation, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.stores.sql import SQLStore
from firefly_memory.tombstones.log import KEY, TOMBSTONES, conversation_identity, owner_identity
from firefly_memory.tombstones.sql.refusal import are_accepted, read_key, unless_erased
from firefly_memory.tombstones.sql.statements import Key
from tests.support.backends import Place
from tests.support.databases import execute

T = TypeVar("T")

CHANGE = "UPDATE {}memory_tombstones SET secret = 'another', created_at = '2030-01-01T00:00:00.000000+00:00' WHERE id = 'key'"


@reads
def kept_key(session: Session) -> Key:
    key: Key = session.kept[KEY]
    return key


def _run(store: SQLStore, operation: Operation[[], T]) -> T:
    view: Any = store.blocking
    executor = view._backend.initialize.__self__
    result: T = run_without_loop(executor.run(operation))
    return result


def _erase(store: SQLStore, owner: str) -> None:
    identities = [owner_identity(owner), conversation_identity(f"chat of {owner}")]
    run_without_loop(store.blocking.log(TOMBSTONES).add(identities, owner, clock.now()))


def test_each_database_has_a_key_of_its_own(tmp_path: Path, place: Place) -> None:
    keys = set()
    for number in range(2):
        with SQLiteStore(tmp_path / f"{number}.db"):
            pass
        with sqlite3.connect(tmp_path / f"{number}.db") as file:
            keys |= set(file.execute("SELECT secret FROM memory_tombstones WHERE id = 'key'"))
        name = f"key_{uuid4().hex[:12]}"
        with PostgreSQLStore(place.postgresql(), schema_name=name):
            pass
        keys |= set(execute(place.postgresql(), f"SELECT secret FROM {name}.memory_tombstones WHERE id = 'key'"))
        execute(place.postgresql(), f"DROP SCHEMA {name} CASCADE")
    assert len(keys) == 4
    assert all(len(key) >= 64 for (key,) in keys)


@pytest.mark.parametrize("kind", ["sqlite", "psycopg"])
def test_a_store_notices_another_key(kind: str, tmp_path: Path, place: Place) -> None:
    name = f"key_{uuid4().hex[:12]}"

    def opened() -> SQLStore:
        if kind == "sqlite":
            return SQLiteStore(tmp_path / "memory.db")
        return PostgreSQLStore(place.with_driver(kind), schema_name=name, pool_min_size=0)

    with opened() as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("chat", "p", "a", owner="bob")
        place_of_table = "" if kind == "sqlite" else f"{name}."
        execute(
            f"sqlite:///{tmp_path}/memory.db" if kind == "sqlite" else place.postgresql(), CHANGE.format(place_of_table)
        )
        with opened() as other:
            _erase(other, "ann")
        assert memory.add_turn("chat", "p", "a").turn_id == 1
        execute(
            f"sqlite:///{tmp_path}/memory.db" if kind == "sqlite" else place.postgresql(),
            CHANGE.format(place_of_table).replace("another", "third").replace("2030", "2031"),
        )
        with opened() as other:
            _erase(other, "ann")
        for write in (
            lambda: memory.add_turn("chat of ann", "p", "a"),
            lambda: memory.new_conversation(owner="ann"),
            lambda: memory.fork_conversation("chat", "chat of ann"),
        ):
            with pytest.raises(ErasedError):
                write()
    if kind == "psycopg":
        execute(place.postgresql(), f"DROP SCHEMA {name} CASCADE")


def test_stores_that_share_statements_each_keep_their_own_key(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "one.db") as one, SQLiteStore(tmp_path / "other.db") as other:
        memories = [ConversationMemory(store=store) for store in (one, other)]
        for memory in memories:
            memory.add_turn("chat", "p", "a", owner="bob")
        keys = [_run(store, kept_key) for store in (one, other)]
        assert keys[0] != keys[1]


@pytest.mark.parametrize("kind", ["sqlite", "psycopg"])
def test_a_write_with_an_old_key_is_repeated_although_another_thread_has_read_the_new_one(
    kind: str, tmp_path: Path, place: Place
) -> None:
    """The write is not lost: whether it was refused is asked with the key that it was made with."""
    name = f"key_{uuid4().hex[:12]}"
    writes: list[int] = []

    @operation(on_lost_reply=REPORT)
    def write_while_another_thread_reads_the_key(session: Session) -> bool:
        session.kept[KEY] = Key("old", session.dialect.native_instant(clock.now()))

        def write(refusal: Values) -> bool:
            accepted = are_accepted(session, {**refusal, "tombstones": session.dialect.texts([])})
            writes.append(accepted)
            read_key(session)  # which another thread might do at this moment
            return accepted

        return unless_erased(session, "write", [owner_identity("ann")], write)

    store: SQLStore
    if kind == "sqlite":
        store = SQLiteStore(tmp_path / "memory.db")
    else:
        store = PostgreSQLStore(place.with_driver(kind), schema_name=name, pool_min_size=0)
    with store:
        assert _run(store, write_while_another_thread_reads_the_key)
    assert writes == [False, True]
    if kind == "psycopg":
        execute(place.postgresql(), f"DROP SCHEMA {name} CASCADE")


def test_a_missing_key_is_said_to_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        execute(f"sqlite:///{path}", "DELETE FROM memory_tombstones")
        with pytest.raises(CorruptDataError, match=r"memory_tombstones is damaged \(its key is missing"):
            ConversationMemory(store=store).add_turn("chat", "p", "a")
        with pytest.raises(CorruptDataError, match="its key is missing"):
            _erase(store, "ann")


def test_the_key_is_read_once_and_the_secret_is_never_sent(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    engine = create_engine(f"sqlite:///{path}")
    sent: list[tuple[str, str]] = []

    @event.listens_for(engine, "before_cursor_execute")
    def _sent(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> None:
        sent.append((statement, repr(parameters)))

    with SQLiteStore(engine=engine) as store:
        memory = ConversationMemory(store=store)
        for number in range(3):
            memory.add_turn("chat", str(number), "a", owner="ann")
            memory.new_conversation(owner="ann")
            WorkingMemory(store=store, scope_id="ann").set("k", number)
        _erase(store, "ann")
        with engine.connect() as connection:
            (secret,) = connection.execute(text("SELECT secret FROM memory_tombstones WHERE id = 'key'")).one()
    engine.dispose()
    reads = [statement for statement, _ in sent if statement.startswith("SELECT") and "secret" in statement]
    assert len(reads) == 3  # by the first write, by the erasure, and above
    assert not [parameters for _, parameters in sent if secret in parameters]


def test_nothing_deleted_can_be_read_in_the_file(tmp_path: Path) -> None:
    path, secret = tmp_path / "memory.db", "Tarantella"
    with SQLiteStore(path) as store:
        memory = ConversationMemory(store=store)
        for number in range(200):
            memory.add_turn("chat of ann", f"{secret} {number}", "x" * 3_000, owner="ann")
        assert secret.encode() in b"".join(each.read_bytes() for each in tmp_path.iterdir())
        _erase(store, "ann")
        memory.clear("chat of ann")
        run_without_loop(store.blocking.log(TOMBSTONES).scrub())
        assert secret.encode() not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["sqlite", "psycopg"])
def test_a_text_is_found_in_every_table_and_form(kind: str, tmp_path: Path, place: Place) -> None:
    name, said = f"found_{uuid4().hex[:12]}", 'Zoë "Z" \U0001f98b \\ %'
    url = f"sqlite:///{tmp_path}/memory.db" if kind == "sqlite" else place.postgresql()
    store: SQLStore = SQLiteStore(tmp_path / "memory.db")
    table, binary = '"odd "" % :table"', "BLOB"
    if kind == "psycopg":
        store, binary = PostgreSQLStore(place.with_driver(kind), schema_name=name, pool_min_size=0), "BYTEA"
        table = f"{name}.{table}"
    with store:
        log = store.blocking.log(TOMBSTONES)
        assert run_without_loop(log.find_text(said)) == []
        ConversationMemory(store=store).add_turn("chat", said, "a", metadata={said: 1})
        WorkingMemory(store=store, scope_id="s").set("k", {"said": [said]})
        execute(url, f'CREATE TABLE {table} (id INTEGER PRIMARY KEY, "Select" {binary})')
        in_bytes = f"x'{said.encode().hex()}'" if kind == "sqlite" else f"'\\x{said.encode().hex()}'"
        execute(url, f"INSERT INTO {table} VALUES (1, {in_bytes}), (2, {in_bytes})")
        found = dict(run_without_loop(log.find_text(said)))
        assert found == {"memory_entries": 1, "memory_turns": 1, 'odd " % :table': 2}
        assert run_without_loop(log.find_text("zoë")) == []
        assert run_without_loop(log.find_text("\x00'; DROP TABLE memory_turns --")) == []
    if kind == "psycopg":
        execute(place.postgresql(), f"DROP SCHEMA {name} CASCADE")


def test_the_words_of_a_full_text_index_are_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with SQLiteStore(tmp_path / "memory.db") as store:
        execute(url, "CREATE VIRTUAL TABLE words USING fts5(body)")
        execute(url, "INSERT INTO words VALUES ('tarantella')")
        found = dict(run_without_loop(store.blocking.log(TOMBSTONES).find_text("tarantella")))
        assert found["words_content"] == 1
        assert "words" not in found
