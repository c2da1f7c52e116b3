"""L8 and L12, long-term memory: people who become one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from firefly_memory.errors import InvalidEntryError, UnknownRecordError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.types import MemoryUser
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Memory, Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.long_term_services import Service, service_in

_START = datetime(2024, 2, 29, 12, tzinfo=UTC)
_DAY = timedelta(days=1)


async def _people(service: Service, *names: str) -> list[MemoryUser]:
    return [await service.get_or_create_user("web", name) for name in names]


def _of(name: str) -> dict[str, str]:
    return {"scope": "user", "user_id": f"web:{name}"}


@check("L8", facet=LONG_TERM_LOG)
async def the_target_has_the_facts_of_both_and_wins_conflicts(subject: Subject) -> None:
    with stopped(_START) as clock:
        async with service_in(subject) as service:
            await _people(service, "ann", "bob")
            await service.set_fact("k", "ann's first", confidence=0.5, source_episode_id="e", **_of("ann"))
            same = await service.set_fact("same", 1, **_of("ann"))
            alone = await service.set_fact("alone", 1, **_of("ann"))
            clock.advance(days=1)
            kept = await service.set_fact("k", "bob's", confidence=0.25, source_episode_id="f", **_of("bob"))
            kept_same = await service.set_fact("same", 1, **_of("bob"))
            clock.advance(days=1)
            gone = await service.set_fact("k", "ann's", **_of("ann"))
            await service.contradict_fact(gone.id)
            alone = await service.set_fact("alone", 2, **_of("ann"))
            elsewhere = await service.set_fact("k", "x", scope="session", session_id="s", user_id="web:ann")
            await service.get_fact("k", user_id="web:ann")
            accessed = clock.moment
            clock.advance(days=1)
            target = await service.merge_users("web:ann", "web:bob")
            assert target == await service.get_user("web:bob")
            found = await service.find_fact("k", **_of("bob"))
            assert found == replace(
                kept, times_confirmed=3, times_contradicted=1, access_count=1, last_accessed=accessed
            ), "counts add up, and nothing else changes"
            assert [
                (each.number, each.value, each.confidence, each.source_episode_id, each.valid_from, each.superseded_at)
                for each in await service.history(kept.id)
            ] == [
                (1, "ann's first", 0.5, "e", _START, _START + 2 * _DAY),
                (2, "ann's", 0.5 * 0.8, None, _START + 2 * _DAY, clock.moment),
            ]
            assert await service.find_fact("same", **_of("bob")) == replace(kept_same, times_confirmed=2)
            assert list(await service.history(kept_same.id)) == [], "the same value is no history"
            moved = await service.find_fact("alone", **_of("ann"))
            assert moved == replace(alone, user_id="web:bob")
            assert [each.value for each in await service.history(alone.id)] == [1]
            assert await service.read_fact(elsewhere.id) == replace(elsewhere, user_id="web:bob")
            assert [await service.read_fact(each.id) for each in (gone, same)] == [None, None]
            for at, value in (
                (_START - _DAY, None),
                (_START, "ann's first"),
                (_START + _DAY, "bob's"),
                (_START + 2 * _DAY, "bob's"),
            ):
                for name in ("ann", "bob"):
                    assert await service.get_fact("k", user_id=f"web:{name}", as_of=at) == value, at


@check("L8", facet=LONG_TERM_LOG)
async def a_merged_person_stands_for_the_target_everywhere(subject: Subject) -> None:
    async with service_in(subject) as service:
        ann, _ = await _people(service, "ann", "bob")
        await service.set_fact("tone", "short", fact_type="user_preference", **_of("ann"))
        await service.merge_users("web:ann", "web:bob")
        merged, target = await service.get_user("web:ann"), await service.get_user("web:bob")
        assert (merged.id, merged.merged_into_id, dict(merged.preferences_cache)) == (ann.id, target.id, {})
        assert (target.merged_into_id, dict(target.preferences_cache)) == (None, {"tone": "short"})
        assert await service.get_or_create_user("web", "ann", "Ann") == target
        assert await service.update_preferences("web:ann", {"loud": False})
        assert await service.count_conversation("web:ann")
        made = await service.set_fact("city", "Perth", **_of("ann"))
        assert made.user_id == "web:bob"
        assert await service.find_fact("city", **_of("ann")) == await service.find_fact("city", **_of("bob")) == made
        assert await service.get_fact("tone", user_id="web:ann") == "short"
        for name in ("ann", "bob"):
            assert {each.key for each in await service.get_user_facts(f"web:{name}")} == {"tone", "loud", "city"}
            assert {each.key for each in await service.list_facts(user_id=f"web:{name}")} == {"tone", "loud", "city"}
            assert [each.fact.key for each in await service.search_facts("perth", user_id=f"web:{name}")] == ["city"]
        context = await service.get_user_context("web:ann")
        assert context == await service.get_user_context("web:bob")
        assert (context["user_id"], context["total_conversations"]) == ("web:bob", 1)
        assert context["preferences"] == {"tone": "short", "loud": False}
        assert [each.canonical_id for each in await service.list_users()] == ["web:ann", "web:bob"]


@check("L8", facet=LONG_TERM_LOG)
async def the_records_of_two_people_are_joined(subject: Subject) -> None:
    with stopped(_START) as clock:
        async with service_in(subject) as service:
            early = await service.get_or_create_user("telegram", "1", "Early")
            await service.count_conversation("telegram:1")
            clock.advance(days=1)
            target = await service.get_or_create_user("email", "a@x.org")
            await service.count_conversation("email:a@x.org")
            await service.count_conversation("email:a@x.org")
            other = await service.get_or_create_user("email", "b@x.org", "Other")
            counted = clock.moment
            joined = await service.merge_users("telegram:1", "email:a@x.org")
            assert joined == replace(
                target,
                telegram_id="1",
                display_name="Early",
                first_seen=_START,
                total_conversations=3,
                last_conversation_at=counted,
            )
            assert await service.get_user("telegram:1") == replace(
                early,
                telegram_id=None,
                total_conversations=1,
                last_conversation_at=_START,
                merged_into_id=target.id,
            )
            joined = await service.merge_users("email:b@x.org", "email:a@x.org")
            assert (joined.email, joined.display_name, joined.total_conversations) == ("a@x.org", "Early", 3)
            assert (await service.get_user("email:b@x.org")).email == other.email, "the target has an address already"
            await service.get_or_create_user("email", "c@x.org")
            await service.get_or_create_user("web", "1")
            joined = await service.merge_users("email:c@x.org", "web:1")
            assert (joined.email, joined.telegram_id, joined.display_name) == ("c@x.org", None, None)
            assert (await service.get_user("email:c@x.org")).email is None


@check("L8", facet=LONG_TERM_LOG)
async def chains_of_merged_people_are_followed_and_cycles_refused(subject: Subject) -> None:
    names = [f"p{number}" for number in range(6)]
    async with service_in(subject) as service:
        people = await _people(service, *names, "alone")
        for name in names:
            await service.set_fact(name, name, **_of(name))
            await service.count_conversation(f"web:{name}")
        for one, other in ((0, 1), (2, 3), (1, 2), (4, 0), (3, 5)):  # 4 goes into 0, who stands for 3 by then
            await service.merge_users(f"web:p{one}", f"web:p{other}")
        root = await service.get_user("web:p5")
        assert (root.total_conversations, root.merged_into_id) == (6, None)
        for person in people[:5]:
            assert (await service.get_user(person.canonical_id)).merged_into_id == root.id, "one step long"
            assert {each.key for each in await service.get_user_facts(person.canonical_id)} == set(names)
            assert await service.merge_users(person.canonical_id, "web:p5") == root, "they are one already"
            assert await service.merge_users(person.canonical_id, "web:p4" if person != people[4] else "web:p0") == root
            refused = await subject.refuses(InvalidEntryError, service.merge_users("web:p5", person.canonical_id))
            assert "was merged into" in str(refused)
        for name in ("p5", "p0", "alone"):
            await subject.refuses(InvalidEntryError, service.merge_users(f"web:{name}", f"web:{name}"))
        for source, target in (("web:x", "web:p5"), ("web:p0", "web:x"), ("web:x", "web:y")):
            error = await subject.refuses(UnknownRecordError, service.merge_users(source, target))
            assert "'web:x'" in str(error)
        await subject.refuses(UnknownRecordError, service.merge_users("web:x", "web:x"))
        assert await service.get_user("web:p5") == root
        assert (await service.get_user("web:alone")).merged_into_id is None


@check("L12", Capability.SHARED, facet=LONG_TERM_LOG)
async def two_stores_write_one_fact_and_meet_one_person(subject: Subject) -> None:
    async with service_in(subject) as service:
        another = Memory(MemoryService(subject.another_store(), space=service.space, embedder=None), subject.mode)

        async def work(number: int) -> None:
            mine = (service, another)[number % 2]
            person = await mine.get_or_create_user("web", "ann")
            await mine.count_conversation(person.canonical_id)
            await mine.set_fact("k", number, **_of("ann"))
            await mine.get_fact("k", user_id="web:ann")

        await at_once(subject, [partial(work, number) for number in range(8)])
        for each in (service, another):
            (person,) = await each.list_users()
            (fact,) = await each.get_user_facts("web:ann")
            assert (person.total_conversations, fact.times_confirmed, fact.access_count) == (8, 8, 8)
            said = [version.value for version in await each.history(fact.id)]
            assert sorted([*said, fact.value]) == [*range(8)]
        await _people(service, "bob")
        await service.merge_users("web:ann", "web:bob")
        assert (await another.set_fact("k", "late", **_of("ann"))).user_id == "web:bob"
        assert await another.get_fact("k", user_id="web:bob") == "late"


@check("L12", facet=LONG_TERM_LOG)
async def what_is_written_while_people_are_merged_is_not_lost(subject: Subject) -> None:
    async with service_in(subject) as service:
        names = [f"p{number}" for number in range(4)]
        await _people(service, *names)

        async def write(name: str) -> None:
            for number in range(3):
                await service.set_fact(f"{name} {number}", number, **_of(name))
                await service.set_fact("shared", f"{name} {number}", **_of(name))
                await service.count_conversation(f"web:{name}")

        async def merge(number: int) -> bool:
            try:
                await service.merge_users(f"web:p{number}", f"web:p{(number + 1) % 4}")
            except InvalidEntryError:
                return False
            return True

        calls = [partial(write, name) for name in names] + [partial(merge, number) for number in range(4)]
        merged = await at_once(subject, calls)
        assert merged.count(False) == 1, "the last one would close the circle"
        (root,) = [each for each in await service.list_users() if each.merged_into_id is None]
        assert {each.merged_into_id for each in await service.list_users()} == {None, root.id}
        assert root.total_conversations == 12
        facts = {each.key: each for each in await service.get_user_facts(root.canonical_id)}
        assert facts.keys() == {"shared", *[f"{name} {number}" for name in names for number in range(3)]}
        assert {each.user_id for each in facts.values()} == {root.canonical_id}
        assert facts["shared"].times_confirmed == 12
        said = [each.value for each in await service.history(facts["shared"].id)]
        assert sorted([*said, facts["shared"].value]) == sorted(
            f"{name} {number}" for name in names for number in range(3)
        )
