"""Revision 0009: conversations of before are read as they were, and work; its downgrade takes only what it has added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firefly_memory import ConversationMemory, EntryStore, connect
from firefly_memory.cli import main
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.flush_chains import chain_of, make_flush, restored

pytestmark = pytest.mark.thorough

BEFORE = "0008_0005"
NOW = "2024-06-01T00:00:00.000000+00:00"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, place: Place) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{place.directory}/memory.db"
    else:
        with empty_postgresql(place.postgresql()) as empty:
            yield empty


def run(*command: str) -> None:
    assert main(["db", *command]) == 0


def fill_as_before(url: str) -> None:
    """A conversation of five turns, of which a summary replaces two, as the version before writes it."""
    schema = "" if url.startswith("sqlite") else "firefly_memory."
    execute(
        url,
        f"INSERT INTO {schema}memory_conversations (conversation_id, turns, tokens, evicted_turns, evicted_tokens,"
        f" summary, created_at, updated_at) VALUES ('c', 5, 50, 2, 20, 'of before', '{NOW}', '{NOW}')",
    )
    for number in range(5):
        execute(
            url,
            f"INSERT INTO {schema}memory_turns (conversation_id, turn_id, tokens, tokens_before, user_prompt,"
            f" assistant_response, append_id, created_at)"
            f" VALUES ('c', {number}, 10, {number * 10}, 'prompt {number}', 'answer', 'append {number}', '{NOW}')",
        )


def window_of(store: EntryStore) -> tuple[tuple[int, ...], str | None]:
    window = ConversationMemory(store=store).get_window("c", 1_000)
    return window.turns, window.summary


def test_a_summary_of_before_is_what_the_first_flush_gives_back(url: str) -> None:
    run("upgrade", BEFORE, "--url", url)
    fill_as_before(url)
    run("upgrade", "--url", url)
    run("check", "--url", url)
    with connect(url, migrate=False) as store:
        log: Any = store.blocking.log(CONVERSATION_LOG)
        head = run_without_loop(log.head("c"))
        assert (head.dropped_turns, head.flush_id, head.marks) == (0, None, None)
        assert [turn.input_tokens for turn in run_without_loop(log.turns("c", -1, None))] == [None] * 5
        assert window_of(store) == ((2, 3, 4), "of before")
        make_flush(store, "c", 4, "of today")
        assert window_of(store) == ((4,), "of today")
        (flush,) = chain_of(store, "c")
        assert (flush.turns_before, flush.tokens_before, flush.summary_before) == (2, 20, "of before")
        assert restored(store, "c", flush)
        assert window_of(store) == ((2, 3, 4), "of before")
        assert ConversationMemory(store=store).add_turn("c", "p", "a", input_tokens=7).turn_id == 5


def test_a_downgrade_keeps_turns_and_summaries(url: str) -> None:
    run("upgrade", "--url", url)
    fill_as_before(url)
    with connect(url, migrate=False) as store:
        make_flush(store, "c", 3, "of today", marks="{}")
    for _ in range(2):
        run("downgrade", BEFORE, "--yes", "--url", url)
        run("upgrade", "--url", url)
        with connect(url, migrate=False) as store:
            assert window_of(store) == ((3, 4), "of today")
            assert chain_of(store, "c") == []
            assert len(ConversationMemory(store=store).get_turns("c")) == 5
