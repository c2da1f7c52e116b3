"""The arguments of a ``MemoryService``, each checked with a clear error, and stores that have no long-term memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from firefly_memory import (
    ConfigurationError,
    EntryStore,
    FileStore,
    FireflyMemoryError,
    InMemoryStore,
    InvalidEntryError,
    NotSupportedError,
    SQLiteStore,
    StoreClosedError,
    adapt,
)
from firefly_memory.errors import UnknownRecordError
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.fact_form import LONGEST_VALUE
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from firefly_memory.testing.rules.long_term_services import LONGEST
from tests.support.folder_backend import FolderStore
from tests.support.long_term_calls import every_call
from tests.support.long_term_stores import IN_EACH, Make

_NAIVE = datetime(2024, 5, 6)  # noqa: DTZ001
_BEFORE_THE_FIRST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
_AFTER_THE_LAST = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))

ARGUMENTS: dict[str, tuple[type[Exception], str, Callable[[Memory], Any]]] = {
    "an empty key": (InvalidEntryError, "key: must not be empty", lambda s: s.set_fact("", 1)),
    "a key of 10 kB": (InvalidEntryError, "key: is 10000 characters long; at most 512", lambda s: s.get_fact("k" * 10_000)),
    "a key that is a number": (InvalidEntryError, "key: must be text, not int", lambda s: s.find_fact(5, "global")),
    "a value that JSON lacks": (InvalidEntryError, r"value\['a'\]\[1\]: values of type object", lambda s: s.set_fact("k", {"a": [1, object()]})),
    "a value that is no number": (InvalidEntryError, r"value\[0\]", lambda s: s.set_fact("k", [float("nan")])),
    "a very long value": (InvalidEntryError, "value: is .* at most 4,000,000", lambda s: s.set_fact("k", "x" * LONGEST_VALUE)),
    "a confidence above 1": (InvalidEntryError, "confidence: must be from 0.0 to 1.0, not 1.1", lambda s: s.set_fact("k", 1, confidence=1.1)),
    "a confidence below 0": (InvalidEntryError, "confidence: must be from 0.0 to 1.0, not -0.1", lambda s: s.set_fact("k", 1, confidence=-0.1)),
    "a confidence that is no number": (InvalidEntryError, "confidence: must be .* not nan", lambda s: s.set_fact("k", 1, confidence=float("nan"))),
    "a confidence without end": (InvalidEntryError, "confidence: must be .* not inf", lambda s: s.set_fact("k", 1, confidence=float("inf"))),
    "a confidence that is true": (InvalidEntryError, "confidence: must be a number, not bool", lambda s: s.set_fact("k", 1, confidence=True)),
    "a confidence that is text": (InvalidEntryError, "confidence: must be a number, not str", lambda s: s.set_fact("k", 1, confidence="1")),
    "a huge confidence": (InvalidEntryError, "confidence: must be .* not 1000", lambda s: s.set_fact("k", 1, confidence=10**400)),
    "a confidence of 5,000 digits": (InvalidEntryError, "confidence: must be .* not an int too long", lambda s: s.set_fact("k", 1, confidence=10**5_000)),
    "an empty type": (InvalidEntryError, "fact_type: must not be empty", lambda s: s.set_fact("k", 1, fact_type="")),
    "a type that is a number": (InvalidEntryError, "fact_type: must be text, not int", lambda s: s.set_fact("k", 1, fact_type=0)),
    "an empty source": (InvalidEntryError, "source_episode_id: must not be empty", lambda s: s.set_fact("k", 1, source_episode_id="")),
    "overwrite that is text": (ConfigurationError, "overwrite must be True or False, not 'no'", lambda s: s.set_fact("k", 1, overwrite="no")),
    "an unknown scope": (InvalidEntryError, "scope: must be 'session', 'user', 'agent' or 'global', not 'all'", lambda s: s.set_fact("k", 1, scope="all")),
    "a scope that is a list": (InvalidEntryError, r"scope: must be .* not \['user'\]", lambda s: s.find_fact("k", ["user"])),
    "no id for the session": (InvalidEntryError, "session_id: is needed for the scope 'session'", lambda s: s.set_fact("k", 1, scope="session", user_id="u")),
    "no id for the user": (InvalidEntryError, "user_id: is needed for the scope 'user'", lambda s: s.find_fact("k", "user", agent_id="a")),
    "no id for the agent": (InvalidEntryError, "agent_id: is needed for the scope 'agent'", lambda s: s.set_fact("k", 1, scope="agent")),
    "an empty id": (InvalidEntryError, "user_id: must not be empty", lambda s: s.get_fact("k", user_id="")),
    "a long id": (InvalidEntryError, "agent_id: is 513 characters", lambda s: s.list_facts(agent_id="a" * 513)),
    "an id that is a number": (InvalidEntryError, "session_id: must be text, not int", lambda s: s.search_facts("", session_id=5)),
    "an owner that is a number": (InvalidEntryError, "user_id: must be text, not int", lambda s: s.set_fact("k", 1, user_id=5)),
    "a naive instant": (InvalidEntryError, "as_of: must be a datetime with a time zone", lambda s: s.get_fact("k", as_of=_NAIVE)),
    "an instant as text": (InvalidEntryError, "as_of: must be a datetime", lambda s: s.get_fact("k", as_of="2024-05-06")),
    "an instant before the first": (InvalidEntryError, "as_of: is before the year 1", lambda s: s.get_fact("k", as_of=_BEFORE_THE_FIRST)),
    "an instant after the last": (InvalidEntryError, "as_of: .* after 9999", lambda s: s.get_fact("k", as_of=_AFTER_THE_LAST)),
    "a limit of zero": (InvalidEntryError, "limit: must be a whole number from 1 up, not 0", lambda s: s.list_facts(limit=0)),
    "a negative limit": (InvalidEntryError, "limit: must be .* not -1", lambda s: s.get_user_facts("u", -1)),
    "a limit that is true": (InvalidEntryError, "limit: must be .* not True", lambda s: s.list_users(True)),  # noqa: FBT003
    "a limit that is text": (InvalidEntryError, "limit: must be .* not '3'", lambda s: s.list_users("3")),
    "no hits": (InvalidEntryError, "limit: must be a whole number from 1 up, not 0", lambda s: s.search_facts("k", limit=0)),
    "a cursor of another list": (InvalidEntryError, r"after: 'x' is not the next of a page of list_facts\(\)", lambda s: s.list_facts(after="x")),
    "a cursor of people for facts": (InvalidEntryError, r"a page of get_user_facts\(\)", lambda s: s.get_user_facts("u", after="2024-05-06T00:00:00+00:00/x")),
    "a cursor of facts for people": (InvalidEntryError, r"a page of list_users\(\)", lambda s: s.list_users(after="1.0/2024-05-06T00:00:00+00:00/x")),
    "a cursor of bytes": (InvalidEntryError, r"a page of list_facts\(\)", lambda s: s.list_facts(after=b"1/2/3")),
    "a cursor that is a number": (InvalidEntryError, r"a page of search_facts\(\)", lambda s: s.search_facts("k", after=5)),
    "a cursor of people before the first year": (InvalidEntryError, r"a page of list_users\(\)", lambda s: s.list_users(after="0001-01-01T00:00:00+05:00/x")),
    "a cursor of facts after the last year": (InvalidEntryError, r"a page of list_facts\(\)", lambda s: s.list_facts(after="1.0/9999-12-31T23:00:00-05:00/x")),
    "a cursor with a naive instant": (InvalidEntryError, r"a page of list_facts\(\)", lambda s: s.list_facts(after="1.0/2024-05-06T00:00:00/x")),
    "a cursor with a confidence of 2": (InvalidEntryError, r"a page of list_facts\(\)", lambda s: s.list_facts(after="2/2024-05-06T00:00:00+00:00/x")),
    "an id that is None": (InvalidEntryError, "fact_id: must be text, not NoneType", lambda s: s.confirm_fact(None)),
    "a very long id": (InvalidEntryError, "fact_id: is 513 characters", lambda s: s.contradict_fact("x" * 513)),
    "an unknown fact to confirm": (UnknownRecordError, "there is no fact 'x' in the space 'default'", lambda s: s.confirm_fact("x")),
    "an unknown fact to contradict": (UnknownRecordError, "there is no fact 'x'", lambda s: s.contradict_fact("x")),
    "the history of an unknown fact": (UnknownRecordError, "there is no fact 'x'", lambda s: s.history("x")),
    "a text for ids": (InvalidEntryError, "ids: must be several ids, in a list", lambda s: s.delete_facts("an id")),
    "ids that are None": (InvalidEntryError, "ids: must be several ids, in a list", lambda s: s.delete_facts(None)),
    "ids that are numbers": (InvalidEntryError, "id: must be text, not int", lambda s: s.delete_facts([5])),
    "a query that is a list": (InvalidEntryError, "query: must be text, not list", lambda s: s.search_facts(["k"])),
    "an unknown mode": (ConfigurationError, "mode must be 'best', 'hybrid', .* not 'like'", lambda s: s.search_facts("k", mode="like")),
    "a cursor for one list": (InvalidEntryError, "after: goes with mode='fuzzy'", lambda s: s.search_facts("k", mode="text", after="x")),
    "too many ranked hits": (InvalidEntryError, "limit: must be at most 100 with mode='text'", lambda s: s.search_facts("k", mode="text", limit=101)),
    "a minimal confidence of 2": (InvalidEntryError, "min_confidence: must be from 0.0 to 1.0, not 2", lambda s: s.search_facts("k", min_confidence=2)),
    "a text for types": (InvalidEntryError, "fact_types: must be several types", lambda s: s.search_facts("k", fact_types="correction")),
    "an empty channel": (InvalidEntryError, "channel: must not be empty", lambda s: s.get_or_create_user("", "1")),
    "a channel with a colon": (InvalidEntryError, "channel: must not have a colon", lambda s: s.get_or_create_user("a:b", "1")),
    "an id of a channel that is a number": (InvalidEntryError, "id: must be text, not int", lambda s: s.get_or_create_user("telegram", 12345)),
    "a long address": (InvalidEntryError, "id: is 321 characters long; at most 320", lambda s: s.get_or_create_user("email", "x" * 321)),
    "a long canonical id": (InvalidEntryError, "canonical_id: is 514 characters", lambda s: s.get_or_create_user("a", "x" * 512)),
    "a long name": (InvalidEntryError, "name: is 513 characters", lambda s: s.get_or_create_user("a", "1", "x" * 513)),
    "a name that is a number": (InvalidEntryError, "name: must be text, not int", lambda s: s.get_or_create_user("a", "1", 0)),
    "a person who is None": (InvalidEntryError, "user_id: must be text, not NoneType", lambda s: s.get_user_context(None)),
    "an agent that is a number": (InvalidEntryError, "agent_id: must be text, not int", lambda s: s.get_user_context("u", 5)),
    "an unknown person to merge": (UnknownRecordError, "there is no person 'a:1' in the space", lambda s: s.merge_users("a:1", "a:2")),
    "a merged person who is None": (InvalidEntryError, "source: must be text, not NoneType", lambda s: s.merge_users(None, "a:2")),
}  # fmt: skip


@pytest.mark.parametrize("given", ARGUMENTS)
@pytest.mark.parametrize("mode", Mode)
async def test_a_wrong_argument_is_refused_with_a_clear_error(given: str, mode: Mode) -> None:
    service = Memory(MemoryService(embedder=None), mode)
    error, says, call = ARGUMENTS[given]
    with pytest.raises(error, match=says) as refused:
        await call(service)
    assert isinstance(refused.value, FireflyMemoryError)
    assert (len(await service.list_facts()), len(await service.list_users())) == (0, 0)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"space": 5}, InvalidEntryError, "space: must be text, not int"),
        ({"space": ""}, InvalidEntryError, "space: must not be empty"),
        ({"space": "s" * 129}, InvalidEntryError, "space: is 129 characters long; at most 128"),
        ({"language": "klingon"}, ConfigurationError, "language must be 'none' or one of arabic, .* not 'klingon'"),
        ({"embedder": "openai"}, ConfigurationError, "embedder must be an Embedder, and str has no"),
        ({"store": 5}, ConfigurationError, "int is no store"),
    ],
)
def test_a_service_is_not_made_of_wrong_arguments(options: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        MemoryService(**options)


def test_a_service_says_what_it_is() -> None:
    service = MemoryService(space="a\x00b", embedder=None)
    assert (service.space, service.embedder) == ("a\x00b", None)
    assert repr(service) == "MemoryService(InMemoryStore(), space='a\\x00b')"


@IN_EACH
async def test_names_of_the_largest_size_fit_into_every_index_at_once(make: Make) -> None:
    for name in LONGEST:
        service = make(space=f"{uuid4().hex}{name[:96]}")
        for scope in ("session", "user", "agent", "global"):
            ids = {"session_id": name, "user_id": name, "agent_id": name}
            options = {"scope": scope, "fact_type": name, "source_episode_id": name, **ids}
            made = await service.set_fact(name, "first", **options)
            assert (await service.set_fact(name, name, **options)).id == made.id
            assert await service.get_fact(name, **ids) == name
            (version,) = await service.history(made.id)
            assert version.source_episode_id == name
        people = [
            await service.get_or_create_user(channel, name[:size], name)
            for channel, size in (("telegram", 320), ("email", 320), ("x", 510))
        ]
        assert [each.display_name for each in await service.list_users()] == [name] * 3
        merged = await service.merge_users(people[0].canonical_id, people[1].canonical_id)
        assert (merged.telegram_id, merged.email) == (name[:320], name[:320])
        assert (
            await service.delete_facts([each.id for each in await service.list_facts(name, name, session_id=name)]) == 4
        )


@pytest.mark.parametrize("mode", Mode)
async def test_a_closed_store_is_neither_read_nor_written(mode: Mode, tmp_path: Path) -> None:
    for store in (InMemoryStore(), SQLiteStore(tmp_path / "memory.db")):
        service = Memory(MemoryService(store, embedder=None), mode)
        made = await service.set_fact("k", 1)
        await service.get_or_create_user("a", "1")
        await store.close()
        for call in every_call(service, made.id):
            with pytest.raises(StoreClosedError):
                await call


WITHOUT: dict[str, Callable[[Path], EntryStore]] = {
    "file": lambda path: FileStore(path / "files"),
    "five methods": lambda path: adapt(FolderStore(path / "five")),
}


@pytest.mark.parametrize("kind", WITHOUT)
@pytest.mark.parametrize("mode", Mode)
async def test_a_store_without_long_term_memory_names_those_that_have_it(kind: str, mode: Mode, tmp_path: Path) -> None:
    service = Memory(MemoryService(WITHOUT[kind](tmp_path), embedder=None), mode)
    stores = "SQLiteStore, PostgreSQLStore, MongoDBStore and InMemoryStore can"
    for call in every_call(service, "id"):
        with pytest.raises(NotSupportedError, match=f"long-term memory cannot be kept in .*; {stores}"):
            await call
    await service.inner.store.close()
