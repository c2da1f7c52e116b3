"""F6 to F9, feeds: what is deleted, written at once, refused and erased."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from firefly_memory.errors import ConfigurationError, ErasedError, InvalidEntryError
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.identifiers import stored_name
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Memory, Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.erasure import erase_in, readmit_in
from firefly_memory.testing.rules.feed_stores import contents, feeds_in, message_store, said
from firefly_memory.testing.rules.knowledge_chunks import somebody


@check("F6", facet=FEED_LOG)
async def the_oldest_messages_go_first_and_the_numbers_go_on(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location = feeds.location()
        assert await feeds.store.clear(location) == await feeds.store.clear(location, keep_last=3) == 0
        with stopped() as clock:
            for number in range(1, 11):
                await feeds.store.append(location, said(number, agent_key="ab"[number % 2], type="user_message"))
                clock.advance(days=1)
            for bounds, deleted, left in (
                ({"keep_last": 20}, 0, 10),
                ({"keep_last": 9}, 1, 9),
                ({"older_than": "30d"}, 0, 9),
                ({"older_than": "8d"}, 1, 8),
                ({"older_than": "1d", "keep_last": 6}, 2, 6),
                ({"older_than": "5d", "keep_last": 0}, 1, 5),
            ):
                assert await feeds.store.clear(location, **bounds) == deleted
                assert await feeds.numbers(location) == [*range(11 - left, 11)]
        assert contents(await feeds.store.get_conversation_messages(location)) == [6, 7, 8, 9, 10]
        assert contents(await feeds.store.get_team_messages(location, ["a", "b"], 3)) == [8, 9, 10]
        assert contents(await feeds.store.get_agent_messages(location, "a")) == [6, 8, 10]
        assert await feeds.numbers(location, 2, 2) == [6, 7]
        assert await feeds.store.clear(location) == 5
        assert await feeds.numbers(location) == []
        assert await feeds.store.append_many(location, [said(11), said(12, agent_key="a")]) == [11, 12]
        assert contents(await feeds.store.get_agent_messages(location, "a")) == [12]
        for wrong in ({"keep_last": -1}, {"keep_last": True}, {"keep_last": "3"}):
            await subject.refuses(InvalidEntryError, feeds.store.clear(location, **wrong))
        for wrong in ({"older_than": "soon"}, {"older_than": -1}):
            await subject.refuses(ConfigurationError, feeds.store.clear(location, **wrong))
        assert await feeds.numbers(location) == [11, 12]


@check("F6", facet=FEED_LOG)
async def a_deleted_location_begins_anew(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location, name = feeds.location(), ""
        name = stored_name("location", location)
        log = subject.view.log(FEED_LOG)
        assert await log.delete(name) is None
        await feeds.store.append_many(location, [said(1, agent_key="a"), said(2, agent_key="a")], somebody())
        assert await log.delete(name, 1) is None, "it has a newer message than number 1"
        assert await log.delete(name, 2) == 2
        assert await feeds.store.get_agent_messages(location, "a") == []
        assert await log.feed(name) is None
        assert await feeds.store.append(location, said(1, agent_key="a"), somebody()) == 1
        assert contents(await feeds.store.get_agent_messages(location, "a")) == [1]


@check("F7", facet=FEED_LOG)
async def writers_at_once_lose_nothing_and_readers_see_one_order(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location, other = feeds.location("one"), feeds.location("other")
        written: dict[int, str] = {}

        async def write(writer: int) -> None:
            for turn in range(4):
                messages = [said(f"{writer} {turn} {place}", agent_key=f"agent {writer}") for place in range(turn % 3)]
                numbers = await feeds.store.append_many(location, messages)
                assert numbers == [*range(numbers[0], numbers[0] + len(messages))] if numbers else not messages
                written.update(zip(numbers, contents(messages), strict=True))
                number = await feeds.store.append(location, said(f"{writer} {turn}", agent_key=f"agent {writer}"))
                written[number] = f"{writer} {turn}"
                await feeds.store.append(other, said(writer))

        await at_once(subject, [partial(write, writer) for writer in range(8)])
        items = await feeds.store.get_items(location)
        assert [each.number for each in items] == [*range(1, 8 * 7 + 1)]
        assert {each.number: each.message["content"] for each in items} == written
        for writer in range(8):
            mine = [each.message for each in items if each.message["agent_key"] == f"agent {writer}"]
            assert await feeds.store.get_agent_messages(location, f"agent {writer}") == mine
            assert [each for each in contents(mine) if each.count(" ") == 1] == [f"{writer} {n}" for n in range(4)]
        assert await feeds.numbers(other) == [*range(1, 33)]


_BAD_MESSAGES: list[Any] = [
    None, 5, "text", ["type", "task"], {"value": object()}, {"value": float("nan")}, {"value": [1, {"in": object()}]},
    {"agent_key": ""}, {"agent_key": 5}, {"agent_key": "x" * 513}, {"agent_key": ["a"]},
]  # fmt: skip


@check("F8", facet=FEED_LOG)
async def a_bad_message_among_good_ones_appends_nothing(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location = feeds.location()
        await feeds.store.append(location, said(1))
        for bad in _BAD_MESSAGES:
            error = await subject.refuses(InvalidEntryError, feeds.store.append_many(location, [said(2), bad, said(3)]))
            assert "messages[1]" in str(error)
            await subject.refuses(InvalidEntryError, feeds.store.append(location, bad))
        await subject.refuses(ZeroDivisionError, feeds.store.append_many(location, _broken_off()))
        for wrong in ("", "x" * 513, 5, None):
            await subject.refuses(InvalidEntryError, feeds.store.append(wrong, said(2)))
            await subject.refuses(InvalidEntryError, feeds.store.get_items(wrong))
        assert await feeds.numbers(location) == [1]
        assert await feeds.store.append(location, said(2)) == 2


def _broken_off() -> Iterator[dict[str, Any]]:
    yield said(2)
    raise ZeroDivisionError


@check("F8", facet=FEED_LOG)
async def one_bad_message_of_many_writers_fails_alone(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        location = feeds.location()

        async def append(number: int) -> bool:
            try:
                await feeds.store.append(location, said(object() if number % 7 == 3 else number))
            except InvalidEntryError:
                return False
            return True

        appended = await at_once(subject, [partial(append, number) for number in range(14)])
        assert appended == [number % 7 != 3 for number in range(14)]
        assert sorted(each.message["content"] for each in await feeds.store.get_items(location)) == [
            number for number in range(14) if number % 7 != 3
        ]
        assert await feeds.numbers(location) == [*range(1, 13)]


@check("F9", facet=FEED_LOG)
async def locations_of_an_erased_person_are_deleted_and_new_messages_refused(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        ann, bob = f"{somebody()}\x00\ud800", somebody()
        of_ann, other, of_bob, nobodys, new = (feeds.location(name) for name in ("a", "o", "b", "n", "new"))
        await feeds.store.append_many(of_ann, [said(1, agent_key="a"), said(2)], owner=ann)
        await feeds.store.append(other, said(1), ann)
        await feeds.store.append(of_bob, said(1), bob)
        await feeds.store.append(nobodys, said(1))
        counted = await erase_in(subject, ann, dry_run=True)
        assert await feeds.numbers(of_ann) == [1, 2], "a dry run deletes nothing"
        receipt = await erase_in(subject, ann)
        for each in (counted, receipt):
            assert (each.rows["feeds"], each.rows["feed-messages"]) == (2, 3)
        assert await feeds.numbers(of_ann) == await feeds.numbers(other) == []
        assert await feeds.store.get_agent_messages(of_ann, "a") == []
        for location, owner in ((of_ann, None), (of_ann, ann), (of_ann, bob), (other, None), (new, ann)):
            for messages in ([said(1)], [said(1), said(2)]):
                error = await subject.refuses(ErasedError, feeds.store.append_many(location, messages, owner))
                assert ann not in str(error), "the error names nobody"
        assert [await feeds.numbers(each) for each in (of_ann, other, of_bob, nobodys, new)] == [[], [], [1], [1], []]
        assert await feeds.store.append_many(of_bob, [said(2)], bob) == await feeds.store.append_many(
            nobodys, [said(2)]
        )
        assert await readmit_in(subject, ann)
        assert await feeds.store.append(of_ann, said(1), ann) == await feeds.store.append(new, said(1), ann) == 1


@check("F9", Capability.SHARED, facet=FEED_LOG)
async def a_store_that_knew_the_location_is_refused_as_well(subject: Subject) -> None:
    async with feeds_in(subject) as feeds:
        ann, location, nobodys = somebody(), feeds.location(), feeds.location("n")
        another = Memory(message_store(subject.another_store()), subject.mode)
        assert await another.append(location, said(1), ann) == await another.append(nobodys, said(1)) == 1
        await erase_in(subject, ann)

        async def append(place: str, owner: str | None) -> bool:
            try:
                await another.append(place, said(2), owner)
            except ErasedError:
                return False
            return True

        writers = [partial(append, *each) for each in ((location, None), (location, ann), (nobodys, None))] * 3
        assert await at_once(subject, writers) == [False, False, True] * 3
        assert await feeds.numbers(location) == []
        assert await feeds.numbers(nobodys) == [1, 2, 3, 4]
        await readmit_in(subject, ann)
