"""K1 to K9, knowledge.

K1, the same value back: a chunk comes back as it was added, with its source, for every text and every JSON value.
K2, once: what is the same in all of its fields is one chunk, and the first one stays as it is.
K3, all or nothing: a call with one bad item stores nothing.
K4, lists and counts: oldest first, in the order given, each chunk once, page by page.
K5, isolation: a collection, a space and an owner see only what is theirs. Names are compared letter by letter.
K6, deletion: with a chunk go its words and its vectors.
K7, search: any word counts, neighbours of one group lend, and ``fuzzy`` is a look at every text.
K8, no syntax: nothing in a question means anything else than itself.
K9, erasure: chunks of an erased person are deleted, and new ones are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import stored_name
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.rows import LARGEST_POSITION, LONGEST_TEXT
from firefly_memory.knowledge.types import Chunk
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.knowledge_chunks import (
    INSTANT,
    TEXTS,
    chunks_in,
    found_in,
    listed,
    somebody,
    texts_in,
)
from firefly_memory.testing.rules.values import VALUES, same


@check("K1", facet=KNOWLEDGE_LOG)
async def every_text_comes_back_the_same(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        ids = await knowledge.add("texts", TEXTS)
        found = await listed(knowledge, "texts")
        assert [each.text for each in found] == TEXTS
        assert [each.id for each in found] == ids
        for text, name in zip(TEXTS, ids, strict=True):
            (hit,) = [each for each in await knowledge.search("texts", text, 1_000, "fuzzy") if each.id == name]
            assert hit.text == text, ascii(text)


@check("K1", facet=KNOWLEDGE_LOG)
async def every_source_comes_back_the_same(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        for value in VALUES:
            await knowledge.add("sources", "text", source=value)
        sources = [each.source for each in await listed(knowledge, "sources")]
        assert len(sources) == len(VALUES)
        assert all(same(source, value) for source, value in zip(sources, VALUES, strict=True))


@check("K1", facet=KNOWLEDGE_LOG)
async def every_field_of_a_chunk_comes_back(subject: Subject) -> None:
    unusual = "\x00 ann\ud800é \x10"
    given = [
        Chunk("plain"),
        Chunk("a date", at=date(2023, 5, 8)),
        Chunk("the first date", at=date.min),
        Chunk("the last date", at=date.max),
        Chunk("an instant", at=INSTANT),
        Chunk("the last instant", at=datetime.max.replace(tzinfo=UTC)),
        Chunk("who", who=unusual),
        Chunk("in a group", group=unusual),
        Chunk("beside it", group=unusual),
        Chunk("further on", group=unusual, position=LARGEST_POSITION),
        Chunk("in another group", group=f"{unusual}!"),
        Chunk("all together", who=unusual, at=INSTANT, group=unusual, position=7),
    ]
    async with chunks_in(subject, unusual) as knowledge:
        person = f"{somebody()}{unusual}"
        with stopped(INSTANT) as clock:
            await knowledge.add(unusual, given, owner=person)
            found = await listed(knowledge, unusual)
        for chunk, each in zip(given, found, strict=True):
            assert (each.text, each.who, each.group, each.at) == (chunk.text, chunk.who, chunk.group, chunk.at)
            assert type(each.at) is type(chunk.at), "a date is no instant"
            assert (each.collection, each.owner, each.source) == (unusual, person, None)
            assert clock.moment <= each.created_at < clock.moment + timedelta(seconds=1)
        assert [each.position for each in found] == [0, 0, 0, 0, 0, 0, 0, 0, 1, LARGEST_POSITION, 0, 7]
        hits = await knowledge.search(unusual, "plain", 5, "text", owner=person)
        assert [(each.id, each.text, each.chunk) for each in hits] == [(found[0].id, "plain", found[0])]


@check("K2", facet=KNOWLEDGE_LOG)
async def a_chunk_that_is_the_same_in_all_its_fields_is_stored_once(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        place: dict[str, Any] = {"source": {"file": "a.txt", "page": 3}, "owner": somebody()}
        chunk = Chunk("one text", "Anna", INSTANT, "g", 3)
        elsewhere = Chunk("one text", "Anna", INSTANT.astimezone(UTC), "g", 3)
        with stopped() as clock:
            (first,) = await knowledge.add("notes", chunk, **place)
            clock.advance(hours=1)
            for again in (chunk, [chunk, chunk], elsewhere):
                assert set(await knowledge.add("notes", again, **place)) == {first}
        (stored,) = await listed(knowledge, "notes")
        assert stored.id == first
        assert stored.created_at < clock.moment, "the first one stays as it is"
        assert await knowledge.count("notes") == 1
        assert await found_in(knowledge, "notes", "one", owner=place["owner"]) == ["one text"]


@check("K2", facet=KNOWLEDGE_LOG)
async def another_place_or_text_makes_another_chunk(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge, chunks_in(subject) as of_another_space:
        places: list[dict[str, Any]] = [{}, {"source": "a"}, {"source": ["a"]}, {"source": 1}, {"source": True}]
        places += [{"owner": somebody()}, {"owner": somebody(), "source": "a"}]
        ids = [(await knowledge.add("notes", "a text", **place))[0] for place in places]
        chunks = [Chunk("a text", group="g"), Chunk("a text", group="g", position=1), Chunk("a text", group="h")]
        chunks += [Chunk("a text", "Anna"), Chunk("a text", "Ben"), Chunk("a text", at=INSTANT.date())]
        chunks += [Chunk("a text", at=INSTANT), Chunk("a text", at=INSTANT + timedelta(microseconds=1))]
        ids += await knowledge.add("notes", [*chunks, "A text", "a text ", "é", "e\u0301", "a\x00", "a"])
        ids += await knowledge.add("others", "a text")
        ids += await of_another_space.add("notes", "a text")
        assert len(set(ids)) == len(ids)
        assert await knowledge.count() == len(ids) - 1
        assert [each.id for each in await listed(knowledge, "notes")] == ids[:-2]


@check("K2", facet=KNOWLEDGE_LOG)
async def writers_at_once_store_each_chunk_once(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        texts = [f"text {number}" for number in range(24)]

        async def add(writer: int) -> list[str]:
            given = texts[writer:] + texts[:writer]
            ids: list[str] = await knowledge.add("notes", given)
            return [*ids[-writer:], *ids[:-writer]] if writer else ids

        added = await at_once(subject, [partial(add, writer) for writer in range(0, 24, 3)])
        assert [each == added[0] for each in added] == [True] * 8
        assert sorted(await texts_in(knowledge, "notes")) == sorted(texts)
        assert sorted(await found_in(knowledge, "notes", "text")) == sorted(texts)


_BAD_ITEMS: list[Any] = [
    None, 5, b"bytes", ["list"], "", " \n\t", "x" * (LONGEST_TEXT + 1), Chunk(None), Chunk(""), Chunk("x", who=5),  # type: ignore[arg-type]
    Chunk("x", who="w" * 513), Chunk("x", at=datetime(2024, 5, 6)), Chunk("x", at="2024-05-06"), Chunk("x", at=5),  # type: ignore[arg-type] # noqa: DTZ001
    Chunk("x", group=""), Chunk("x", group="g" * 513), Chunk("x", group=5), Chunk("x", group="g", position=-1),  # type: ignore[arg-type]
    Chunk("x", group="g", position=LARGEST_POSITION + 1), Chunk("x", group="g", position=True), Chunk("x", group="g", position="1"), Chunk("x", group="g", position=1.0),  # type: ignore[arg-type]
]  # fmt: skip


@check("K3", facet=KNOWLEDGE_LOG)
async def a_bad_item_in_the_middle_stores_nothing(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        for bad in _BAD_ITEMS:
            await subject.refuses(InvalidEntryError, knowledge.add("notes", ["before", bad, "after"]))
        for source in (object(), float("nan"), [1, {"in": object()}]):
            await subject.refuses(InvalidEntryError, knowledge.add("notes", ["text"], source=source))
        for name in ("", "x" * 513, 7, None):
            await subject.refuses(InvalidEntryError, knowledge.add(name, ["text"]))
        for name in ("", "x" * 513, 7):
            await subject.refuses(InvalidEntryError, knowledge.add("notes", ["text"], owner=name))
        await subject.refuses(InvalidEntryError, knowledge.add("notes", 5))
        await subject.refuses(ZeroDivisionError, knowledge.add("notes", _broken_off()))
        assert await knowledge.add("notes", []) == []
        assert (await knowledge.collections(), await knowledge.count()) == ([], 0)
        assert await found_in(knowledge, "notes", "before", "fuzzy") == []


def _broken_off() -> Iterator[str]:
    yield "text"
    raise ZeroDivisionError


@check("K3", facet=KNOWLEDGE_LOG)
async def many_chunks_are_added_by_one_call(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        texts = [f"text {number}" for number in range(1_200)]
        ids = await knowledge.add("notes", (text for text in texts))
        assert len(set(ids)) == await knowledge.count("notes") == 1_200
        assert await texts_in(knowledge, "notes") == texts
        assert await found_in(knowledge, "notes", "1107") == ["text 1107"]


@check("K4", facet=KNOWLEDGE_LOG)
async def lists_are_oldest_first_in_the_order_given(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        given = [f"text {number}" for number in (5, 3, 9, 1, 7, 2, 8)]
        with stopped() as clock:
            ids = await knowledge.add("notes", given)
            for text in ("z", "a"):
                clock.advance(seconds=1)
                ids += await knowledge.add("notes", text, owner=somebody())
        for limit in (1, 2, 3, 8, 9, 10, 1_000):
            found = await listed(knowledge, "notes", limit)
            assert [each.text for each in found] == [*given, "z", "a"]
            assert [each.id for each in found] == ids
        page = await knowledge.list("notes", 9)
        assert (len(page), page.next, page[0].text) == (9, None, given[0])


@check("K4", facet=KNOWLEDGE_LOG)
async def pages_go_on_while_chunks_come_and_go(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        with stopped() as clock:
            ids = await knowledge.add("notes", [f"text {number}" for number in range(8)])
            first = await knowledge.list("notes", 3)
            assert await knowledge.delete("notes", [ids[0], ids[2], ids[4]]) == 3
            clock.advance(seconds=1)
            await knowledge.add("notes", "new")
            second = await knowledge.list("notes", 3, first.next)
            third = await knowledge.list("notes", 3, second.next)
        assert [each.text for each in second] == ["text 3", "text 5", "text 6"]
        assert [each.text for each in third] == ["text 7", "new"]
        assert third.next is None
        for cursor in ("", "nonsense", "2024-05-06/x", 5):
            await subject.refuses(InvalidEntryError, knowledge.list("notes", 3, cursor))
        for limit in (0, -1, True, "3"):
            await subject.refuses(InvalidEntryError, knowledge.list("notes", limit))
            await subject.refuses(InvalidEntryError, knowledge.collections(limit))


@check("K4", facet=KNOWLEDGE_LOG)
async def collections_are_listed_by_name_and_counted(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge, chunks_in(subject) as of_another_space:
        names = ["b", "a", "B", "a\x00", "é", "\U0001f600", "\uffff", "ab"]
        for number, name in enumerate(names, start=1):
            await knowledge.add(name, [f"text {each}" for each in range(number)])
        await of_another_space.add("c", "text")
        in_order = sorted(names, key=lambda name: [ord(character) for character in stored_name("name", name)])
        assert await knowledge.collections() == in_order
        assert await knowledge.collections(3) == in_order[:3]
        assert await knowledge.collections(3, in_order[2]) == in_order[3:6]
        assert await knowledge.collections(100, in_order[-1]) == []
        assert [await knowledge.count(name) for name in names] == [*range(1, len(names) + 1)]
        assert await knowledge.count() == sum(range(1, len(names) + 1))
        assert (await knowledge.count("unknown"), await knowledge.count("A")) == (0, 0)
        assert await knowledge.delete("b") == 1
        assert "b" not in await knowledge.collections()
