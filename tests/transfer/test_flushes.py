"""Flushes in archives and copies: a copy can restore what its source can."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    CorruptDataError,
    EntryStore,
    FileStore,
    InMemoryStore,
    MongoDBStore,
    NotSupportedError,
    PostgreSQLStore,
    SQLiteStore,
)
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.moving import FLUSH
from firefly_memory.copying import copy_store
from tests.support.backends import Place
from tests.support.flush_chains import chain_of, make_flush, restored
from tests.support.spare_places import lent_database, lent_schema
from tests.support.turns import NOW

KINDS = ("memory", "file", "sqlite", "postgresql", "mongodb")

New = Callable[[str], EntryStore]


@pytest.fixture
def new(place: Place) -> Iterator[New]:
    """Opens empty stores."""
    with ExitStack() as later:

        def make(kind: str) -> EntryStore:
            name = f"flushes_{uuid4().hex[:12]}"
            match kind:
                case "memory":
                    return later.enter_context(InMemoryStore())
                case "file":
                    return later.enter_context(FileStore(place.directory / name))
                case "sqlite":
                    return later.enter_context(SQLiteStore(place.directory / f"{name}.db"))
                case "postgresql":
                    name = later.enter_context(lent_schema(place.postgresql()))
                    return later.enter_context(PostgreSQLStore(place.postgresql(), schema_name=name, pool_min_size=0))
            name = later.enter_context(lent_database(place.mongodb()))
            return later.enter_context(MongoDBStore(place.mongodb(), database=name))

        yield make


def filled(store: EntryStore) -> EntryStore:
    memory = ConversationMemory(store=store)
    for conversation in ("flushed", "dropped", "all dropped", "untouched"):
        for number in range(8):
            memory.add_turn(conversation, f"prompt {number}", "answer", input_tokens=100 + number, summarize=False)
    make_flush(store, "flushed", 2, "two \x00 \ud800", at=NOW + timedelta(microseconds=1))
    make_flush(store, "flushed", 4, None)
    make_flush(store, "flushed", 6, "six", marks='{"0": 8}')
    make_flush(store, "dropped", 1, "one")
    make_flush(store, "dropped", 3, "three", drops=True)
    make_flush(store, "dropped", 5, "five", marks='{"0": 2, "1": 8}')
    make_flush(store, "all dropped", 8, "all of it", drops=True)
    return store


def archive_of(store: EntryStore) -> str:
    lines = io.StringIO()
    export_jsonl(store, lines)
    return lines.getvalue()


def lines_of(text: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines()[1:-1]:
        ((kind, item),) = json.loads(line).items()
        found.setdefault(kind, []).append(item)
    return found


def window_of(store: EntryStore, conversation: str) -> tuple[list[str], str | None]:
    memory = ConversationMemory(store=store)
    window = memory.get_window(conversation, 10_000)
    prompts = {turn.turn_id: turn.user_prompt for turn in memory.get_turns(conversation)}
    return [prompts[each] for each in window.turns], window.summary


def states_of(store: EntryStore, conversation: str) -> list[tuple[list[str], str | None]]:
    """The window now, and after each flush that is taken back, as far as it can be."""
    states = [window_of(store, conversation)]
    for flush in chain_of(store, conversation):
        if not restored(store, conversation, flush):
            break
        states.append(window_of(store, conversation))
    return states


def prompts(first: int) -> list[str]:
    return [f"prompt {number}" for number in range(first, 8)]


FLUSHED = [(prompts(6), "six"), (prompts(4), None), (prompts(2), "two \x00 \ud800"), (prompts(0), None)]
DROPPED = [(prompts(5), "five"), (prompts(3), "three")]


def check(store: EntryStore) -> None:
    """Whether a copy has what :func:`filled` has."""
    log: Any = store.blocking.log(CONVERSATION_LOG)
    head = run_without_loop(log.head("flushed"))
    assert (head.evicted_turns, head.turns, head.marks) == (6, 8, '{"0": 8}')
    assert [turn.input_tokens for turn in run_without_loop(log.turns("flushed", -1, None))] == list(range(100, 108))
    assert run_without_loop(log.head("dropped")).marks == '{"0": 0, "1": 5}', (
        "counted from the first turn that is there"
    )
    newest, _, oldest = chain_of(store, "flushed")
    assert (oldest.strategy, oldest.created_at) == ("test", NOW + timedelta(microseconds=1))
    assert newest.turns_before == 4
    assert states_of(store, "flushed") == FLUSHED
    assert states_of(store, "dropped")[:2] == DROPPED
    assert states_of(store, "all dropped")[0] == ([], "all of it")
    assert states_of(store, "untouched") == [(prompts(0), None)]


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_copy_restores_what_its_source_can(source: str, target: str, new: New) -> None:
    with filled(new(source)) as one, new(target) as other:
        copy = copy_store(one, other)
        assert copy.equal, copy.difference
        assert (copy.source.counts.flushes, copy.target.counts.flushes) == (4, 4)
        again = copy_store(one, other)
        assert again.equal
        assert again.before == again.source.counts
        check(other)


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_has_the_flushes_that_are_in_force(kind: str, new: New) -> None:
    with filled(new(kind)) as store, new("sqlite") as target:
        taken_back = make_flush(store, "flushed", 7, "taken back", marks='{"0": 8}')
        assert restored(store, "flushed", chain_of(store, "flushed")[0])
        text = archive_of(store)
        assert taken_back not in text
        for _ in range(2):  # the second time changes nothing
            import_jsonl(target, io.StringIO(text))
        flushes = lines_of(text)["flush"]
        ids = [flush.flush_id for flush in chain_of(store, "flushed")][::-1]
        assert [each["flush_id"] for each in flushes if each["conversation_id"] == "flushed"] == ids
        assert [(each["turns"], each["summary"]) for each in flushes if each["conversation_id"] == "dropped"] == [
            (2, "five")
        ]
        assert json.loads(text.splitlines()[-1])["end"]["flushes"] == 4
        assert lines_of(archive_of(target))["flush"] == flushes
        check(target)


@pytest.mark.parametrize("position", range(4))
def test_an_interrupted_import_goes_on_where_it_ended(position: int) -> None:
    text = archive_of(filled(InMemoryStore()))
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith('{"flush"'))
    with InMemoryStore() as target:
        with pytest.raises(CorruptDataError):
            import_jsonl(target, io.StringIO("".join(lines[: first + position])))
        import_jsonl(target, io.StringIO(text))
        assert archive_of(target).splitlines()[1:] == archive_of(filled_from(text)).splitlines()[1:]
        check(target)


def filled_from(text: str) -> EntryStore:
    store = InMemoryStore()
    import_jsonl(store, io.StringIO(text))
    return store


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_copy_that_has_the_first_flushes_gets_the_others(count: int) -> None:
    with filled(InMemoryStore()) as source, InMemoryStore() as target:
        assert copy_store(source, target).equal
        for conversation, flush in (("flushed", count - 1), ("all dropped", 0)):
            assert restored(target, conversation, chain_of(target, conversation)[flush])
        assert copy_store(source, target).equal
        check(target)


def test_a_copy_follows_the_flushes_of_its_source() -> None:
    with filled(InMemoryStore()) as source, InMemoryStore() as target:
        assert copy_store(source, target).equal
        for conversation, turns in (("flushed", 7), ("dropped", 7), ("untouched", 3)):
            make_flush(source, conversation, turns, "more")
        assert copy_store(source, target).equal
        assert window_of(target, "dropped") == (prompts(7), "more")


def test_another_flush_of_the_target_is_a_conflict() -> None:
    with filled(InMemoryStore()) as source, InMemoryStore() as target:
        assert copy_store(source, target).equal
        newest = chain_of(target, "flushed")[0]
        assert restored(target, "flushed", newest)
        make_flush(target, "flushed", 5, "another")
        with pytest.raises(ConflictError, match="flush"):
            copy_store(source, target)
        merged = copy_store(source, target, merge=True)
        assert not merged.equal
        assert window_of(target, "flushed") == (prompts(5), "another"), "nothing was changed"


def without_flushes(text: str) -> str:
    """The archive as a version without flushes writes it."""
    lines = []
    for line in text.splitlines():
        item = json.loads(line)
        if "flush" in item:
            continue
        item.pop("kinds", None)
        for name in ("marks", "before_flushes", "dropped_turns"):
            item.get("conversation", {}).pop(name, None)
        item.get("turn", {}).pop("input_tokens", None)
        item.get("end", {}).pop("flushes", None)
        lines.append(json.dumps(item) + "\n")
    return "".join(lines)


def test_an_archive_of_an_earlier_version_has_a_summary_alone() -> None:
    text = without_flushes(archive_of(filled(InMemoryStore())))
    with InMemoryStore() as target:
        for _ in range(2):
            import_jsonl(target, io.StringIO(text))
        assert window_of(target, "flushed") == FLUSHED[0]
        assert len(chain_of(target, "flushed")) == 1
        assert archive_of(target).splitlines()[1:] == text.splitlines()[1:], "nothing that is not in the archive"
        assert '"kinds"' not in archive_of(target).splitlines()[0], "an earlier version reads it"
        with InMemoryStore() as copy:
            assert copy_store(target, copy).equal
            make_flush(target, "flushed", 7, "seven")
            assert copy_store(target, copy).equal
            assert states_of(copy, "flushed")[:2] == [(prompts(7), "seven"), FLUSHED[0]]
            text = archive_of(target)
        with InMemoryStore() as again:
            import_jsonl(again, io.StringIO(text))
            assert states_of(again, "flushed")[:2] == [(prompts(7), "seven"), FLUSHED[0]]


def test_a_reader_that_does_not_know_flushes_says_which_version_does(monkeypatch: pytest.MonkeyPatch) -> None:
    text = archive_of(filled(InMemoryStore()))
    object.__setattr__(FLUSH, "version", 0)
    try:
        with InMemoryStore() as target, pytest.raises(NotSupportedError, match=r"'flush' .* it needs firefly-memory"):
            import_jsonl(target, io.StringIO(text))
    finally:
        object.__setattr__(FLUSH, "version", 1)
    plain = InMemoryStore()
    ConversationMemory(store=plain).add_turn("c", "p", "a")
    assert '"kinds"' not in archive_of(plain)


def test_an_untrusted_archive_has_no_flushes() -> None:
    text = archive_of(filled(InMemoryStore()))
    with InMemoryStore() as target:
        import_jsonl(target, io.StringIO(text), untrusted=True)
        for conversation in ("flushed", "dropped", "all dropped"):
            assert chain_of(target, conversation) == []
            assert window_of(target, conversation)[1] is None
        assert window_of(target, "flushed")[0] == prompts(0)


@pytest.mark.parametrize(
    "change",
    [
        {"turns": 9},
        {"turns": 1},
        {"turns": "six"},
        {"turns": 5},
        {"summary": "another"},
        {"summary": 7},
        {"flush_id": ""},
        {"flush_id": 3},
        {"strategy": None},
        {"created_at": "yesterday"},
        {"conversation_id": "elsewhere"},
    ],
    ids=str,
)
def test_a_damaged_flush_of_an_archive_is_refused(change: dict[str, Any]) -> None:
    lines = archive_of(filled(InMemoryStore())).splitlines(keepends=True)
    numbers = [number for number, line in enumerate(lines) if line.startswith('{"flush"') and '"six"' in line]
    (number,) = numbers
    item = json.loads(lines[number])["flush"]
    lines[number] = json.dumps({"flush": {**item, **change}}) + "\n"
    with InMemoryStore() as target, pytest.raises(CorruptDataError):
        import_jsonl(target, io.StringIO("".join(lines)))


def test_a_flush_that_is_there_twice_closes_no_circle() -> None:
    lines = archive_of(filled(InMemoryStore())).splitlines(keepends=True)
    flushes = [json.loads(line)["flush"] for line in lines if line.startswith('{"flush"')]
    ours = [each for each in flushes if each["conversation_id"] == "flushed"]
    text = "".join(lines).replace(ours[2]["flush_id"], ours[0]["flush_id"])
    with InMemoryStore() as target:
        import_jsonl(target, io.StringIO(text))
        assert [flush.turns for flush in chain_of(target, "flushed")] == [4, 2]
