"""How facts and people are written in SQL: by how many statements, in whose transaction, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firefly_memory import EntryStore
from firefly_memory.concurrency.sync_bridge import result_of
from firefly_memory.databases.sql.session import DriverSession
from firefly_memory.erasure import erase
from firefly_memory.errors import ErasedError
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import PersonMovedError
from firefly_memory.search.index_language import IndexLanguage, LanguageError
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.bound_stores import opened, opened_async
from tests.support.knowledge_stores import new_store
from tests.support.long_term_logs import LongTerm, at, fact, person, word_of, written
from tests.support.mongodb_chunks import vector

__all__ = ["new_store"]

Count = Callable[[], int]

KINDS = pytest.mark.parametrize("kind", ["sqlite", "psycopg", "asyncpg"])
SERVERS = pytest.mark.parametrize("kind", ["psycopg", "asyncpg"])


@pytest.fixture
def log(new_store: EntryStore, kind: str) -> LongTerm:
    return LongTerm(new_store, Mode.SUSPENDING if kind == "asyncpg" else Mode.BLOCKING)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How many statements were sent since the last call."""
    real, sent = DriverSession._cursor, []

    def counted(session: DriverSession) -> Any:
        sent.append(session)
        return real(session)

    def count() -> int:
        number = len(sent)
        sent.clear()
        return number

    monkeypatch.setattr(DriverSession, "_cursor", counted)
    return count


@SERVERS
async def test_postgresql_writes_and_reads_one_fact_by_one_statement(log: LongTerm, statements: Count) -> None:
    await log.set(fact("first", "decides the language"))
    ann, bob = await log.meet("Ann", "Bob")
    mine: dict[str, Any] = {"scope": "user", "scope_id": "chat:Ann"}
    statements()
    for number, value in enumerate(("new", "changed", "changed")):
        assert (await log.set(fact("k", value, second=number, **mine))).row.times_confirmed == number + 1
        assert statements() == 1
        await log.set(fact("with vector", value, second=number, **mine), vector(number + 1))
        assert statements() == 1
    assert (await log.set(fact("k", "not stored", **mine), overwrite=False)).outcome == "skipped"
    assert statements() == 1
    lookup = Lookup(None, ann.word, None, fact("k").scope)
    assert (await log.facts("get", lookup, "k", at(9))).access_count == 1
    assert await log.facts("get", lookup, "nothing", at(9)) is None
    assert statements() == 2
    await log.people("merge", ann.word, bob.word, "merge", at(9))
    statements()
    for operation, last in (("get", at(10)), ("as_of", at(10))):
        assert (await log.facts(operation, lookup, "k", last)).owner == "chat:Bob", "one statement for a merged person"
    assert await log.facts("find", lookup, "k") is not None
    assert statements() == 3


@KINDS
async def test_a_list_a_search_for_words_and_a_lookup_are_one_statement_also_for_a_merged_person(
    log: LongTerm, new_store: EntryStore, statements: Count, kind: str
) -> None:
    service = MemoryService(new_store, embedder=None)
    mine: dict[str, Any] = {"user_id": "chat:Ann"}
    await log.meet("Ann", "Bob")
    await log.set(fact("k", scope="user", scope_id="chat:Bob"))
    reads: list[Callable[[], Any]] = [
        lambda: service.async_list_facts(**mine) if kind == "asyncpg" else service.list_facts(**mine),
        lambda: service.async_search_facts("k", **mine) if kind == "asyncpg" else service.search_facts("k", **mine),
        lambda: service.async_get_user_facts("chat:Ann") if kind == "asyncpg" else service.get_user_facts("chat:Ann"),
        lambda: log.facts("find", Lookup(None, word_of("chat:Ann"), None, None), "k"),
    ]
    for is_merged in (False, True):
        if is_merged:
            await log.people("merge", word_of("chat:Ann"), word_of("chat:Bob"), "merge", at(1))
        for read in reads:
            statements()
            found = await result_of(read())
            assert bool(found) is is_merged
            assert statements() == 1
    assert await log.facts("find", Lookup(None, None, None, None), "k") is None


@KINDS
async def test_a_fact_of_a_merged_person_is_refused_with_the_other_person(log: LongTerm) -> None:
    ann, bob = await log.meet("Ann", "Bob")
    await log.people("merge", ann.word, bob.word, "merge", at(1))
    rows = [fact("k"), fact("k", scope="user", scope_id="chat:Ann")]
    for some in (rows, rows[1:]):
        with pytest.raises(PersonMovedError) as moved:
            await log.facts("set", [written(each) for each in some], None)
        assert (moved.value.word, moved.value.row.id) == (ann.word, bob.id)
    assert await log.facts("count") == 0


@KINDS
async def test_words_of_another_language_and_facts_of_erased_people_are_refused(
    log: LongTerm, new_store: EntryStore
) -> None:
    german, mine = IndexLanguage("german", FORM), fact("k", scope="user", scope_id="chat:Ann")
    erase(new_store, "chat:Ann")
    for rows in ([mine], [fact("other"), mine], [fact("k", owner="chat:Ann")]):
        with pytest.raises(ErasedError):
            await log.facts("set", [written(each) for each in rows], german)
    with pytest.raises(ErasedError):
        await log.facts("restore", mine, [], german)
    for call in ("meet", "restore"):
        with pytest.raises(ErasedError):
            await log.people(call, person("Ann"))
    assert await log.facts("language") is None, "nothing of it was stored"
    await log.set(fact("k"))
    for several in (1, 2):
        with pytest.raises(LanguageError, match="english by the rules"):
            await log.facts("set", [written(fact(f"k{number}")) for number in range(several)], german)
    with pytest.raises(LanguageError):
        await log.facts("restore", fact("k2"), [], german)
    assert (await log.facts("count"), await log.people("count")) == (1, 0)


@KINDS
async def test_a_deleted_person_leaves_nobody_who_stands_for_them(log: LongTerm) -> None:
    ann, bob, cleo = await log.meet("Ann", "Bob", "Cleo")
    await log.people("merge", ann.word, bob.word, "first", at(1))
    await log.people("merge", bob.word, cleo.word, "second", at(2))
    await log.set(fact("k", scope="user", scope_id="chat:Cleo"), vector(1))
    assert await log.people("delete", [cleo.id, "nobody"]) == 1
    assert (await log.people("count"), await log.facts("count")) == (0, 0)
    assert await log.facts("damage") == []
    (again,) = await log.meet("Ann")
    assert again.word == word_of("chat:Ann")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_facts_and_people_go_with_the_applications_transaction(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        service = MemoryService(store, space="bound", embedder=None)
        service.delete_facts([each.id for each in service.list_facts(user_id="chat:Bob")])
        with engine.connect() as connection, connection.begin() as transaction:
            _work(MemoryService(store.bind(connection), space="bound", embedder=None))
            transaction.rollback()
        assert len(service.list_facts(user_id="chat:Bob")) == 0
        with engine.begin() as connection:
            _work(MemoryService(store.bind(connection), space="bound", embedder=None))
        assert service.get_fact("k", user_id="chat:Ann") == "new"
        assert service.get_user("chat:Ann") is not None
        service.merge_users("chat:Bob", "chat:Cleo")
        service.delete_facts([each.id for each in service.list_facts(user_id="chat:Cleo")])


def _work(service: MemoryService) -> None:
    for name in ("Ann", "Bob", "Cleo"):
        service.get_or_create_user("chat", name, name)
    for value in ("old", "new"):
        service.set_fact("k", value, scope="user", user_id="chat:Ann")
    service.update_preferences("chat:Bob", {"k": 1, "k2": 2})
    if service.get_user("chat:Ann").merged_into_id is None:  # type: ignore[union-attr]
        service.merge_users("chat:Ann", "chat:Bob")
    service.set_fact("k", "new", scope="user", user_id="chat:Ann")
    assert service.get_fact("k", user_id="chat:Ann") == "new"
    service.count_conversation("chat:Ann")


@pytest.mark.parametrize("driver", ["aiosqlite", "asyncpg", "psycopg"])
async def test_facts_are_written_on_an_asynchronous_connection_of_the_applications(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine):
        async with engine.connect() as connection:
            bound = MemoryService(store.bind(connection), space="bound async", embedder=None)
            for value in ("old", "new", "new"):
                written_fact = await bound.async_set_fact("k", value)
            assert written_fact.times_confirmed == 3
            assert await bound.async_get_fact("k") == "new"
            assert [each.value for each in await bound.async_history(written_fact.id)] == ["old"]
            await bound.async_get_or_create_user("chat", "Ann")
            assert await bound.async_update_preferences("chat:Ann", {"a": 1, "b": 2})
        assert len(await MemoryService(store, space="bound async", embedder=None).async_list_facts()) == 0
