"""Copies between all stores: every value is copied, and a comparison finds differences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MongoDBStore,
    NotSupportedError,
    PostgreSQLStore,
    SQLiteStore,
    TokenEstimator,
    TurnConflictError,
    adapt,
)
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.values import VALUES
from firefly_memory.transfer.counts import Counts
from tests.support.command_line import run
from tests.support.copy_worker import killed_copy
from tests.support.folder_backend import FolderStore
from tests.support.pydantic_ai_messages import EVERYTHING
from tests.support.ram_use import Work, assert_more_takes_no_more_memory
from tests.support.stored_contents import contents, equal, filled
from tests.support.value_strategies import any_text, json_values, names

pytestmark = pytest.mark.thorough

KINDS = ("file", "sqlite", "postgresql", "mongodb")
IN_A_TURN = [value for value in VALUES if not isinstance(value, (dict, list))]
ENTRIES = 62 + len(VALUES) + 1


@dataclass(frozen=True)
class Somewhere:
    """A place for a store, as a command names it and as a program opens it."""

    options: list[str]
    open: Callable[[], EntryStore]

    def as_(self, side: str) -> list[str]:
        return [option.replace("--", f"--{side}-").replace("-url", "") for option in self.options]


New = Callable[[str], Somewhere]


@pytest.fixture(scope="module")
def new(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[New]:
    """Places that nobody has used."""
    directory = tmp_path_factory.mktemp("copies")
    with ExitStack() as later:

        def make(kind: str) -> Somewhere:
            name = f"copy_{uuid4().hex[:12]}"
            path = directory / name
            match kind:
                case "file":
                    return Somewhere(["--url", f"file:{path}"], lambda: FileStore(path))
                case "sqlite":
                    return Somewhere(["--url", f"sqlite:///{path}"], lambda: SQLiteStore(path))
                case "postgresql":
                    url = servers_of_the_session["postgresql"]()
                    later.callback(_drop_schema, url, name)
                    options = ["--url", url, "--schema", name]
                    return Somewhere(options, lambda: PostgreSQLStore(url, schema_name=name, pool_min_size=1))
                case _:
                    url = servers_of_the_session["mongodb"]()
                    later.callback(_drop_database, url, name)
                    return Somewhere(["--url", url, "--database", name], lambda: MongoDBStore(url, database=name))

        yield make


def _drop_schema(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


def _drop_database(url: str, name: str) -> None:
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(url) as client:
        client.drop_database(name)


class Sevens(TokenEstimator):
    """An estimator of somebody's own."""

    def estimate_turn(self, user_prompt: str, assistant_response: str, messages: Any = ()) -> int:
        return 7


def with_everything(store: EntryStore) -> EntryStore:
    filled(store)
    at_first = datetime(1, 1, 1, tzinfo=UTC)
    entries = [MemoryEntry(content=value, metadata={"v": [1.5, "\x00"]}, created_at=at_first) for value in VALUES]
    store.save_many("every value", entries)
    store.save("\ud800 \x00 conversation:", MemoryEntry(entry_id="\x10\udfff", key="\x00", importance=1.0))
    store.save("gone", MemoryEntry(content="gone", expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    memory = ConversationMemory(store=store, estimator=Sevens())
    for number in range(3):
        memory.add_turn(
            "keyed", f"p{number}", "a", EVERYTHING, metadata={"v": IN_A_TURN}, idempotency_key=f"\x00{number}"
        )
    memory.add_turn("keyed", "p", "a", [{"content": value} for value in IN_A_TURN])
    return store


def assert_all_there(source: EntryStore, target: EntryStore) -> None:
    assert equal(contents(source), contents(target))
    memory = ConversationMemory(store=target)
    (turn, *_) = turns = memory.get_turns("keyed")
    assert [each.token_estimate for each in turns] == [7] * 4
    again = memory.add_turn("keyed", "p0", "a", EVERYTHING, metadata=turn.metadata, idempotency_key="\x000")
    assert again == turn
    assert len(memory.get_turns("keyed")) == 4


@pytest.fixture(scope="module")
def sources(new: New) -> Iterator[dict[str, EntryStore]]:
    with ExitStack() as later:
        yield {kind: with_everything(later.enter_context(new(kind).open())) for kind in KINDS}


@pytest.mark.parametrize("target_kind", KINDS)
@pytest.mark.parametrize("source_kind", KINDS)
def test_a_copy_has_every_value_of_any_other_store(
    source_kind: str, target_kind: str, sources: dict[str, EntryStore], new: New
) -> None:
    source, everything = sources[source_kind], Counts(entries=ENTRIES, conversations=4, turns=13, flushes=7)
    with new(target_kind).open() as target:
        for before in (Counts(), everything):
            copied = copy_store(source, target)
            assert copied.equal
            assert copied.before == before
            assert copied.source.counts == copied.target.counts == everything
            assert copied.source.checksum == copied.target.checksum
        assert_all_there(source, target)


async def test_an_asynchronous_copy_does_the_same(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "a.db") as source, FileStore(tmp_path / "files") as target:
        with_everything(source)
        copied = await async_copy_store(source, target)
        assert copied.equal
        assert_all_there(source, target)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(names, names, json_values), max_size=8), st.lists(st.tuples(any_text, json_values), max_size=4)
)
def test_all_values_in_all_fields_are_copied(entries: list[Any], turns: list[Any]) -> None:
    with InMemoryStore() as source, SQLiteStore(":memory:") as target:
        for namespace, key, value in entries:
            source.save(namespace, MemoryEntry(key=key, content=value, metadata={key: value}))
        for text, value in turns:
            ConversationMemory(store=source).add_turn(text[:1] or "c", text, text, [value], metadata={"v": value})
        assert copy_store(source, target).equal
        assert equal(contents(source), contents(target))


def test_a_copy_continues_after_a_killed_copy(new: New) -> None:
    for kind in ("sqlite", "postgresql"):
        source_place, target_place = new("sqlite"), new(kind)
        with source_place.open() as source, target_place.open() as target:
            source.save_many("n", [MemoryEntry(content=number) for number in range(1_200)])
            memory, copied = ConversationMemory(store=source), ConversationMemory(store=target)
            for number in range(300):
                memory.add_turn("chat", f"p{number}", "a", [{"n": number}], idempotency_key=f"key {number}")
            killed_copy("turns", 150, *source_place.as_("from"), *target_place.as_("to"))
            there = len(copied.get_turns("chat"))
            assert 0 < there < 300
            ended = run("copy", *source_place.as_("from"), *target_place.as_("to"), "--json", cwd=Path.cwd())
            assert (ended.returncode, ended.stderr) == (0, "")
            assert json.loads(ended.stdout)["there_before"]["entries"] == 1_200
            assert json.loads(ended.stdout)["there_before"]["turns"] >= there
            assert equal(contents(source), contents(target))


def test_a_different_value_in_the_target_is_not_lost(new: New) -> None:
    source_place, target_place = new("sqlite"), new("postgresql")
    arguments = ["copy", *source_place.as_("from"), *target_place.as_("to")]
    with source_place.open() as source, target_place.open() as target:
        for number in range(3):
            source.save("n", MemoryEntry(entry_id=f"id {number}", content=number))
        assert run(*arguments, "--quiet", cwd=Path.cwd()).returncode == 0
        (_, changed, _) = source.load("n")
        source.save("n", MemoryEntry(entry_id="new", content="not copied yet"))
        target.save("n", changed.model_copy(update={"content": "newer"}))
        refused = run(*arguments, cwd=Path.cwd())
        assert refused.returncode == 1
        assert "entry 'id 1' of namespace 'n' of the target is another one in the source" in refused.stderr
        assert [entry.content for entry in target.load("n")] == [0, "newer", 2]
        target.save("n", MemoryEntry(entry_id="id 1", content="made elsewhere"))
        target.save("theirs", MemoryEntry(content="stays"))
        merged = run(*arguments, "--merge", cwd=Path.cwd())
        assert (merged.returncode, merged.stderr) == (0, "")
        assert "the target also has 1 entries" in merged.stdout
        assert target.load("n") == source.load("n")
        assert target.load("theirs")[0].content == "stays"


def test_an_entry_of_the_target_that_was_made_at_another_time_is_replaced_by_a_merge_only() -> None:
    with InMemoryStore() as source, InMemoryStore() as target:
        target.save("n", MemoryEntry(entry_id="id", content="theirs"))
        source.save("n", MemoryEntry(entry_id="id", content="ours"))
        with pytest.raises(ConflictError, match="is not in the source; nothing was copied"):
            copy_store(source, target)
        assert copy_store(source, target, merge=True).equal
        assert target.load("n") == source.load("n")


def test_a_conversation_with_other_turns_in_the_target_is_a_conflict() -> None:
    with InMemoryStore() as source, InMemoryStore() as target:
        mine, theirs = ConversationMemory(store=source), ConversationMemory(store=target)
        mine.add_turn("c", "p", "a")
        copy_store(source, target)
        mine.add_turn("c", "mine", "a")
        theirs.add_turn("c", "theirs", "a")
        with pytest.raises(ConflictError, match="turn 1 of conversation 'c' of the target is another one"):
            copy_store(source, target)
        with pytest.raises(TurnConflictError):
            copy_store(source, target, merge=True)
        assert [turn.user_prompt for turn in theirs.get_turns("c")] == ["p", "theirs"]


def test_a_second_copy_adds_new_items_of_the_source(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as source, FileStore(tmp_path / "files") as target:
        memory = ConversationMemory(store=source, summarize_threshold=30, summarizer=lambda turns: f"{len(turns)}")
        for number in range(40):
            memory.add_turn("c", f"prompt {number}", "answer")
            if number % 13 == 0:
                assert copy_store(source, target).equal
        assert copy_store(source, target).equal
        assert memory.get_window("c").summary is not None
        assert equal(contents(source), contents(target))


@pytest.mark.parametrize(
    ("side", "write", "difference"),
    [
        (0, lambda store: store.save("A", MemoryEntry(entry_id="x")), "entry 'x' of namespace 'A' is only in the source"),
        (0, lambda store: store.delete("a", "id"), "entry 'id' of namespace 'a' is only in the target"),
        (1, lambda store: store.save("a", MemoryEntry(entry_id="id", content=2)), "entry 'id' of namespace 'a' is another one in the target"),
        (1, lambda store: ConversationMemory(store=store).add_turn("c", "p", "a"), "turn 1 of conversation 'c' is only in the target"),
    ],
)  # fmt: skip
def test_changes_during_a_copy_are_found(side: int, write: Callable[[EntryStore], Any], difference: str) -> None:
    with InMemoryStore() as source, InMemoryStore() as target:
        source.save("a", MemoryEntry(entry_id="id", content=1))
        ConversationMemory(store=source).add_turn("c", "p", "a")
        steps: list[Counts] = []

        def progress(step: str, counts: Counts) -> None:
            steps.append(counts)
            if step == "copying" and counts.turns:
                write((source, target)[side])

        copied = copy_store(source, target, progress=progress)
        assert copied.difference == difference
        assert not copied.equal
        assert copied.source.checksum != copied.target.checksum
        assert steps


def test_entries_that_expire_during_a_copy_are_no_difference() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    with stopped(start) as clock, InMemoryStore() as source, InMemoryStore() as target:
        source.save("a", MemoryEntry(content=1, expires_at=start + timedelta(seconds=9)))
        source.save("b", MemoryEntry(content=2))

        def progress(step: str, counts: Counts) -> None:
            clock.advance(seconds=5)

        assert copy_store(source, target, progress=progress).equal


def test_the_command_fails_unless_both_stores_have_the_same_values(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as source, SQLiteStore(tmp_path / "b.db") as target:
        ConversationMemory(store=source).add_turn("c", "p", "a")
        ConversationMemory(store=target).add_turn("c", "p", "a", idempotency_key="k")  # the same turn, at another time
    ended = run("copy", "--from", "sqlite:///a.db", "--to", "sqlite:///b.db", "--merge", "--json", cwd=tmp_path)
    assert ended.returncode == 1
    assert "the two sides differ: conversation 'c' is only in the source" in ended.stderr
    result = json.loads(ended.stdout)
    assert not result["equal"]
    assert result["source"]["checksum"] != result["target"]["checksum"]


def test_the_command_prints_the_copied_counts(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as source:
        source.save_many("n", [MemoryEntry(content=number) for number in range(1_234)])
        ConversationMemory(store=source).add_turn("c", "p", "a")
    (tmp_path / "secret").write_text("file:files\n")
    arguments = ["copy", "--from", "sqlite:///a.db", "--to-file", "secret"]
    first, second = run(*arguments, cwd=tmp_path), run(*arguments, cwd=tmp_path)
    assert first.stdout.startswith(
        "copied 1,234 entries, 1 conversations with 1 turns; both sides have the same checksum "
    )
    assert "(1,234 entries, 1 conversations with 1 turns were there before)" in second.stdout
    assert first.stdout.split()[-1] == second.stdout.split()[-1]
    assert (first.returncode, first.stderr, second.returncode, second.stderr) == (0, "", 0, "")
    quiet = run(*arguments, "--quiet", cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--from", "sqlite:///a.db", "--to", "sqlite:///./link.db"], 2, "name the same store"),
        (["--from", "file:x", "--to", "file:./x"], 2, "name the same store"),
        (["--from", "postgresql://u:secret@h/x", "--to", "postgres://u:secret@h/x"], 2, "name the same store"),
        (["--from", "sqlite:///mistyped.db", "--to", "sqlite:///b.db"], 3, "there is no file "),
        (["--from", "file:mistyped", "--to", "sqlite:///b.db"], 6, "there is no directory "),
        (["--from", "sqlite:///empty.db", "--to", "sqlite:///b.db"], 3, "the schema is missing"),
        (["--from", "sqlite:///a.db", "--to", "postgresql://u:secret@127.0.0.1:1/x"], 6, "127.0.0.1"),
        (["--from", "sqlite:///a.db", "--to", "redis://u:secret@h"], 2, "no store has a URL"),
        (
            ["--from", "sqlite:///a.db", "--to", "file:x", "--to-schema", "s"],
            2,
            "--to-schema is for PostgreSQL, and the store is files",
        ),
        (["--from", "sqlite:///a.db", "--to-file", "missing"], 2, "cannot be read from the file missing"),
        (["--from", "sqlite:///a.db"], 2, "one of --to-file and --to is required"),
    ],
    ids=str,
)
def test_an_error_is_reported_and_changes_nothing(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as store:
        store.save("n", MemoryEntry())
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    (tmp_path / "empty.db").touch()
    before = set(tmp_path.iterdir())
    ended = run("copy", *arguments, cwd=tmp_path)
    assert (ended.returncode, "Traceback" in ended.stderr, "secret" in ended.stderr) == (code, False, False)
    assert words in ended.stderr
    assert set(tmp_path.iterdir()) == before


def test_a_copy_does_not_create_a_schema_in_the_source(new: New) -> None:
    source, target = new("postgresql"), new("file")
    ended = run("copy", *source.as_("from"), *target.as_("to"), cwd=Path.cwd())
    assert ended.returncode == 3
    assert "run: firefly-memory db upgrade --url " in ended.stderr
    assert f" --schema {source.options[-1]}, or initialize" in ended.stderr
    with psycopg.connect(source.options[1]) as connection:
        found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [source.options[-1]])
        assert found.fetchall() == []


def test_stores_without_listing_are_refused(tmp_path: Path) -> None:
    with FileStore(tmp_path) as target, pytest.raises(NotSupportedError, match="list their entries"):
        copy_store(adapt(FolderStore(tmp_path)), target)


@contextmanager
def copying(entries: int, directory: Path) -> Iterator[Sequence[Work]]:
    with SQLiteStore(directory / "from.db") as source, SQLiteStore(directory / "to.db") as target:
        source.save_many("n", [MemoryEntry(content="x" * 200) for _ in range(entries)])
        target.initialize_sync()
        yield [lambda: copy_store(source, target)]


def test_the_memory_of_a_copy_does_not_grow_with_the_store(tmp_path: Path) -> None:
    assert_more_takes_no_more_memory(copying, tmp_path, 1_500, 4_500)
