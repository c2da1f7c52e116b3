"""Hostile input: texts of a megabyte, and hundreds of thousands of unknown ids."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MemoryManager,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
)
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.conversations.mongodb import log as mongodb_conversations
from firefly_memory.tokens import TokenEstimator
from tests.support.backends import Place
from tests.support.durations import quickest
from tests.support.ram_use import Work, kept_by_each

pytestmark = [pytest.mark.no_cover, pytest.mark.thorough]

OPEN: dict[str, Callable[[Path, str], EntryStore]] = {
    "memory": lambda _, __: InMemoryStore(),
    "file": lambda directory, _: FileStore(directory / "files"),
    "sqlite": lambda directory, _: SQLiteStore(directory / "memory.db"),
    "postgresql": lambda _, url: PostgreSQLStore(url),
    "mongodb": lambda _, url: MongoDBStore(url),
}

UNKNOWN = {"memory": 20_000, "sqlite": 2_000, "file": 2_000, "postgresql": 500, "mongodb": 500}
"""How many ids are asked for: as many as take a second or two."""


@contextmanager
def asking_for_what_is_not_there(name: str, url: str, ids: int, directory: Path) -> Iterator[Sequence[Work]]:
    mongodb_conversations._MOST_TAILS = 10  # what it remembers of conversations is bounded; this is another process
    with OPEN[name](directory, url) as store:
        manager = MemoryManager(store=store)
        numbers = itertools.count()

        def ask() -> None:
            for number in itertools.islice(numbers, ids):
                unknown = f"unknown {number}"
                assert not store.load(unknown)
                assert not manager.get_message_history(unknown)
                assert manager.fork(working_scope_id=unknown).get_fact("fact") is None

        yield [ask]


@pytest.mark.parametrize("name", OPEN)
def test_asking_for_unknown_ids_keeps_nothing_in_memory(name: str, place: Place, tmp_path: Path) -> None:
    url = {"postgresql": place.postgresql, "mongodb": place.mongodb}.get(name, str)()
    ids = UNKNOWN[name]
    (kept,) = kept_by_each(partial(asking_for_what_is_not_there, name, url), tmp_path, ids)
    assert kept < 20_000 + 30 * ids  # an object for each id would be several times as large


MEGABYTE = 1_000_000
TEXTS = ["a", "\n", "😀", '"\\', "a ", "你", "\u2028", "a. ", "\x00", "[", "```\n"]
"""Each is repeated."""


def _saved_and_loaded(text: str, store: EntryStore) -> None:
    store.save("long", MemoryEntry(entry_id="long", content=text, metadata={"text": text}))
    assert store.load("long")[0].content == text


def _said_and_replayed(text: str, store: EntryStore) -> None:
    conversation = ConversationMemory(store=store, max_tokens=10**9)
    conversation.clear("long")
    conversation.add_turn("long", text, text)
    assert conversation.get_message_history("long")


def _a_fact_in_a_prompt(text: str, store: EntryStore) -> None:
    working = WorkingMemory(store=store, scope_id="long")
    working.set("fact", text)
    assert working.to_context_string()


def _counted(text: str, store: EntryStore) -> None:
    assert TokenEstimator().estimate(text) > 0


def _exported_and_imported(text: str, store: EntryStore) -> None:
    _saved_and_loaded(text, store)
    out = io.StringIO()
    export_jsonl(store, out)
    out.seek(0)
    import_jsonl(InMemoryStore(), out)


WORKS = [_saved_and_loaded, _said_and_replayed, _a_fact_in_a_prompt, _counted, _exported_and_imported]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__[1:])
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_the_time_grows_linearly_with_the_length_of_the_text(
    text: str, work: Callable[[str, EntryStore], None], tmp_path: Path
) -> None:
    """Work that grows with the square of the text would take 64 times as long, of the processor's time."""
    with ExitStack() as stack:
        store = stack.enter_context(SQLiteStore(tmp_path / "memory.db"))

        def duration(length: int) -> float:
            long = text * (length // len(text))
            start = time.process_time()
            work(long, store)
            return time.process_time() - start

        duration(MEGABYTE // 8)
        of_an_eighth = min(duration(MEGABYTE // 8) for _ in range(2))
        assert quickest(partial(duration, MEGABYTE), enough=of_an_eighth * 24) < of_an_eighth * 24
