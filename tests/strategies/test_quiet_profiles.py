"""A profile whose triggers do not fire sends not one statement more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from pymongo import MongoClient, monitoring
from sqlalchemy import create_engine, event

from firefly_memory import ConversationMemory, EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.strategies import KnowledgeBase, MemoryMaxTokensStrategy, MemoryProfile, NeuralyzerStrategy
from tests.support.backends import Place
from tests.support.flushing import Summaries, summarizer


class _Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.sent: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.sent.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


Opened = tuple[EntryStore, list[str]]


def _with_engine(url: str, kind: Callable[..., EntryStore], place: Place, **options: Any) -> Opened:
    engine, seen = create_engine(url), list[str]()
    place.later.callback(engine.dispose)
    event.listen(engine, "before_cursor_execute", lambda *arguments: seen.append(arguments[2]))
    return kind(engine=engine, **options), seen


def _with_client(place: Place) -> Opened:
    commands = _Commands()
    client = MongoClient[dict[str, Any]](place.mongodb(), event_listeners=[commands])
    place.later.callback(client.close)
    return MongoDBStore(client=client, database="quiet"), commands.sent


KINDS: dict[str, Callable[[Place], Opened]] = {
    "sqlite": lambda place: _with_engine(f"sqlite:///{place.directory}/memory.db", SQLiteStore, place),
    "postgresql": lambda place: _with_engine(
        place.with_driver("psycopg"), PostgreSQLStore, place, schema_name="quiet_profiles"
    ),
    "mongodb": _with_client,
}

PROFILE = MemoryProfile(
    short_term_memory_strategy=[MemoryMaxTokensStrategy()],
    long_term_memory_strategy=[
        summarizer(
            Summaries(),
            interaction_threshold_qty=50,
            interaction_threshold_tokens=5000,
            input_tokens_threshold=5000,
            interaction_conditions=["message.role == 'user'"],
            knowledge_base=KnowledgeBase(collection_id="sessions"),
        ),
        NeuralyzerStrategy(interaction_threshold_qty=60),
    ],
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_with_a_profile_whose_triggers_do_not_fire_sends_no_statement_more(kind: str, place: Place) -> None:
    opened, seen = KINDS[kind](place)
    with ExitStack() as stack:
        store = stack.enter_context(opened)

        def sent_by(memory: ConversationMemory, conversation_id: str) -> int:
            memory.clear(conversation_id)
            memory.add_turn(conversation_id, "before", "it is warm")
            before = len(seen)
            for number in range(5):
                memory.add_turn(conversation_id, f"question {number}", "answer", input_tokens=100)
                memory.get_message_history(conversation_id)
            return len(seen) - before

        plain = sent_by(ConversationMemory(store=store), "plain")
        assert plain >= 10
        assert sent_by(ConversationMemory(store=store, profile=PROFILE), "with a profile") == plain
