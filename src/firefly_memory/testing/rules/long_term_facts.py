"""L4 to L6, L12 and L14, long-term memory: confidence, history, lists and search, and many who write facts at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import partial

from firefly_memory.errors import InvalidEntryError, UnknownRecordError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.long_term_services import all_pages, service_in

_CONFIDENCES = [0, 1.0, 0.11, 0.2, 0.41, 0.9999999999999999, 5e-324]


@check("L4", facet=LONG_TERM_LOG)
async def confirming_and_contradicting_are_exact(subject: Subject) -> None:
    async with service_in(subject) as service:
        for number, given in enumerate(_CONFIDENCES):
            with stopped() as clock:
                made = await service.set_fact(f"k{number}", "value", confidence=given)
                expected, times = float(given), {"confirm": 1, "contradict": 0}
                for word in ("confirm", "contradict", "contradict", "confirm"):
                    clock.advance(seconds=1)
                    call = service.confirm_fact if word == "confirm" else service.contradict_fact
                    found = await call(made.id)
                    expected = expected + (1.0 - expected) / 5.0 if word == "confirm" else expected * 0.8
                    times[word] += 1
                    assert (found.confidence.hex(), found.updated_at) == (expected.hex(), clock.moment), given
                    assert (found.times_confirmed, found.times_contradicted) == (times["confirm"], times["contradict"])
                    assert (found.value, found.valid_from, found.id) == ("value", made.valid_from, made.id)
            assert await service.read_fact(made.id) == found
            assert list(await service.history(made.id)) == [], "neither changes the value"
        minus_zero = await service.set_fact("minus zero", 1, confidence=-0.0)
        assert repr(minus_zero.confidence) == repr((await service.read_fact(minus_zero.id)).confidence) == "0.0"
        for call in (service.confirm_fact, service.contradict_fact, service.history):
            error = await subject.refuses(UnknownRecordError, call("unknown"))
            assert "'unknown'" in str(error)


@check("L5", facet=LONG_TERM_LOG)
async def what_a_fact_said_before_is_kept_and_can_be_asked_for_by_an_instant(subject: Subject) -> None:
    start = datetime(2024, 2, 29, 12, tzinfo=UTC)
    with stopped(start) as clock:
        async with service_in(subject) as service:
            made = await service.set_fact("k", "first", confidence=0.5, source_episode_id="e")
            clock.advance(days=1)
            await service.set_fact("k", "first")
            await service.contradict_fact(made.id)
            clock.advance(days=1)
            await service.set_fact("k", "second", source_episode_id="f")
            await service.set_fact("k", "third")
            clock.advance(days=-1)  # a clock that was set back: a value counts from when the one before it did
            last = await service.set_fact("k", None)
            history = list(await service.history(made.id))
            assert [(each.number, each.value, each.confidence, each.source_episode_id) for each in history] == [
                (1, "first", 0.4, "e"),
                (2, "second", 0.4, "f"),
                (3, "third", 0.4, None),
            ]
            day = timedelta(days=1)
            assert [(each.valid_from, each.superseded_at) for each in history] == [
                (start, start + 2 * day),
                (start + 2 * day, start + 2 * day),
                (start + 2 * day, start + 2 * day),
            ]
            assert (last.valid_from, last.updated_at) == (start + 2 * day, start + day)
            for limit in (1, 2, 3):
                assert await all_pages(service.history, made.id, limit=limit) == history
            moment, tiny = start + 2 * day, timedelta(microseconds=1)
            for at, value in (
                (datetime.min.replace(tzinfo=UTC), "nothing"),
                (start - tiny, "nothing"),
                (start, "first"),
                (moment - tiny, "first"),
                (moment, None),
                (moment.astimezone(timezone(timedelta(hours=5, minutes=45))), None),
                (datetime.max.replace(tzinfo=UTC), None),
            ):
                assert await service.get_fact("k", as_of=at, default="nothing") == value, at
            assert (await service.read_fact(made.id)).access_count == 0, "a look at the past counts nothing"
            clock.set(start + day)
            await service.set_fact("k", "of the agent", scope="agent", agent_id="a")
            assert await service.get_fact("k", agent_id="a", as_of=start + day) == "of the agent"
            assert await service.get_fact("k", agent_id="a", as_of=start + day - tiny) == "first", (
                "it was not there yet"
            )
            clock.set(start)
            for value in ("at once", "a moment later"):
                await service.set_fact("twice", value)
            clock.advance(days=1)
            await service.set_fact("twice", "last")
            assert await service.get_fact("twice", as_of=start) == "a moment later"
            assert await service.delete_fact(made.id)
            await subject.refuses(UnknownRecordError, service.history(made.id))
            assert list(await service.history((await service.set_fact("k", "anew")).id)) == []


@check("L6", facet=LONG_TERM_LOG)
async def facts_are_listed_by_confidence_then_the_newest_first_each_once(subject: Subject) -> None:
    ids = {"session_id": "s", "user_id": "web:ann", "agent_id": "a"}
    async with service_in(subject) as service:
        with stopped() as clock:
            made = []
            for number in range(16):
                scope = ("session", "user", "agent", "global")[number % 4]
                confidence = (0.3, 1.0, 0.3, 0.7, 1 / 3)[number % 5]
                made.append(await service.set_fact(f"k{number}", number, scope=scope, confidence=confidence, **ids))
                clock.advance(microseconds=number % 2)
            for scope in ("session", "user", "agent"):
                others = {name: f"another {value}" for name, value in ids.items()}
                await service.set_fact("k", "of somebody else", scope=scope, **others)
        in_order = sorted(made, key=lambda each: (-each.confidence, -each.updated_at.timestamp(), each.id))
        for limit in (3, 16, 17):
            assert await all_pages(service.list_facts, limit=limit, **ids) == in_order
        for named, scopes in (
            ({"agent_id": "a"}, {"global", "agent"}),
            ({"user_id": "web:ann", "session_id": "s"}, {"global", "user", "session"}),
            ({"user_id": "web:nobody"}, {"global"}),
            ({}, {"global"}),
        ):
            expected = [each for each in in_order if each.scope in scopes]
            assert list(await service.list_facts(**named)) == expected
        of_ann = [each for each in in_order if each.scope == "user"]
        for limit in (1, 4, 5):
            assert await all_pages(service.get_user_facts, "web:ann", limit=limit) == of_ann
        assert list(await service.get_user_facts("web:nobody")) == []
        page = await service.list_facts(limit=2)
        assert (page.items, page[1], len(page)) == (tuple(page), expected[1], 2)


@check("L6", facet=LONG_TERM_LOG)
async def pages_go_on_while_facts_change(subject: Subject) -> None:
    async with service_in(subject) as service:
        with stopped() as clock:
            made = []
            for number in range(8):
                made.append(await service.set_fact(f"k{number}", number, confidence=0.5))
                clock.advance(seconds=1)
            page = await service.list_facts(limit=3)
            assert [each.value for each in page] == [7, 6, 5]
            assert await service.delete_facts([made[5].id, made[3].id, made[3].id, "unknown"]) == 2
            await service.confirm_fact(made[2].id)
            await service.set_fact("k1", "newer")
            await service.set_fact("new", "new", confidence=0.1)
            page = await service.list_facts(limit=3, after=page.next)
            assert ([each.value for each in page], page.next) == ([4, 0, "new"], None)
        assert [each.value for each in await service.list_facts()] == [2, "newer", 7, 6, 4, 0, "new"]
        for cursor in ("", "nonsense", "0.5/x", "nan/2024-02-29T00:00:00+00:00/x", "1.0/2024-02-29T00:00:00/x", 5):
            await subject.refuses(InvalidEntryError, service.list_facts(after=cursor))
        for limit in (0, -1, True, "3"):
            await subject.refuses(InvalidEntryError, service.list_facts(limit=limit))
        assert len(await service.list_facts(limit=10**30)) == 7
        assert await service.delete_facts([]) == await service.delete_facts(["unknown", "%"]) == 0
        assert await service.delete_facts([each.id for each in made]) == 6
        assert await service.delete_fact(made[0].id) is False
        assert [each.value for each in await service.list_facts()] == ["new"]


@check("L12", facet=LONG_TERM_LOG)
async def writers_of_one_fact_make_one_and_lose_no_count(subject: Subject) -> None:
    async with service_in(subject) as service:

        async def write(writer: int) -> None:
            for turn in range(3):
                await service.set_fact("k", f"{writer} {turn}", scope="agent", agent_id="a")

        await at_once(subject, [partial(write, writer) for writer in range(5)])
        (fact,) = await service.list_facts(agent_id="a")
        assert (fact.times_confirmed, fact.access_count) == (15, 0)
        said = [each.value for each in await service.history(fact.id)]
        assert [each.number for each in await service.history(fact.id)] == [*range(1, 15)]
        assert sorted([*said, fact.value]) == sorted(f"{writer} {turn}" for writer in range(5) for turn in range(3))
        for writer in range(5):
            mine = [each for each in [*said, fact.value] if each.startswith(f"{writer} ")]
            assert mine == [f"{writer} {turn}" for turn in range(3)], "its values are in its order"

        async def count(number: int) -> None:
            await service.get_fact("k", agent_id="a")
            await (service.confirm_fact if number % 2 else service.contradict_fact)(fact.id)
            await service.set_fact("k", fact.value, scope="agent", agent_id="a")

        await at_once(subject, [partial(count, number) for number in range(8)])
        found = await service.read_fact(fact.id)
        counts = (found.times_confirmed, found.times_contradicted, found.access_count)
        assert counts == (15 + 4 + 8, 4, 8)
        assert len(await service.history(fact.id)) == 14


_SEARCHED = {
    "lesson_local_time_command": "date",
    "local_time_zone": "Australia/Adelaide",
    "get-local-time": {"command": ["date", 5]},
    "time of the local": None,
    "percent": "100% Sure-ly \\ [a-z]",
}

_FOUND = {
    "local time": ["lesson_local_time_command", "local_time_zone", "get-local-time"],
    "LOCAL-time_": ["lesson_local_time_command", "local_time_zone", "get-local-time"],
    "time local": ["time of the local"],
    "adelaide": ["local_time_zone"],
    "zone australia": [],
    "ime": ["lesson_local_time_command", "local_time_zone", "get-local-time", "time of the local"],
    "null": ["time of the local"],
    "100%": ["percent"],
    "1%0": [],
    "sure_ly": ["percent"],
    "ly sure": [],
    "\\": ["percent"],
    "[a-z]": ["percent"],
    "ad.*de": [],
    '", 5': ["get-local-time"],
    "'; DROP TABLE memory_facts; --": [],
    "": [*_SEARCHED],
    " _- ": [*_SEARCHED],
}
"""By query, the keys that it finds."""


@check("L14", facet=LONG_TERM_LOG)
async def fuzzy_finds_the_words_of_a_query_in_their_order(subject: Subject) -> None:
    async with service_in(subject) as service:
        for number, (key, value) in enumerate(_SEARCHED.items()):
            await service.set_fact(key, value, confidence=1.0 - number / 10)
        for query, expected in _FOUND.items():
            hits = await service.search_facts(query)
            assert [each.fact.key for each in hits] == expected, query
            assert [each.score for each in hits] == [each.fact.confidence for each in hits]
            surer = await service.search_facts(query, min_confidence=0.85)
            assert [each.id for each in surer] == [each.id for each in hits if each.score >= 0.85], query
            assert [each.id for each in await all_pages(service.search_facts, query, limit=2)] == [
                each.id for each in hits
            ]
