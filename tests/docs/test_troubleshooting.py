"""Each heading of docs/troubleshooting.md and docs/troubleshooting-features.md is a message that the library gives."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

import firefly_memory
from firefly_memory import (
    ConversationMemory,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MemoryManager,
    MissingDependencyError,
    OutcomeUnknownError,
    SchemaMismatchError,
    SQLiteStore,
    connect,
    erasure,
)
from firefly_memory.agents import Memory, feed_memory
from firefly_memory.cli import main
from firefly_memory.errors import EmbedderError
from firefly_memory.feeds import InMemoryMemory, InMemoryMessageStore, MessageStoreMemory
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.longterm import MemoryService
from firefly_memory.search import searching
from firefly_memory.search.embedders import default
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.service import enable_accelerator
from firefly_memory.strategies import MemoryMaxTokensStrategy, MemoryProfile, SummarizerStrategy
from tests.support.documentation import ROOT

PAGES = [ROOT / "docs" / name for name in ("troubleshooting.md", "troubleshooting-features.md")]
HEADINGS = [each for page in PAGES for each in re.findall(r"^### `(.+)`$", page.read_text(), re.MULTILINE)]

IN_THE_LOG_ONLY = [
    "tokens are estimated without the vocabulary of …: …",
    "the turn of run … in … was not stored",
    "the messages of run … were not added to …",
    "summarizing conversation … failed; nothing is lost",
    "the migration lock is held by …; waiting for … seconds at most",
]
"""Messages whose causes are tested elsewhere: they are looked up in the code."""


def pattern_of(heading: str) -> re.Pattern[str]:
    return re.compile(".+?".join(map(re.escape, heading.split("…"))), re.DOTALL)


def test_every_heading_is_a_message_of_the_library(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(HEADINGS) > 30  # they are found at all
    monkeypatch.chdir(tmp_path)
    messages = [_message(cause) for cause in _causes(monkeypatch)]
    main(["ls"])
    with pytest.raises(SystemExit):
        main(["migrate"])
    with pytest.warns(ResourceWarning) as warned:
        _left_open()
    messages += [str(warning.message) for warning in warned]
    messages += [capsys.readouterr().err, *(record.getMessage() for record in caplog.records)]
    unknown = [
        heading
        for heading in HEADINGS
        if heading not in IN_THE_LOG_ONLY and not any(pattern_of(heading).search(message) for message in messages)
    ]
    assert unknown == []


@pytest.mark.parametrize("heading", IN_THE_LOG_ONLY)
def test_a_message_of_the_log_is_in_the_code(heading: str) -> None:
    template = re.compile(r"(?:%\w|\{[^}]+\})".join(map(re.escape, heading.split("…"))))
    assert heading in HEADINGS
    assert any(template.search(path.read_text()) for path in (ROOT / "src").rglob("*.py"))


def _message(cause: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its message is looked at
        cause()
    return str(caught.value)


def _causes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    yield lambda: connect("memory.db")
    yield lambda: connect("mysql://localhost/x")
    yield lambda: getattr(firefly_memory, "PostgresStore")  # noqa: B009 - a checker knows that there is none
    yield lambda: MemoryManager(url="sqlite:///memory.db")  # type: ignore[call-arg]
    yield lambda: MemoryManager(store="sqlite:///memory.db")  # type: ignore[arg-type]
    yield lambda: MemoryManager(store=SQLiteStore)  # type: ignore[arg-type]
    with monkeypatch.context() as environment:
        environment.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "postgres")
        yield MemoryManager.from_config
    yield lambda: _raise(MissingDependencyError("PostgreSQLStore", "asyncpg", "postgres"))
    yield lambda: _raise(OutcomeUnknownError("save", "the connection was lost"))
    for found in (None, "0005"):
        yield lambda found=found: _raise(SchemaMismatchError("load", found, "0007", "firefly-memory db upgrade"))  # type: ignore[misc]
    yield from _causes_in_databases()
    yield from _causes_in_stores()
    yield from _causes_in_conversations()
    yield from _causes_in_strategies()
    yield from _causes_in_search(monkeypatch)
    yield from _causes_in_teams()
    yield from _causes_in_long_term_memory()


def _raise(error: Exception) -> None:
    raise error


def _causes_in_databases() -> Iterator[Callable[[], Any]]:
    for url in ("postgresql://a:b@localhost:1/x", "postgresql://a:b@-/x"):
        yield lambda url=url: _opened(connect(url, timeout=5))  # type: ignore[misc]
    yield lambda: _opened(connect("mongodb://localhost:1/x", timeout=0.1))
    yield lambda: _opened(SQLiteStore("missing.db", migrate=False))
    Path("text.db").write_text("This is not a database. " * 100)
    yield lambda: _opened(SQLiteStore("text.db"))
    with SQLiteStore("locked.db", timeout=0.01) as store:
        other = sqlite3.connect("locked.db")
        other.execute("BEGIN IMMEDIATE")
        yield lambda: store.save("notes", MemoryEntry(content=1))
        other.rollback()
        store.save("notes", MemoryEntry(entry_id="1", content=1))
        other.execute("UPDATE memory_entries SET content = '{'")
        other.commit()
        other.close()
        yield lambda: store.load("notes")


def _left_open() -> None:
    store = SQLiteStore("left-open.db")
    store.initialize_sync()
    del store
    gc.collect()


def _opened(store: EntryStore) -> None:
    with store:
        pytest.fail("it was opened")


def _causes_in_stores() -> Iterator[Callable[[], Any]]:
    with SQLiteStore("memory.db") as store:
        yield lambda: pickle.dumps(store)
        yield lambda: store.save("notes", MemoryEntry(content={"price": float("nan")}))
        yield lambda: store.save("notes", MemoryEntry(content={"price": object()}))
        yield lambda: store.save("conversation:a", MemoryEntry(content=1))
        store.save("notes", MemoryEntry(entry_id="1", content=1))
        yield lambda: store.save("others", MemoryEntry(entry_id="1", content=1))
    yield lambda: store.load("notes")


def _causes_in_conversations() -> Iterator[Callable[[], Any]]:
    memory = ConversationMemory(store=InMemoryStore())
    yield lambda: ConversationMemory(max_tokens=0)
    memory.add_turn("chat", "Hello", "Hi", turn_id=0)
    yield lambda: memory.add_turn("chat", "Hello", "Hi", expected_turns=5)
    yield lambda: memory.add_turn("chat", "Hello", "Bye", turn_id=0)
    yield lambda: memory.add_turn("chat", "Hello", "Hi", owner="ann")
    yield lambda: memory.export_conversation("other")
    erasure.erase(memory.store, "ann")
    yield lambda: memory.add_turn("new", "Hello", "Hi", owner="ann")
    with_memory = Memory(MemoryManager())
    yield lambda: Memory(memory.store)  # type: ignore[arg-type]
    yield lambda: Agent(TestModel(), capabilities=[with_memory, Memory(MemoryManager())])
    logging.getLogger("firefly_memory").setLevel(logging.WARNING)
    memory.get_window("chat", max_tokens=1)


def _causes_in_strategies() -> Iterator[Callable[[], Any]]:
    yield lambda: MemoryMaxTokensStrategy(conditions=["message.text"])
    yield lambda: MemoryMaxTokensStrategy(conditions=["1 / 0"]).apply([{"role": "user", "content": "Hello"}])
    yield lambda: MemoryProfile.model_validate({"short_term_memory_strategy": [{}]})
    model = TestModel(custom_output_text=" ")
    strategy = SummarizerStrategy(interaction_threshold_qty=1, model=model)
    yield lambda: strategy.apply([{"role": "user", "content": "Hello"}])


def _causes_in_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    knowledge = KnowledgeStore(embedder=None)
    knowledge.add("notes", "The dog is called Rex.")
    knowledge.search("notes", "dog")
    yield lambda: knowledge.search("notes", "dog", mode="semantic")
    yield lambda: KnowledgeStore(knowledge.store, language="german").search("notes", "dog")
    yield lambda: KnowledgeStore(FileStore("files"), embedder=None).add("notes", "text")
    failing = KnowledgeStore(knowledge.store, embedder=_embedder(1, EmbedderError("mine", "no answer")))
    failing.add("notes", "The cat is called Tom.")
    failing.search("notes", "dog")
    yield failing.embed_missing
    working = KnowledgeStore(knowledge.store, embedder=_embedder(1))
    working.embed_missing()
    yield lambda: KnowledgeStore(knowledge.store, embedder=_embedder(20)).search("notes", "dog")
    with monkeypatch.context() as without:
        without.setattr(default, "find_spec", lambda _: None)
        KnowledgeStore(knowledge.store).search("notes", "dog")
    with monkeypatch.context() as small:
        small.setattr(searching, "LARGEST_SCOPE", 1)
        yield lambda: working.search("notes", "dog", mode="semantic")
    yield lambda: enable_accelerator(knowledge.store, "pg_trgm")


def _causes_in_teams() -> Iterator[Callable[[], Any]]:
    both = [Memory(MemoryManager()), feed_memory(InMemoryMemory())]
    yield lambda: asyncio.run(Agent(TestModel(), capabilities=both).run("Hello"))
    yield lambda: feed_memory(MemoryManager())  # type: ignore[arg-type]
    yield lambda: MessageStoreMemory(object(), "job", "worker")  # type: ignore[arg-type]
    messages = InMemoryMessageStore()
    messages.append("job", {}, owner="ann")
    yield lambda: messages.append("job", {}, owner="bob")
    methods: dict[str, Any] = {"get_agent_messages": lambda *_: []}
    for store in (SimpleNamespace(**methods), SimpleNamespace(**methods, get_conversation_messages=lambda _: None)):
        memory = MessageStoreMemory(store, "job", "worker")  # type: ignore[arg-type]
        yield lambda memory=memory: asyncio.run(memory.add({}))  # type: ignore[misc]
        yield lambda memory=memory: asyncio.run(memory.get_history())  # type: ignore[misc]


def _causes_in_long_term_memory() -> Iterator[Callable[[], Any]]:
    service = MemoryService(embedder=None)
    yield lambda: service.confirm_fact("0192")
    yield lambda: service.merge_users("web:ann", "web:bob")
    for name in ("ann", "bob"):
        service.get_or_create_user("web", name)
    service.merge_users("web:ann", "web:bob")
    yield lambda: service.merge_users("web:bob", "web:ann")
    yield lambda: service.set_fact("color", "blue", scope="user")
    yield lambda: MemoryService(FileStore("files"), embedder=None).get_fact("color")


def _embedder(dimensions: int, error: Exception | None = None) -> CallableEmbedder:
    def embed(texts: list[str]) -> list[list[float]]:
        if error is not None:
            raise error
        return [[float(len(text))] * dimensions for text in texts]

    return CallableEmbedder(embed, name="mine", dimensions=dimensions)
