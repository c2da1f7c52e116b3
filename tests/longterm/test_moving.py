"""Facts and people in archives and copies, between all kinds of stores, in both modes."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConflictError,
    EntryStore,
    ErasedError,
    FileStore,
    InMemoryStore,
    NotSupportedError,
)
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.erasure import erase, readmit
from firefly_memory.longterm import MemoryService, moving
from firefly_memory.moving import Item
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import stopped
from firefly_memory.transfer.copy_store import Copy
from firefly_memory.transfer.counts import Counts
from tests.support.backends import Place
from tests.support.knowledge_stores import Letters
from tests.support.stored_facts import KINDS, START, kept, log_of, opened

ANN, ALSO = "web:ann \x00☃", "mail:ann"
COUNTS = Counts(users=5, facts=11, fact_versions=9)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_PAGE", 2)


@pytest.fixture(params=KINDS)
async def stores(
    request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path
) -> AsyncIterator[tuple[EntryStore, EntryStore]]:
    """A store of each kind with all that can be, and an empty one of the next kind."""
    kinds = (request.param, KINDS[(KINDS.index(request.param) + 1) % len(KINDS)])
    async with AsyncExitStack() as stack:
        source, target = [
            await stack.enter_async_context(opened(kind, place, new_sqlite_file, f"facts_{number}"))
            for number, kind in enumerate(kinds)
        ]
        await fill(source)
        yield source, target


@pytest.fixture
async def source() -> AsyncIterator[EntryStore]:
    with InMemoryStore() as store:
        await fill(store)
        yield store


@pytest.fixture
def target() -> Iterator[EntryStore]:
    with InMemoryStore() as store:
        yield store


class Transfer:
    """Exports, imports and copies in one mode."""

    def __init__(self, mode: Mode) -> None:
        self._is_blocking = mode is Mode.BLOCKING

    async def lines(self, store: EntryStore) -> list[str]:
        file = io.StringIO()
        export_jsonl(store, file) if self._is_blocking else await async_export_jsonl(store, file)
        return file.getvalue().splitlines()

    async def load(self, store: EntryStore, lines: Sequence[str], **options: Any) -> Counts:
        if self._is_blocking:
            return import_jsonl(store, lines, **options)
        return await async_import_jsonl(store, lines, **options)

    async def copy(self, source: EntryStore, target: EntryStore, **options: Any) -> Copy:
        if self._is_blocking:
            return copy_store(source, target, **options)
        return await async_copy_store(source, target, **options)


@pytest.fixture(params=Mode)
def transfer(request: pytest.FixtureRequest) -> Transfer:
    return Transfer(request.param)


async def fill(store: EntryStore) -> None:
    with stopped(START):
        one, two = (MemoryService(store, space=space, embedder=Letters()) for space in ("one", "\x00 two"))
        for memory in (one, two):
            await memory.async_get_or_create_user("web", ANN.removeprefix("web:"), "Ann \ud800")
            await memory.async_get_or_create_user("mail", "ann", "Ann")
        await one.async_get_or_create_user("email", "bob@home")
        await one.async_count_conversation(ALSO)
        for value in (1, [2**70, -0.0, {"~str": None, "": "\ud800"}], "three", 1e300):
            fact = await one.async_set_fact("odd \x10", value, scope="user", user_id=ALSO, source_episode_id="e")
    with stopped(START + timedelta(days=1, microseconds=1)):
        await one.async_contradict_fact(fact.id)
        await one.async_merge_users(ALSO, ANN)
        for scope in ("session", "user", "agent", "global"):
            for memory in (one, two):
                ids: dict[str, Any] = {
                    "session_id": "s \x00",
                    "agent_id": "a",
                    "user_id": ANN if scope != "global" else None,
                }
                await memory.async_set_fact("colour", scope, scope=scope, confidence=0.1, fact_type="of a kind", **ids)
        assert await one.async_get_fact("colour", session_id="s \x00") == "session"
        for value in range(4):
            last = await one.async_set_fact(
                "counted", value, scope="global", user_id=ANN if value == 3 else "email:bob@home"
            )
        await two.async_set_fact("counted", 0)
        await two.async_set_fact("counted", 1)
        for number in (1, 3):
            await log_of(store).facts.delete_versions([(last.id, number)])
        for value in ("a", "b", "c", "d"):
            await two.async_set_fact("colour", value)


async def test_an_import_restores_everything_as_it_was(
    transfer: Transfer, stores: tuple[EntryStore, EntryStore]
) -> None:
    source, target = stores
    lines = await transfer.lines(source)
    header, *items, end = map(json.loads, lines)
    assert header["kinds"] == {
        kind: {"version": 1, "since": "firefly-memory 0.2"} for kind in ("user", "fact", "fact-version")
    }
    assert Counts.of_archive(end["end"]) == COUNTS
    kinds = [*dict.fromkeys(name for each in items for name in each)]
    assert kinds == ["user", "fact", "fact-version"]
    everything = await kept(source)
    for _ in range(2):
        counts = await transfer.load(target, lines)
        assert counts == COUNTS
        assert counts.in_words().endswith(", 5 people, 11 facts with 9 earlier values")
        assert await kept(target) == everything
    assert (await transfer.lines(target))[1:] == lines[1:]
    memory = MemoryService(target, space="one", embedder=None)
    assert (await memory.async_get_or_create_user("mail", "ann")).canonical_id == ANN
    (history,) = [row.id for row in everything[0] if row.key == "counted" and row.space == "one"]
    assert [each.number for each in await memory.async_history(history)] == [2]
    await memory.async_set_fact("counted", "new")
    assert [each.number for each in await memory.async_history(history)] == [2, 4]
    hits = await memory.async_search_facts("counted", mode="text")
    assert [hit.fact.value for hit in hits] == ["new"], "its words are made anew"


async def test_a_copy_has_everything(transfer: Transfer, stores: tuple[EntryStore, EntryStore]) -> None:
    source, target = stores
    copied = await transfer.copy(source, target)
    assert copied.equal
    assert copied.target.counts == COUNTS
    assert await kept(target) == await kept(source)
    again = await transfer.copy(source, target)
    assert (again.equal, again.before) == (True, COUNTS)


async def test_a_copy_that_broke_off_goes_on(
    stores: tuple[EntryStore, EntryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = stores
    transfer = Transfer(Mode.SUSPENDING)
    everything = await kept(source)
    take, left = moving.LongTermWriter.take, iter(range(11))

    async def breaking_off(writer: moving.LongTermWriter, kind: str, item: Item, *, there: bool = False) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        await take(writer, kind, item, there=there)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(moving.LongTermWriter, "take", breaking_off)
        await transfer.copy(source, target)
    facts, _, people = await kept(target)
    assert (0 < len(facts) < len(everything[0]), len(people)) == (True, 5)
    (fact_id,) = {version.fact_id for version in everything[1] if version.owner == "email:bob@home"}
    assert (await transfer.copy(source, target)).equal
    assert await log_of(target).facts.delete_versions([(fact_id, 2)]) == 1, "as if a write had broken off"
    assert (await transfer.copy(source, target)).equal
    assert await kept(target) == everything


async def test_what_is_there_already_stays_as_it_is(transfer: Transfer, source: EntryStore, target: EntryStore) -> None:
    memory = MemoryService(target, space="one", embedder=None)
    mine = await memory.async_set_fact("colour", "mine")
    person = await memory.async_get_or_create_user("mail", "ann", "My Ann")
    lines = await transfer.lines(source)
    assert await transfer.load(target, lines) == COUNTS
    there = await memory.async_find_fact("colour", "global")
    assert (there, await memory.async_get_user(ALSO)) == (mine, person)
    fact = await memory.async_find_fact("counted", "global")
    assert fact is not None
    await memory.async_set_fact("counted", "newer")
    await transfer.load(target, lines)
    assert await memory.async_get_fact("counted") == "newer"
    assert [each.number for each in await memory.async_history(fact.id)] == [2, 4]


async def test_a_merge_replaces_facts_by_their_ids_and_says_what_differs(
    transfer: Transfer, source: EntryStore, target: EntryStore
) -> None:
    assert (await transfer.copy(source, target)).equal
    here, there = (MemoryService(each, space="one", embedder=None) for each in (source, target))
    await here.async_set_fact("counted", "new")
    await there.async_set_fact("counted", "other")
    await there.async_set_fact("more", 1)
    with pytest.raises(ConflictError, match=r"fact .* with the key 'counted' of the target is another one"):
        await transfer.copy(source, target)
    merged = await transfer.copy(source, target, merge=True)
    assert (merged.equal, merged.beyond) == (True, Counts(facts=1))
    assert await there.async_get_fact("counted") == "new"
    assert await there.async_get_fact("more") == 1
    await here.async_count_conversation(ANN)
    merged = await transfer.copy(source, target, merge=True)
    assert not merged.equal
    assert merged.difference is not None
    assert merged.difference.startswith(f"person {ANN!r} of the space 'one' is another one in the target")


async def test_a_fact_of_somebody_who_was_merged_in_the_target_goes_to_the_other_person(
    transfer: Transfer, source: EntryStore, target: EntryStore
) -> None:
    memory = MemoryService(target, space="one", embedder=None)
    for person in ("web:root", ANN):
        await memory.async_get_or_create_user(*person.split(":"))
    await memory.async_set_fact("colour", "the root's", scope="user", user_id="web:root")
    await memory.async_merge_users(ANN, "web:root")
    await transfer.load(target, await transfer.lines(source))
    assert {each.key: each.value for each in await memory.async_get_user_facts(ANN)} == {
        "colour": "the root's",
        "odd \x10": 1e300,
    }
    assert {each.user_id for each in await memory.async_get_user_facts("web:root")} == {"web:root"}
    user = await memory.async_get_or_create_user("mail", "ann")
    assert user.canonical_id == "web:root", "who was merged into Ann stands for the same person now"


async def test_a_copy_does_not_take_a_fact_from_a_person_who_is_merged_in_the_source_only(
    transfer: Transfer, target: EntryStore
) -> None:
    with InMemoryStore() as source:
        here, there = (MemoryService(store, embedder=None) for store in (source, target))
        for person in ("one", "two"):
            await here.async_get_or_create_user("web", person)
        await here.async_set_fact("city", "Perth", user_id="web:one")
        assert (await transfer.copy(source, target)).equal
        await here.async_merge_users("web:one", "web:two")
        with pytest.raises(ConflictError, match=r"belongs to another person in the target .* merge them in the target"):
            await transfer.copy(source, target, merge=True)
        assert await there.async_get_fact("city", user_id="web:one") == "Perth"
        await there.async_merge_users("web:one", "web:two")
        await transfer.copy(source, target, merge=True)
        assert await there.async_get_fact("city", user_id="web:one") == "Perth"
        assert await there.async_get_fact("city", user_id="web:two") == "Perth"


async def test_a_merged_person_with_facts_of_their_own_in_the_target_is_refused(
    transfer: Transfer, source: EntryStore, target: EntryStore
) -> None:
    memory = MemoryService(target, space="one", embedder=None)
    await memory.async_set_fact("colour", "mine", scope="user", user_id=ALSO)
    with pytest.raises(ConflictError, match=r"'mail:ann' of the space 'one' was merged into .* has facts of its own"):
        await transfer.load(target, await transfer.lines(source))
    assert await memory.async_get_fact("colour", user_id=ALSO) == "mine"


async def test_two_people_do_not_get_the_same_address(
    transfer: Transfer, source: EntryStore, target: EntryStore
) -> None:
    memory = MemoryService(target, space="one", embedder=None)
    await memory.async_get_or_create_user("email", "bob@home")
    await memory.async_get_or_create_user("web", "bob")
    await memory.async_merge_users("email:bob@home", "web:bob")
    await log_of(target).people.delete([(await memory.async_get_user("email:bob@home")).id])  # type: ignore[union-attr]
    with pytest.raises(ConflictError, match=r"person 'email:bob@home' .* telegram_id or the email of another person"):
        await transfer.load(target, await transfer.lines(source))


async def test_an_untrusted_archive_merges_nobody(transfer: Transfer, source: EntryStore, target: EntryStore) -> None:
    """Otherwise a stranger could write an archive by which he reads the facts of Ann, or has her erased with him."""
    memory = MemoryService(target, space="one", embedder=None)
    await memory.async_get_or_create_user("web", ANN.removeprefix("web:"))
    await memory.async_set_fact("secret", 1, scope="user", user_id=ANN)
    counts = await transfer.load(target, await transfer.lines(source), untrusted=True)
    assert (counts, counts.left_out) == (COUNTS, 4), "a merge, and names"
    assert "left out 4 things that an untrusted archive may not have" in counts.in_words()
    user = await memory.async_get_user(ALSO)
    assert user is not None
    assert user.merged_into_id is None
    assert list(await memory.async_get_user_facts(ALSO)) == []
    erase(target, ALSO)
    assert await memory.async_get_fact("secret", user_id=ANN) == 1


async def test_a_part_or_none_can_be_moved(transfer: Transfer, source: EntryStore) -> None:
    lines = await transfer.lines(source)
    for options, counts in (
        ({"only": "one"}, Counts(users=3, facts=6, fact_versions=4)),
        ({"only": "\x00"}, Counts(users=2, facts=5, fact_versions=5)),
        ({"longterm": False}, Counts()),
    ):
        with InMemoryStore() as target:
            loaded = await transfer.load(target, lines, **options)
            facts, versions, people = await kept(target)
            assert loaded == Counts(users=len(people), facts=len(facts), fact_versions=len(versions))
            assert (options, loaded) == (options, counts)
    with InMemoryStore() as target:
        assert (await transfer.copy(source, target, longterm=False)).source.counts == Counts()


async def test_a_store_that_keeps_none_says_which_do(transfer: Transfer, source: EntryStore, tmp_path: Path) -> None:
    words = r"cannot keep long-term memory; InMemoryStore, .* can, and longterm=False \(--without-longterm\)"
    with FileStore(tmp_path) as target:
        with pytest.raises(NotSupportedError, match=words):
            await transfer.copy(source, target)
        with pytest.raises(NotSupportedError, match=f"line 2 of the archive: .*{words}"):
            await transfer.load(target, await transfer.lines(source))
        assert (await transfer.copy(source, target, longterm=False)).equal


@pytest.mark.parametrize("person", [ANN, ALSO, "email:bob@home"])
async def test_data_of_an_erased_person_ends_an_import_and_a_copy(
    person: str, stores: tuple[EntryStore, EntryStore]
) -> None:
    """Bob has only said what a fact of Ann was before."""
    source, target = stores
    transfer = Transfer(Mode.SUSPENDING)
    lines = [each for each in await transfer.lines(source) if "bob" not in each or '"user"' not in each]
    lines[-1] = json.dumps(
        {"end": {**json.loads(lines[-1])["end"], "users": sum(each.startswith('{"user"') for each in lines)}}
    )
    erase(target, person)
    try:
        with pytest.raises(ErasedError):
            await transfer.load(target, lines)
        with pytest.raises(ErasedError):
            await transfer.copy(source, target, merge=True)
        facts, versions, people = await kept(target)
        owners = {row.owner for row in facts} | {row.owner for row in versions}
        stored = owners | {row.canonical_id for row in people}
        assert person not in {None if each is None else each.replace("\x100", "\x00") for each in stored}
    finally:
        readmit(target, person)


async def test_an_empty_target_takes_the_language_and_another_keeps_its_own(
    transfer: Transfer, target: EntryStore
) -> None:
    with InMemoryStore() as german:
        await MemoryService(german, embedder=None, language="german").async_set_fact("k", "Häuser")
        assert (await transfer.copy(german, target)).equal
        assert await log_of(target).facts.language() == IndexLanguage("german", FORM)
        with InMemoryStore() as english:
            memory = MemoryService(english, embedder=None)
            await memory.async_set_fact("k2", "moving houses")
            assert (await transfer.copy(german, english, merge=True)).equal
            assert await log_of(english).facts.language() == IndexLanguage("english", FORM)
            assert [each.fact.key for each in await memory.async_search_facts("Häuser", mode="text")] == ["k"]
