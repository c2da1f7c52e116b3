"""F1 to F10, feeds.

F1, the same value back: a message comes back as it was appended, whatever JSON it has, with a type or without one.
F2, numbers: the first message of a location is 1, and each has the next number, whatever its timestamp says.
F3, kinds: each message is in the conversation, with its agent, with all teams of that agent, and with what is for
every agent, as its ``type``, ``agent_key`` and ``is_global`` say.
F4, limits: ``limit`` gives the newest messages, oldest first; all for ``None``, none for 0.
F5, isolation: a location and an agent have only what is theirs, letter by letter. A location has one owner.
F6, deletion: the oldest messages go first, and the numbers go on, unless the whole location is deleted.
F7, concurrency: writers at once lose nothing, and every reader sees one order.
F8, all or nothing: a call with one bad message appends nothing.
F9, erasure: the locations of an erased person are deleted, and new messages are refused.
F10, subscribers: each gets every message once and in order.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.feeds import constants
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.identifiers import stored_name
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.feed_stores import contents, feeds_in, said
from firefly_memory.testing.rules.knowledge_chunks import NAMES, TEXTS, somebody
from firefly_memory.testing.rules.values import VALUES, same

_WITHOUT_A_KNOWN_TYPE: list[dict[str, Any]] = [
    {}, {"type": "note", "content": 1}, {"type": None}, {"type": ["user_message"]}, {"type": {"a": 1}}, {"type": ""},
    {"agent_key": None}, {"is_global": 1}, {"is_global": None}, {"": 0, "~": 1, "$set": 2, "a.b": 3, "\x00": 4, "\ud800": 5},
    {"location": "x", "number": 7, "created_at": "y", "_id": 3, "owner": 5, "message": {"message": {}}},
]  # fmt: skip


@check("F1", facet=FEED_LOG)
async def every_message_comes_back_the_same(subject: Subject) -> None:
    given = [{"value": value} for value in VALUES if not _is_too_deep(value)]
    given += [{"type": "task", "content": text, "agent_key": text[:500], text[:500]: text} for text in TEXTS]
    given += _WITHOUT_A_KNOWN_TYPE
    async with feeds_in(subject) as feeds:
        location = feeds.location("values \x00\ud800")
        with stopped(datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC)) as clock:
            await feeds.store.append_many(location, given)
        found = await feeds.store.get_items(location)
        assert [each.created_at for each in found] == [clock.moment] * len(given)
        for message, item in zip(given, found, strict=True):
            assert same(item.message, message), ascii(message)[:80]
        for text in TEXTS[:8]:
            (message,) = await feeds.store.get_agent_messages(location, text)
            assert same(message["content"], text)


def _is_too_deep(value: Any) -> bool:
    """Whether it is as deep as a value may be, and so too deep for a value in a message."""
    depth = 0
    while isinstance(value, (dict, list)) and value:
        value = next(iter(value.values() if isinstance(value, dict) else value))
        depth += 1
    return depth > 498


@check("F1", facet=FEED_LOG)
async def a_message_is_the_callers_to_change(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location, message = feeds.location(), said(1, agent_key="a", more=[1, {"in": 2}])
        await feeds.store.append(location, message)
        message["more"][1]["in"] = message["content"] = "changed"
        for _ in range(2):
            (found,) = await feeds.store.get_agent_messages(location, "a")
            assert found == said(1, agent_key="a", more=[1, {"in": 2}])
            found["more"].append("changed")
            found["content"] = "changed"


@check("F2", facet=FEED_LOG)
async def numbers_have_no_gap_and_are_the_order_whatever_the_timestamps_say(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location, other = feeds.location("a"), feeds.location("b")
        assert await feeds.store.append_many(location, []) == await feeds.numbers(location) == []
        with stopped() as clock:
            for number in range(1, 5):
                clock.advance(seconds=-1)
                message = said(number, agent_key="a", timestamp=f"20{30 - number}-01-01T00:00:00Z")
                assert await feeds.store.append(location, message) == number
        assert await feeds.store.append_many(location, (said(n, agent_key="a") for n in (5, 6, 7))) == [5, 6, 7]
        assert await feeds.store.append_many(other, [said(1)]) == [1]
        assert await feeds.store.append(location, said(8, agent_key="a")) == 8
        assert contents(await feeds.store.get_agent_messages(location, "a")) == [*range(1, 9)]
        many = await feeds.store.append_many(location, [said(n) for n in range(9, 709)])
        assert many == [*range(9, 709)]
        items = await feeds.store.get_items(location)
        assert [each.number for each in items] == [each.message["content"] for each in items] == [*range(1, 709)]
        for after, limit, expected in ((0, 3, [1, 2, 3]), (3, 2, [4, 5]), (707, None, [708]), (708, 5, [])):
            assert await feeds.numbers(location, after, limit) == expected
        assert await feeds.numbers(location, 2**62) == await feeds.numbers(location, 0, 0) == []
        for wrong in (-1, True, "1", 1.0, None):
            await subject.refuses(InvalidEntryError, feeds.store.get_items(location, wrong))


@check("F3", facet=FEED_LOG)
async def a_message_is_where_its_type_its_agent_and_its_mark_put_it(subject: Subject) -> None:
    types = sorted(value for name, value in vars(constants).items() if name.isupper() and isinstance(value, str))
    kinds = [*types, "of somebody's own", None]
    given = [
        said(number, **({} if kind is None else {"type": kind}), **agent, **mark)
        for number, (kind, agent, mark) in enumerate(
            (kind, agent, mark)
            for kind in kinds
            for agent in ({}, {"agent_key": "a"}, {"agent_key": "b"})
            for mark in ({}, {"is_global": True}, {"is_global": False}, {"is_global": "true"})
        )
    ]
    async with feeds_in(subject) as feeds:
        location = feeds.location()
        await feeds.store.append_many(location, given)
        conversation = [each for each in given if each.get("type") in ("user_message", "assistant_message")]
        is_global = [
            each for each in given if each.get("is_global") is True or each.get("type") == "global_observation"
        ]
        of_a, of_b = ([each for each in given if each.get("agent_key") == key] for key in "ab")
        of_both = [each for each in given if "agent_key" in each]
        assert len(types) == 12
        assert await feeds.store.get_conversation_messages(location) == conversation
        assert await feeds.store.get_global_messages(location) == is_global
        assert await feeds.store.get_agent_messages(location, "a") == of_a
        for team, expected in (
            (["b", "a", "b"], of_both),
            (["b", "nobody"], of_b),
            (("a",), of_a),
            (["c"], []),
            ([], []),
        ):
            assert await feeds.store.get_team_messages(location, team) == expected
        a_large_team = [f"agent {number}" for number in range(1_000)]
        assert await feeds.store.get_team_messages(location, [*a_large_team, "a"]) == of_a
        for wrong in ("a", ["a", ""], ["a", 5]):
            await subject.refuses(InvalidEntryError, feeds.store.get_team_messages(location, wrong))


@check("F4", facet=FEED_LOG)
async def a_limit_gives_the_newest_messages_oldest_first(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location = feeds.location()
        kinds: list[dict[str, Any]] = [
            {"type": "user_message"}, {"agent_key": "a"}, {"agent_key": "b"}, {"is_global": True}, {"agent_key": "c"}
        ]  # fmt: skip
        await feeds.store.append_many(location, [said(number, **kinds[number % 5]) for number in range(50)])
        reads = [
            (feeds.store.get_conversation_messages, (), [*range(0, 50, 5)]),
            (feeds.store.get_agent_messages, ("a",), [*range(1, 50, 5)]),
            (feeds.store.get_global_messages, (), [*range(3, 50, 5)]),
            (feeds.store.get_team_messages, (["c", "x", "a"],), sorted([*range(1, 50, 5), *range(4, 50, 5)])),
        ]
        for read, arguments, expected in reads:
            for limit in (None, 0, 1, 3, 10, 11, 10**30):
                newest = expected if limit is None else expected[max(len(expected) - limit, 0) :]
                assert contents(await read(location, *arguments, limit)) == newest
            assert await read(feeds.location("unknown"), *arguments) == []
            for wrong in (-1, True, "3", 1.5):
                await subject.refuses(InvalidEntryError, read(location, *arguments, wrong))


@check("F5", facet=FEED_LOG)
async def locations_that_look_alike_have_only_their_own_messages(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        locations = {name: feeds.location(name) for name in NAMES}
        for name, location in locations.items():
            message = {"type": "user_message", "agent_key": "a", "is_global": True, "content": name}
            assert await feeds.store.append(location, message) == 1, ascii(name)
        for name, location in locations.items():
            assert contents(await feeds.store.get_team_messages(location, ["a", "b"])) == [name], ascii(name)
        for name in NAMES[::9]:
            assert await feeds.store.clear(locations[name]) == 1
        for number, name in enumerate(NAMES):
            if number % 9 in (0, 1, 8):
                left = contents(await feeds.store.get_global_messages(locations[name]))
                assert left == ([name] if number % 9 else []), ascii(name)


@check("F5", facet=FEED_LOG)
async def agents_that_look_alike_have_only_their_own_messages(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location = feeds.location()
        await feeds.store.append_many(location, [said(n, agent_key=name) for n, name in enumerate(NAMES)])
        for number, name in enumerate(NAMES):
            assert contents(await feeds.store.get_agent_messages(location, name)) == [number], ascii(name)
        for one, other in pairwise(range(0, len(NAMES), 3)):
            assert contents(await feeds.store.get_team_messages(location, [NAMES[other], NAMES[one]])) == [one, other]


@check("F5", facet=FEED_LOG)
async def a_location_has_the_owner_whom_its_first_message_names(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        ann, of_ann, of_nobody = f"{somebody()}\x00\ud800", feeds.location("a"), feeds.location("n")
        await feeds.store.append(of_ann, said(1), ann)
        await feeds.store.append(of_nobody, said(1))
        for location in (of_ann, of_nobody):
            for messages in ([said(2)], [said(2), said(3)]):
                await subject.refuses(ConflictError, feeds.store.append_many(location, messages, somebody()))
        await subject.refuses(ConflictError, feeds.store.append(of_nobody, said(2), ann))
        assert await feeds.store.append(of_ann, said(2), owner=ann) == 2
        assert await feeds.store.append(of_ann, said(3)) == 3
        assert await feeds.numbers(of_nobody) == [1]
        heads = [await subject.view.log(FEED_LOG).feed(stored_name("location", name)) for name in (of_ann, of_nobody)]
        assert [None if head is None else (head.newest, head.owner is None) for head in heads] == [
            (3, False),
            (1, True),
        ]
        for wrong in ("", 5, "x" * 513):
            await subject.refuses(InvalidEntryError, feeds.store.append(of_ann, said(4), wrong))
