"""L1 to L15, long-term memory.

L1, the same value back: a fact comes back as it was stored, whatever JSON it has, with each of its names.
L2, once: no two facts of one scope have the same key. A new value confirms the fact that is there.
L3, lookup: the session's fact comes before the user's, this before the agent's, and this before the global one.
L4, confidence: confirming and contradicting change it as the rule says, to the last bit.
L5, history: what a fact said before is kept, and can be asked for by an instant.
L6, lists: the facts of the largest confidence first, of equal ones the newest first, each once, page by page.
L7, people: an id of a channel is one person.
L8, merging: two people become one, with all of their facts and counts.
L9, preferences: a person's preferences are facts, and every view of them is the same.
L10, isolation: a space and an id have only what is theirs, letter by letter.
L11, all or nothing: what is refused changes nothing.
L12, concurrency: writers at once lose nothing.
L13, erasure: facts, their history and the records of an erased person are deleted, and new ones are refused.
L14, search: ``fuzzy`` finds the words of a query in their order, in the key or in the value.
L15, any order: calls in random order leave what they leave in dicts.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.types import SCOPES, MemoryFact
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.knowledge_chunks import NAMES
from firefly_memory.testing.rules.long_term_services import LONGEST, all_pages, service_in
from firefly_memory.testing.rules.values import VALUES, same

_START = datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC)


@check("L1", facet=LONG_TERM_LOG)
async def every_json_value_of_a_fact_comes_back_the_same(subject: Subject) -> None:
    given = {f"key {number}": value for number, value in enumerate(VALUES)}
    async with service_in(subject) as service:
        await service.get_or_create_user("web", "ann")
        assert await service.update_preferences("web:ann", given)
        found = {each.key: each.value for each in await all_pages(service.get_user_facts, "web:ann", limit=70)}
        assert found.keys() == given.keys()
        for key, value in given.items():
            assert same(found[key], value), f"{key} came back as another value"
        for key in list(given)[::9]:
            assert same(await service.get_fact(key, user_id="web:ann"), given[key])


@check("L1", facet=LONG_TERM_LOG)
async def every_field_of_a_fact_comes_back(subject: Subject) -> None:
    async with service_in(subject) as service:
        for number, name in enumerate([*NAMES[::2], *LONGEST]):
            ids = {"session_id": name, "user_id": name, "agent_id": name}
            scope = SCOPES[number % 3]
            with stopped(_START) as clock:
                made = await service.set_fact(
                    name, [name], fact_type=name, scope=scope, confidence=number / 40, source_episode_id=name, **ids
                )
                assert made == MemoryFact(
                    id=made.id,
                    key=name,
                    value=[name],
                    fact_type=name,
                    scope=scope,
                    session_id=name if scope == "session" else None,
                    user_id=name,
                    agent_id=name if scope == "agent" else None,
                    confidence=number / 40,
                    source_episode_id=name,
                    valid_from=clock.moment,
                    created_at=clock.moment,
                    updated_at=clock.moment,
                ), ascii(name)
            assert await service.find_fact(name, scope, **ids) == made, ascii(name)
            if number % 6 == 0:
                assert await service.read_fact(made.id) == made


@check("L2", facet=LONG_TERM_LOG)
async def a_new_value_confirms_the_fact_that_is_there(subject: Subject) -> None:
    async with service_in(subject) as service:
        with stopped(_START) as clock:
            first = await service.set_fact("k", 1, confidence=0.25, fact_type="t", source_episode_id="e")
            assert (first.times_confirmed, first.times_contradicted, first.access_count) == (1, 0, 0)
            expected = first
            steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
                ({"value": 1}, {"times_confirmed": 2}),
                ({"value": 2}, {"value": 2, "times_confirmed": 3, "source_episode_id": None}),
                ({"value": 2, "source_episode_id": "f"}, {"times_confirmed": 4, "source_episode_id": "f"}),
                ({"value": 2, "confidence": 1}, {"times_confirmed": 5, "confidence": 1.0}),
                ({"value": 2, "fact_type": "u"}, {"times_confirmed": 6, "fact_type": "u"}),
                ({"value": 2.0}, {"value": 2.0, "times_confirmed": 7, "source_episode_id": None}),
                ({"value": True}, {"value": True, "times_confirmed": 8}),
                (
                    {"value": 3, "scope": "global", "user_id": "ann"},
                    {"value": 3, "times_confirmed": 9, "user_id": "ann"},
                ),
                ({"value": 3, "scope": "global", "user_id": "bob"}, {"times_confirmed": 10}),
                ({"value": 4}, {"value": 4, "times_confirmed": 11, "user_id": None}),
            ]
            for options, changes in steps:
                clock.advance(days=1)
                found = await service.set_fact("k", **options)
                expected = replace(expected, updated_at=clock.moment, **changes)
                if "value" in changes:
                    expected = replace(expected, valid_from=clock.moment)
                assert (found, type(found.value)) == (expected, type(expected.value)), options
            clock.advance(days=1)
            given = {"confidence": 0.5, "fact_type": "v", "source_episode_id": "x", "scope": "global", "user_id": "bob"}
            assert await service.set_fact("k", "other", overwrite=False, **given) == expected, "left as it is"
            assert await service.find_fact("k", "global") == await service.read_fact(first.id) == expected
            new = await service.set_fact("new", None, overwrite=False)
            assert (new.confidence, new.fact_type, new.value) == (1.0, "world_knowledge", None)
            assert await service.delete_fact(first.id)
            again = await service.set_fact("k", 5)
            assert (again.id != first.id, again.times_confirmed, again.confidence) == (True, 1, 1.0)


@check("L2", facet=LONG_TERM_LOG)
async def a_value_that_was_stored_or_read_is_the_callers_to_change(subject: Subject) -> None:
    async with service_in(subject) as service:
        value = {"in": [1]}
        made = await service.set_fact("k", value)
        value["in"].append(2)
        made.value["in"].append(3)
        for _ in range(2):
            found = await service.get_fact("k")
            assert found == {"in": [1]}
            found["in"].append(4)


_IDS = {"session_id": "s", "user_id": "web:ann", "agent_id": "a"}
_FALSY: list[Any] = [False, 0, "", [], {}, None, 0.0]


@check("L3", facet=LONG_TERM_LOG)
async def the_most_specific_scope_wins_with_falsy_values_as_well(subject: Subject) -> None:
    missing = object()
    async with service_in(subject) as service:
        for number, value in enumerate(_FALSY):
            winner = number % 3
            for place, scope in enumerate(SCOPES):
                if place >= winner:
                    await service.set_fact(f"k{number}", value if place == winner else scope, scope=scope, **_IDS)
            found = await service.get_fact(f"k{number}", default=missing, **_IDS)
            assert same(found, value), (value, SCOPES[winner])
        assert await service.get_fact("unknown", default=missing, **_IDS) is missing
        assert await service.get_fact("unknown", **_IDS) is None


@check("L3", facet=LONG_TERM_LOG)
async def a_lookup_takes_the_scopes_of_the_given_ids_and_counts_the_winner_only(subject: Subject) -> None:
    async with service_in(subject) as service:
        made = {scope: await service.set_fact("k", scope, scope=scope, **_IDS) for scope in SCOPES}
        counts: dict[str, int] = dict.fromkeys(SCOPES, 0)
        last: dict[str, datetime | None] = dict.fromkeys(SCOPES)
        with stopped() as clock:
            for ids, winner in (
                ({}, "global"),
                (_IDS, "session"),
                ({"user_id": "web:ann"}, "user"),
                ({"user_id": "web:ann", "agent_id": "another agent"}, "user"),
                ({"user_id": "web:ann", "agent_id": "a"}, "user"),
                ({"agent_id": "a"}, "agent"),
                ({"agent_id": "a", "user_id": "web:bob"}, "agent"),
                ({"session_id": "s"}, "session"),
                ({"session_id": "t", "user_id": "a", "agent_id": "s"}, "global"),
            ):
                clock.advance(seconds=1)
                assert await service.get_fact("k", **ids) == winner, ids
                counts[winner] += 1
                last[winner] = clock.moment
        for scope in SCOPES:
            found = await service.find_fact("k", scope, **_IDS)
            assert found == await service.find_fact("k", scope, **_IDS), "find_fact() counts nothing"
            assert found.access_count == counts[scope]
            assert found.last_accessed == last[scope]
            assert replace(found, access_count=0, last_accessed=None) == made[scope], "nothing else has changed"
        assert await service.find_fact("k", "agent", **(_IDS | {"agent_id": "s"})) is None
        for scope in SCOPES:
            assert await service.get_fact("k", **_IDS) == scope
            assert await service.delete_fact(made[scope].id)
        assert await service.get_fact("k", **_IDS) is None
