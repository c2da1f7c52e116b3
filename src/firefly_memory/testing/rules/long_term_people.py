"""L7, L9 and L12, long-term memory: people, and what is known of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from firefly_memory.errors import InvalidEntryError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.types import MemoryUser
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.knowledge_chunks import NAMES
from firefly_memory.testing.rules.long_term_services import LONGEST, all_pages, service_in
from firefly_memory.testing.rules.values import same

_START = datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC)


@check("L7", facet=LONG_TERM_LOG)
async def an_id_of_a_channel_is_one_person(subject: Subject) -> None:
    async with service_in(subject) as service:
        with stopped(_START) as clock:
            ann = await service.get_or_create_user("telegram", "1:2")
            assert ann == MemoryUser(id=ann.id, canonical_id="telegram:1:2", telegram_id="1:2", first_seen=_START)
            clock.advance(days=1)
            bob = await service.get_or_create_user("email", "b@x.org", "Bob")
            assert bob == MemoryUser(
                id=bob.id, canonical_id="email:b@x.org", email="b@x.org", display_name="Bob", first_seen=clock.moment
            )
            others = [await service.get_or_create_user(*each) for each in (("Telegram", "1:2"), ("web", "B@x.org"))]
            assert [(each.telegram_id, each.email) for each in others] == [(None, None)] * 2
            assert len({ann.id, bob.id, *[each.id for each in others]}) == 4
            clock.advance(days=1)
            assert await service.get_or_create_user("telegram", "1:2") == await service.get_user("telegram:1:2") == ann
            assert await service.get_or_create_user("telegram", "1:2", "") == ann, "no text is no name"
            assert await service.get_or_create_user("telegram", "1:2", "Ann") == replace(ann, display_name="Ann")
            for name in ("Another", "", None):
                assert (await service.get_or_create_user("telegram", "1:2", name)).display_name == "Ann"
            for number in (1, 2):
                clock.advance(days=1)
                assert await service.count_conversation("telegram:1:2")
                assert await service.get_user("telegram:1:2") == replace(
                    ann, display_name="Ann", total_conversations=number, last_conversation_at=clock.moment
                )
        for stranger in ("telegram:1", "telegram:1:2 ", "TELEGRAM:1:2", "%"):
            assert await service.get_user(stranger) is None
            assert await service.count_conversation(stranger) is False
            assert await service.update_preferences(stranger, {"k": 1}) is False
            assert list(await service.get_user_facts(stranger)) == []
        assert len(await service.list_users()) == 4


@check("L7", facet=LONG_TERM_LOG)
async def people_are_listed_in_the_order_in_which_they_were_first_seen(subject: Subject) -> None:
    async with service_in(subject) as service:
        with stopped(_START) as clock:
            made = []
            for number, name in enumerate([*NAMES[::2], *[each[:320] for each in LONGEST]]):
                made.append(await service.get_or_create_user("email" if number % 2 else "web", name, name))
                assert (made[-1].display_name, made[-1].email) == (name, name if number % 2 else None), ascii(name)
                clock.advance(microseconds=number % 3)
            for each in made[::5]:
                assert await service.get_user(each.canonical_id) == each
            in_order = sorted(made, key=lambda each: (each.first_seen, each.id))
            for limit in (4, len(made), len(made) + 1):
                assert await all_pages(service.list_users, limit=limit) == in_order
            page = await service.list_users(3)
            clock.advance(days=1)
            await service.get_or_create_user("web", "new")
            found = await service.list_users(after=page.next)
            assert [each.canonical_id for each in found] == [each.canonical_id for each in in_order[3:]] + ["web:new"]
        for cursor in ("", "nonsense", "2024-02-29T00:00:00/x", 5):
            await subject.refuses(InvalidEntryError, service.list_users(after=cursor))
        for wrong in (0, -1, True, "3"):
            await subject.refuses(InvalidEntryError, service.list_users(wrong))


@check("L9", facet=LONG_TERM_LOG)
async def preferences_are_facts_and_every_view_of_them_is_the_same(subject: Subject) -> None:
    async with service_in(subject) as service:
        await service.set_fact("k", 1, scope="user", user_id="web:new", fact_type="user_preference")
        stranger = await service.get_or_create_user("web", "new")
        assert stranger.preferences_cache == {"k": 1}, "somebody has stored it before the first meeting"
        await service.get_or_create_user("web", "ann")

        async def every_view(expected: dict[str, Any]) -> None:
            (listed,) = [each for each in await service.list_users() if each.canonical_id == "web:ann"]
            views = [
                (await service.get_user("web:ann")).preferences_cache,
                (await service.get_or_create_user("web", "ann")).preferences_cache,
                listed.preferences_cache,
                (await service.get_user_context("web:ann"))["preferences"],
            ]
            for view in views:
                assert same(dict(sorted(view.items())), expected), view

        await every_view({})
        assert await service.update_preferences("web:ann", {"tone": "short", "loud": False})
        assert await service.update_preferences("web:ann", {})
        await every_view({"loud": False, "tone": "short"})
        assert await service.update_preferences("web:ann", {"tone": None})
        tone = await service.find_fact("tone", "user", user_id="web:ann")
        assert (tone.value, tone.fact_type, tone.times_confirmed) == (None, "user_preference", 2)
        await service.set_fact("size", 3, scope="user", user_id="web:ann", fact_type="user_preference")
        await service.set_fact("city", "Adelaide", scope="user", user_id="web:ann")
        await service.set_fact("size", 4, fact_type="user_preference")
        await service.set_fact(
            "size", 5, scope="session", session_id="s", user_id="web:ann", fact_type="user_preference"
        )
        await every_view({"loud": False, "size": 3, "tone": None})
        await service.set_fact("size", 3, scope="user", user_id="web:ann", fact_type="correction")
        assert await service.delete_fact(tone.id)
        await every_view({"loud": False})
        assert await service.update_preferences("web:ann", {"city": "Perth"}), "the fact becomes a preference"
        await every_view({"city": "Perth", "loud": False})
        for bad in (["k"], None, "k", {"": 1}, {"k": object()}, {"good": 1, 5: 2}, {"good": 1, "k" * 513: 2}):
            await subject.refuses(InvalidEntryError, service.update_preferences("web:ann", bad))
        await every_view({"city": "Perth", "loud": False})
        many = {f"k{number:03}": number for number in range(120)}
        assert await service.update_preferences("web:ann", many)
        await every_view({"city": "Perth", **many, "loud": False})
        assert len((await service.get_user_context("web:ann"))["facts"]) == 100


@check("L9", facet=LONG_TERM_LOG)
async def the_context_says_what_is_known_of_a_person(subject: Subject) -> None:
    async with service_in(subject) as service:
        for agent in (None, "a"):
            stranger = await service.get_user_context("web:nobody", agent)
            assert stranger == {"user_id": "web:nobody", "is_new": True, "facts": [], "history": []}
        with stopped(_START) as clock:
            await service.get_or_create_user("web", "ann", "Ann")
            clock.advance(days=1)
            await service.count_conversation("web:ann")
        await service.set_fact("city", ["Perth"], scope="user", user_id="web:ann", confidence=0.4)
        await service.set_fact("tone", "short", scope="user", user_id="web:ann", fact_type="user_preference")
        await service.set_fact("of everybody", 1)
        await service.set_fact("of bob", 1, scope="user", user_id="web:bob")
        await service.set_fact("of a session", 1, scope="session", session_id="s", user_id="web:ann")
        context = await service.get_user_context("web:ann")
        assert context == {
            "user_id": "web:ann",
            "is_new": False,
            "display_name": "Ann",
            "preferences": {"tone": "short"},
            "facts": [
                {"key": "tone", "value": "short", "type": "user_preference"},
                {"key": "city", "value": ["Perth"], "type": "world_knowledge"},
            ],
            "history": [],
            "total_conversations": 1,
            "last_conversation_at": (_START + timedelta(days=1)).isoformat(),
            "first_seen": _START.isoformat(),
        }
        assert json.loads(json.dumps(context)) == context == await service.get_user_context("web:ann", "agent")
        new = await service.get_or_create_user("web", "new")
        context = await service.get_user_context(new.canonical_id)
        assert (context["is_new"], context["last_conversation_at"], context["display_name"]) == (False, None, None)


@check("L12", facet=LONG_TERM_LOG)
async def callers_who_meet_make_one_person_and_lose_no_conversation(subject: Subject) -> None:
    async with service_in(subject) as service:

        async def meet(number: int) -> str:
            person = await service.get_or_create_user("telegram", "1", f"name {number}" if number % 2 else None)
            assert await service.count_conversation("telegram:1")
            return str(person.id)

        ids = await at_once(subject, [partial(meet, number) for number in range(20)])
        (person,) = await service.list_users()
        assert set(ids) == {person.id}
        assert person.total_conversations == 20
        assert person.display_name in {f"name {number}" for number in range(1, 20, 2)}
