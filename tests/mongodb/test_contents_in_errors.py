"""Errors of a refused write never quote stored contents, neither in their message nor in their chain."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pymongo
import pytest

from firefly_memory import ConversationMemory, DatabaseStoreError, EntryOwnershipError, MemoryEntry, MongoDBStore
from tests.support.backends import Place

CONTENT = "a sec" + "ret"  # in two parts: a traceback shows lines of this file
Client = pymongo.MongoClient[dict[str, Any]]


@pytest.fixture
def store(place: Place, name: str) -> Iterator[MongoDBStore]:
    with MongoDBStore(place.mongodb(), database=name) as store:
        yield store


@pytest.fixture
def collections(place: Place, store: MongoDBStore, name: str) -> Iterator[Any]:
    with Client(place.mongodb()) as client:
        yield client[name]


def _entry(entry_id: str, **fields: Any) -> MemoryEntry:
    return MemoryEntry(entry_id=entry_id, content=CONTENT, **fields)


async def _together(store: MongoDBStore, **fields: Any) -> None:
    await asyncio.gather(*[store.async_save("a", _entry(f"g{number}", **fields)) for number in range(5)])


def _is_quiet(error: BaseException) -> None:
    assert CONTENT not in "".join(traceback.format_exception(error))
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None:
            assert CONTENT not in f"{each!r} {each.args} {vars(each)} {getattr(each, 'details', None)}"
            waiting += [each.__cause__, each.__context__]


WRITES: dict[str, Callable[[MongoDBStore], Any]] = {
    "save": lambda store: store.save("a", _entry("one", importance=1.0)),
    "save_many": lambda store: store.save_many("a", [_entry("one", importance=1.0), _entry("two", importance=1.0)]),
    "save_if": lambda store: store.save_if("a", _entry("there", importance=1.0), "something else"),
    "async_save": lambda store: asyncio.run(store.async_save("a", _entry("one", importance=1.0))),
    "group": lambda store: asyncio.run(_together(store, importance=1.0)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_contents_refused_by_a_validator_are_not_quoted(
    store: MongoDBStore, collections: Any, write: Callable[[MongoDBStore], Any]
) -> None:
    store.save("a", MemoryEntry(entry_id="there", content="something else"))
    collections.command("collMod", "entries", validator={"importance": {"$lt": 0.9}})
    with pytest.raises(DatabaseStoreError, match="failed validation") as caught:
        write(store)
    _is_quiet(caught.value)


def test_contents_refused_by_a_foreign_index_are_not_quoted(store: MongoDBStore, collections: Any) -> None:
    store.save_many("a", [_entry("there"), MemoryEntry(entry_id="other", content="something else")])
    collections.entries.create_index("content", unique=True, name="theirs")
    with pytest.raises(DatabaseStoreError, match=r"index: theirs$") as caught:
        store.save_if("a", _entry("other"), "something else")
    _is_quiet(caught.value)


def test_a_refused_batch_does_not_quote_contents(store: MongoDBStore) -> None:
    store.save("a", _entry("there"))
    with pytest.raises(EntryOwnershipError) as caught:
        store.save_many("b", [_entry("there"), _entry("new")])
    assert isinstance(caught.value.__context__, pymongo.errors.BulkWriteError)
    _is_quiet(caught.value)


def test_a_refused_turn_does_not_quote_its_texts(store: MongoDBStore, collections: Any) -> None:
    conversations = ConversationMemory(store=store)
    conversations.add_turn("c", "hello", "hi")
    collections.command("collMod", "memory_conversations", validator={"user_prompt": {"$ne": CONTENT}})
    with pytest.raises(DatabaseStoreError) as caught:
        conversations.add_turn("c", CONTENT, CONTENT)
    _is_quiet(caught.value)
