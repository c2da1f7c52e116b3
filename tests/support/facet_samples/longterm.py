"""Samples of long-term memory: facts with histories, and people, some of them merged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from firefly_memory import EntryStore, ErasedError
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.erasure import async_readmit
from firefly_memory.identifiers import new_entry_id, stored_name
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.log import LONG_TERM_LOG, PeopleLog
from firefly_memory.longterm.moving import LongTermWriter
from firefly_memory.longterm.places import person_place, stored_space
from firefly_memory.longterm.rows import UserRow
from firefly_memory.moving import Item, Writing

_AT = datetime(2024, 5, 6, tzinfo=UTC)


def person(canonical_id: str, space: str = "default", **fields: Any) -> UserRow:
    """A person with any id, also one that names no channel."""
    name = new_entry_id()
    place = person_place(stored_space(space), stored_name("canonical_id", canonical_id))
    row = UserRow(
        id=name,
        space=place.space,
        canonical_id=place.scope_id,
        word=place.word,
        telegram_id=None,
        email=None,
        display_name=None,
        total_conversations=0,
        last_conversation_at=None,
        merged_into_id=None,
        stands_for=place.word,
        written_by=name,
        first_seen=_AT,
        updated_at=_AT,
    )
    given: dict[str, Any] = {name: stored_name(name, value) for name, value in fields.items()}
    return row._replace(**given)


async def merge(people: PeopleLog, source: str, target: str, space: str = "default") -> None:
    rows = [person(each, space) for each in (source, target)]
    assert (await people.merge(rows[0].word, rows[1].word, new_entry_id(), _AT)).row is not None


def also(owner: str) -> str:
    """The id of somebody who is merged into a person."""
    return f"also {owner}"


async def store_data_of(store: EntryStore, owner: str) -> None:
    people, service = store.suspending.log(LONG_TERM_LOG).people, MemoryService(store, embedder=None)
    for name in (owner, also(owner)):
        assert await people.restore(person(name, telegram_id=name, email=f"{name}@home", display_name=name))
        for value in (owner, {owner: [owner]}):
            await service.async_set_fact(f"key of {owner}", value, scope="user", user_id=name, fact_type=f"of {owner}")
    await merge(people, also(owner), owner)
    options: dict[str, Any] = {"user_id": owner, "source_episode_id": f"episode of {owner}"}
    for scope in ("session", "agent", "global"):
        ids: dict[str, Any] = {"session_id": f"session of {owner}", "agent_id": f"agent of {owner}"}
        await service.async_set_fact(f"key of {owner}", owner, scope=scope, **ids, **options)


async def assert_late_writes_are_refused(store: EntryStore, owner: str) -> None:
    people, service = store.suspending.log(LONG_TERM_LOG).people, MemoryService(store, embedder=None)
    for name in (owner, also(owner)):
        for scope in ("session", "user", "agent", "global"):
            with pytest.raises(ErasedError):
                await service.async_set_fact("late", 1, scope=scope, session_id="s", agent_id="a", user_id=name)
        for write in (people.meet, people.restore):
            with pytest.raises(ErasedError):
                await write(person(name))
        assert not await service.async_update_preferences(name, {"late": 1}), "a stranger"
    assert await async_readmit(store, also(owner)), "each id by itself"


def store_hostile(store: EntryStore, text: str) -> None:
    run_without_loop(_store_hostile(store, text))


async def _store_hostile(store: EntryStore, text: str) -> None:
    user = person(text, text, id=text, telegram_id=text, email=text, display_name=text)
    assert await store.blocking.log(LONG_TERM_LOG).people.restore(user)
    writer = LongTermWriter(store.blocking, Writing())
    fact = {**_fact(text, "user", text), "key": text, "space": text, "fact_type": text, "source_episode_id": text}
    fact = {**fact, "value": {text: text * 20}}
    await writer.take("fact", fact)
    await writer.take("fact-version", _version(fact, 1))
    await writer.finish()


def store_archived(store: EntryStore) -> None:
    run_without_loop(_store_archived(LongTermWriter(store.blocking, Writing())))


async def _store_archived(writer: LongTermWriter) -> None:
    """The ids and instants are the same in every process."""
    at = _AT.isoformat()
    for number, name in enumerate(("mail:ann", "web:ann")):
        person = {
            "id": f"p{number}",
            "space": "default",
            "canonical_id": name,
            "telegram_id": None,
            "email": None if number else "ann",
            "display_name": "Ann",
            "total_conversations": 2,
            "last_conversation_at": at,
            "merged_into": "mail:ann" if number else None,
            "merged_into_id": "p0" if number else None,
            "first_seen": at,
            "updated_at": at,
        }
        await writer.take("user", person)
    for number, (scope, scope_id) in enumerate((("user", "mail:ann"), ("global", ""), ("agent", "a"))):
        fact = _fact(f"f{number}", scope, scope_id)
        await writer.take("fact", fact)
        for version in (1, 2):
            await writer.take("fact-version", _version(fact, version))
    await writer.finish()


def _fact(fact_id: str, scope: str, scope_id: str) -> Item:
    return {
        "id": fact_id,
        "space": "default",
        "scope": scope,
        "scope_id": scope_id,
        "owner": scope_id if scope == "user" else None,
        "key": "colour",
        "value": {"of": fact_id},
        "fact_type": "user_preference",
        "confidence": 0.5,
        "times_confirmed": 2,
        "times_contradicted": 0,
        "source_episode_id": None,
        "versions": 2,
        "access_count": 3,
        "last_accessed": None,
        **dict.fromkeys(("valid_from", "created_at", "updated_at"), _AT.isoformat()),
        "language": "english",
    }


def _version(fact: Item, number: int) -> Item:
    same = {name: fact[name] for name in ("space", "owner", "confidence", "source_episode_id", "valid_from")}
    value = [number, fact["value"]]
    return {**same, "fact_id": fact["id"], "number": number, "value": value, "superseded_at": _AT.isoformat()}
