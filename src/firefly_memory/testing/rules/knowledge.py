"""K1 to K9, knowledge.

K1, the same value back: a chunk comes back as it was added, with its source, for every text and every JSON value.
K2, once: the same text of the same source, owner and place is one chunk, and the first one stays as it is.
K3, all or nothing: a call with one bad item stores nothing.
K4, lists and counts: oldest first, in the order given, each chunk once, page by page.
K5, isolation: a collection, a space and an owner see only what is theirs. Names are compared letter by letter.
K6, deletion: with a chunk go its words and its vectors.
K7, search: any word counts, neighbours of one group lend, and ``fuzzy`` is a look at every text.
K8, no syntax: nothing in a question means anything else than itself.
K9, erasure: chunks of an erased person are deleted, and new ones are refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from typing import Any
from uuid import uuid4

from firefly_memory.erasure import Receipt, async_erase, async_readmit, erase, readmit
from firefly_memory.errors import ConfigurationError, ErasedError, InvalidEntryError
from firefly_memory.identifiers import stored_name
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.rows import LARGEST_POSITION, LONGEST_TEXT, scope_of
from firefly_memory.knowledge.store import KnowledgeStore
from firefly_memory.knowledge.types import Chunk, StoredChunk
from firefly_memory.protocols import Capability
from firefly_memory.search.index import Vector
from firefly_memory.search.searchable import searchable
from firefly_memory.search.words import index_words, question_words
from firefly_memory.testing.checks import Memory, Mode, Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.values import VALUES, same

_TEXTS = [
    "text", " a ", "a\x00b", "\x00a", "\ud800 half", "\udfff", "\ud83d\ude00", "\U0001f600", "e\u0301", "é", "漢字", "ไทย",
    "\u2028\ufeff\x7f!", "\\u0000", "\\", "\\\x00\\", '"quoted"', "line\nbreak\ttab", "\x1b\x10", "\x100", "%s $1 ? :name {}",
    "NULL", "null", "{}", "'; DROP TABLE memory_chunks; --", "שלום עולם", "مرحبا", "!?", "word " * 3_000,
]  # fmt: skip

_NAMES = [
    "a/b", "a_b", "a\\b", "a%b", "a*b", "a?b", "a.b", "a b", "a-b", "ab", "AB", "Ab", "a", "../a", "~", "é", "e\u0301", "ß",
    "SS", "ss", "İ", "i", "I", "ı", "Ａ", " a", "a\n", "a\x00", "\ud800", "\x10", "\x100", "'", '"', "$where", "{}", "漢",
]  # fmt: skip

_INSTANT = datetime(2024, 2, 29, 23, 59, 59, 999_999, timezone(timedelta(hours=5, minutes=45)))

_OPERATORS = [
    "alpha AND gamma", "alpha OR gamma", "NOT alpha", "alpha NOT beta", "alpha NEAR gamma", "NEAR(alpha beta, 2)", "alpha*",
    "alph*", "^alpha", "alpha + beta", "words:alpha", "words : alpha", "{words searchable} : alpha", "- words : alpha",
    '"alpha', '"alpha beta"', '""', '"', "alpha^2", "(alpha", "alpha)", "()", "-alpha", "+alpha", "NULL", "*",
    "alpha & beta", "alpha | gamma", "!alpha", "alpha:*", "alpha:AB", "alpha <-> beta", "alpha <2> beta", "&", "|", "!", "<->",
    "'alpha'", "'", "''", "\\'", "alpha or", "%", "_", "%alpha%", "al_ha", "alpha\\", "\\", "\\%", "[a-z]+", "[", "al[p]ha", ".*",
    "al.ha", "^", "$", "^alpha$", "(?i)ALPHA", "alpha|gamma", "a{2}", "(", "alpha\\b", "\\d", "\\Qalpha\\E", "/alpha/i",
    "$where", "$regex", '{"$ne": 1}', '{"$gt": ""}', "$text", '-"alpha beta"', "alpha $or beta", "\x00", "alpha\x00", "\ud800",
    "alpha\ud800beta", ":name", "%s", "%(name)s", "$1", "?", "'; DROP TABLE memory_chunks; --", "--", "/*", "{alpha,beta}",
    '{"alpha"}', "{NULL}", "rowid", "words", "rank", "memory_chunks_words",
]  # fmt: skip
"""What means something to FTS5, ``tsquery``, ``LIKE``, regular expressions, MongoDB, arrays, or parameters of SQL."""


def _somebody() -> str:
    return f"person {uuid4().hex}"


@asynccontextmanager
async def _chunks(subject: Subject, space: str = "") -> AsyncIterator[Memory]:
    """The chunks of a space of this run's own, deleted at the end."""
    knowledge = subject.memory(KnowledgeStore, space=f"{space}{uuid4().hex}", embedder=None)
    try:
        yield knowledge
    finally:
        with suppress(Exception):  # a check may have failed because of the store
            while names := await knowledge.collections():
                for name in names:
                    await knowledge.delete(name)


async def _listed(knowledge: Memory, collection: str, limit: int = 100) -> list[StoredChunk]:
    """The chunks of a collection, read page by page."""
    chunks: list[StoredChunk] = []
    after = None
    while True:
        page = await knowledge.list(collection, limit, after)
        chunks += page
        after = page.next
        if after is None:
            return chunks


async def _texts(knowledge: Memory, collection: str) -> list[str]:
    return [each.text for each in await _listed(knowledge, collection)]


async def _found(knowledge: Memory, collection: str, question: str, mode: str = "text", **options: Any) -> list[str]:
    """The texts of the hits, best first."""
    return [hit.text for hit in await knowledge.search(collection, question, 1_000, mode, **options)]


@check("K1", facet=KNOWLEDGE_LOG)
async def every_text_comes_back_the_same(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        ids = await knowledge.add("texts", _TEXTS)
        found = await _listed(knowledge, "texts")
        assert [each.text for each in found] == _TEXTS
        assert [each.id for each in found] == ids
        for text, name in zip(_TEXTS, ids, strict=True):
            (hit,) = [each for each in await knowledge.search("texts", text, 1_000, "fuzzy") if each.id == name]
            assert hit.text == text, ascii(text)


@check("K1", facet=KNOWLEDGE_LOG)
async def every_source_comes_back_the_same(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        for value in VALUES:
            await knowledge.add("sources", "text", source=value)
        sources = [each.source for each in await _listed(knowledge, "sources")]
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
        Chunk("an instant", at=_INSTANT),
        Chunk("the last instant", at=datetime.max.replace(tzinfo=UTC)),
        Chunk("who", who=unusual),
        Chunk("in a group", group=unusual),
        Chunk("beside it", group=unusual),
        Chunk("further on", group=unusual, position=LARGEST_POSITION),
        Chunk("in another group", group=f"{unusual}!"),
        Chunk("all together", who=unusual, at=_INSTANT, group=unusual, position=7),
    ]
    async with _chunks(subject, unusual) as knowledge:
        person = f"{_somebody()}{unusual}"
        with stopped(_INSTANT) as clock:
            await knowledge.add(unusual, given, owner=person)
            found = await _listed(knowledge, unusual)
        for chunk, each in zip(given, found, strict=True):
            assert (each.text, each.who, each.group, each.at) == (chunk.text, chunk.who, chunk.group, chunk.at)
            assert type(each.at) is type(chunk.at), "a date is no instant"
            assert (each.collection, each.owner, each.source) == (unusual, person, None)
            assert clock.moment <= each.created_at < clock.moment + timedelta(seconds=1)
        assert [each.position for each in found] == [0, 0, 0, 0, 0, 0, 0, 0, 1, LARGEST_POSITION, 0, 7]
        hits = await knowledge.search(unusual, "plain", 5, "text", owner=person)
        assert [(each.id, each.text, each.chunk) for each in hits] == [(found[0].id, "plain", found[0])]


@check("K2", facet=KNOWLEDGE_LOG)
async def the_same_text_of_one_place_is_one_chunk(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        place: dict[str, Any] = {"source": {"file": "a.txt", "page": 3}, "owner": _somebody()}
        with stopped() as clock:
            (first,) = await knowledge.add("notes", Chunk("one text", who="Anna"), **place)
            clock.advance(hours=1)
            for again in ("one text", ["one text", "one text"], Chunk("one text", who="Ben", at=date(2023, 5, 8))):
                assert set(await knowledge.add("notes", again, **place)) == {first}
        (stored,) = await _listed(knowledge, "notes")
        assert (stored.id, stored.who, stored.at) == (first, "Anna", None), "the first one stays as it is"
        assert stored.created_at < clock.moment
        assert await knowledge.count("notes") == 1
        assert await _found(knowledge, "notes", "one", owner=place["owner"]) == ["one text"]


@check("K2", facet=KNOWLEDGE_LOG)
async def another_place_or_text_makes_another_chunk(subject: Subject) -> None:
    async with _chunks(subject) as knowledge, _chunks(subject) as of_another_space:
        places: list[dict[str, Any]] = [{}, {"source": "a"}, {"source": ["a"]}, {"source": 1}, {"source": True}]
        places += [{"owner": _somebody()}, {"owner": _somebody(), "source": "a"}]
        ids = [(await knowledge.add("notes", "a text", **place))[0] for place in places]
        chunks = [Chunk("a text", group="g"), Chunk("a text", group="g", position=1), Chunk("a text", group="h")]
        ids += await knowledge.add("notes", [*chunks, "A text", "a text ", "é", "e\u0301", "a\x00", "a"])
        ids += await knowledge.add("others", "a text")
        ids += await of_another_space.add("notes", "a text")
        assert len(set(ids)) == len(ids)
        assert await knowledge.count() == len(ids) - 1
        assert [each.id for each in await _listed(knowledge, "notes")] == ids[:-2]


@check("K2", facet=KNOWLEDGE_LOG)
async def writers_at_once_store_each_chunk_once(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        texts = [f"text {number}" for number in range(24)]

        async def add(writer: int) -> list[str]:
            given = texts[writer:] + texts[:writer]
            ids: list[str] = await knowledge.add("notes", given)
            return [*ids[-writer:], *ids[:-writer]] if writer else ids

        added = await at_once(subject, [partial(add, writer) for writer in range(0, 24, 3)])
        assert [each == added[0] for each in added] == [True] * 8
        assert sorted(await _texts(knowledge, "notes")) == sorted(texts)
        assert sorted(await _found(knowledge, "notes", "text")) == sorted(texts)


_BAD_ITEMS: list[Any] = [
    None, 5, b"bytes", ["list"], "", " \n\t", "x" * (LONGEST_TEXT + 1), Chunk(None), Chunk(""), Chunk("x", who=5),  # type: ignore[arg-type]
    Chunk("x", who="w" * 513), Chunk("x", at=datetime(2024, 5, 6)), Chunk("x", at="2024-05-06"), Chunk("x", at=5),  # type: ignore[arg-type] # noqa: DTZ001
    Chunk("x", group=""), Chunk("x", group="g" * 513), Chunk("x", group=5), Chunk("x", group="g", position=-1),  # type: ignore[arg-type]
    Chunk("x", group="g", position=LARGEST_POSITION + 1), Chunk("x", group="g", position=True), Chunk("x", group="g", position="1"), Chunk("x", group="g", position=1.0),  # type: ignore[arg-type]
]  # fmt: skip


@check("K3", facet=KNOWLEDGE_LOG)
async def a_bad_item_in_the_middle_stores_nothing(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
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
        assert await _found(knowledge, "notes", "before", "fuzzy") == []


def _broken_off() -> Iterator[str]:
    yield "text"
    raise ZeroDivisionError


@check("K3", facet=KNOWLEDGE_LOG)
async def many_chunks_are_added_by_one_call(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        texts = [f"text {number}" for number in range(1_200)]
        ids = await knowledge.add("notes", (text for text in texts))
        assert len(set(ids)) == await knowledge.count("notes") == 1_200
        assert await _texts(knowledge, "notes") == texts
        assert await _found(knowledge, "notes", "1107") == ["text 1107"]


@check("K4", facet=KNOWLEDGE_LOG)
async def lists_are_oldest_first_in_the_order_given(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        given = [f"text {number}" for number in (5, 3, 9, 1, 7, 2, 8)]
        with stopped() as clock:
            ids = await knowledge.add("notes", given)
            for text in ("z", "a"):
                clock.advance(seconds=1)
                ids += await knowledge.add("notes", text, owner=_somebody())
        for limit in (1, 2, 3, 8, 9, 10, 1_000):
            found = await _listed(knowledge, "notes", limit)
            assert [each.text for each in found] == [*given, "z", "a"]
            assert [each.id for each in found] == ids
        page = await knowledge.list("notes", 9)
        assert (len(page), page.next, page[0].text) == (9, None, given[0])


@check("K4", facet=KNOWLEDGE_LOG)
async def pages_go_on_while_chunks_come_and_go(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
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
    async with _chunks(subject) as knowledge, _chunks(subject) as of_another_space:
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


@check("K5", facet=KNOWLEDGE_LOG)
async def collections_that_look_alike_see_only_themselves(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        for name in _NAMES:
            await knowledge.add(name, f"boat of {name!a}")
        for name in _NAMES:
            for mode in ("text", "fuzzy"):
                assert await _found(knowledge, name, "boat", mode) == [f"boat of {name!a}"], ascii(name)
        for name in _NAMES[::2]:
            assert await knowledge.delete(name) == 1
        for number, name in enumerate(_NAMES):
            left = [f"boat of {name!a}"] * (number % 2)
            assert await _texts(knowledge, name) == await _found(knowledge, name, "boat") == left, ascii(name)


@check("K5", facet=KNOWLEDGE_LOG)
async def a_space_sees_only_itself(subject: Subject) -> None:
    collection = uuid4().hex
    async with (
        _chunks(subject, "a_") as one,
        _chunks(subject, "A%") as other,
        _chunks(subject, "\x00\ud800") as third,
    ):
        without = subject.memory(KnowledgeStore, embedder=None)
        spaces = {"one": one, "other": other, "third": third, "without": without}
        ids = {}
        for name, knowledge in spaces.items():
            ids[name] = await knowledge.add(collection, ["the same boat", f"boat of {name}"])
        for name, knowledge in spaces.items():
            mine = ["the same boat", f"boat of {name}"]
            assert await _texts(knowledge, collection) == mine
            for mode in ("text", "fuzzy"):
                assert sorted(await _found(knowledge, collection, "boat", mode)) == sorted(mine)
            assert await knowledge.count(collection) == 2
        for name in ("other", "third", "without"):
            assert await one.delete(collection, ids[name]) == 0
        assert await one.delete(collection) == 2
        assert [await knowledge.count(collection) for knowledge in spaces.values()] == [0, 2, 2, 2]
        assert await without.delete(collection) == 2


@check("K5", facet=KNOWLEDGE_LOG)
async def chunks_of_a_person_are_found_by_those_who_name_the_person(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        ann = _somebody()
        people = [ann, ann.upper(), f"{ann} ", f"{ann}\x00", ann[:-1], ann.replace(" ", "%"), ann.replace(" ", "_")]
        await knowledge.add("notes", "boat of nobody")
        for number, person in enumerate(people):
            await knowledge.add("notes", f"boat {number}", owner=person)
        for mode in ("text", "fuzzy"):
            assert await _found(knowledge, "notes", "boat", mode) == ["boat of nobody"]
            assert await _found(knowledge, "notes", "boat", mode, owner=_somebody()) == ["boat of nobody"]
            for number, person in enumerate(people):
                found = await _found(knowledge, "notes", "boat", mode, owner=person)
                assert sorted(found) == [f"boat {number}", "boat of nobody"], ascii(person)
        assert await knowledge.count("notes") == len(await _listed(knowledge, "notes")) == len(people) + 1
        for name in ("", "x" * 513, 7):
            await subject.refuses(InvalidEntryError, knowledge.search("notes", "boat", owner=name))


async def _ids_with_signature(subject: Subject, scopes: Sequence[str], embedder: str) -> list[str]:
    found = await subject.view.log(KNOWLEDGE_LOG).index.signatures(scopes, embedder, 100)
    assert found is not None
    return list(found.ids)


@check("K6", facet=KNOWLEDGE_LOG)
async def with_a_chunk_go_its_words_and_its_vectors(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        log, space = subject.view.log(KNOWLEDGE_LOG), knowledge.inner._options.space  # noqa: SLF001 - made above
        ann, embedder = _somebody(), f"check {uuid4().hex}"
        scopes = [scope_of(space, "notes", None), scope_of(space, "notes", ann)]
        ids = await knowledge.add("notes", [Chunk(f"boat {number}", who="Ben", group="g") for number in range(6)])
        ids += await knowledge.add("notes", ["boat of ann", "another boat of ann"], owner=ann)
        (kept,) = await knowledge.add("others", "boat")
        vector = Vector(embedder, bytes(8), bytes(1))
        assert await log.add_vectors(dict.fromkeys([*ids, kept], vector)) == 9
        assert await _ids_with_signature(subject, scopes, embedder) == sorted(ids)
        assert await knowledge.delete("notes", [ids[2], ids[6], ids[2], "unknown", kept]) == 2
        left = [each for each in ids if each not in (ids[2], ids[6])]
        assert (await log.index.counts(scopes, ["boat"], None))["boat"] == len(left)
        assert await _ids_with_signature(subject, scopes, embedder) == sorted(left)
        assert set(await log.index.vectors(embedder, ids)) == set(left)
        for mode in ("text", "fuzzy"):
            assert len(await _found(knowledge, "notes", "boat", mode, owner=ann)) == len(left)
        assert await knowledge.delete("notes") == len(left)
        assert (await knowledge.delete("notes"), await knowledge.delete("notes", ids)) == (0, 0)
        asked = [*scopes, "boat", "ben", "ann"]
        assert await log.index.counts(scopes, asked, None) == dict.fromkeys(asked, 0)
        assert await log.index.best(scopes, {"boat": 1}, 100) == []
        assert await log.index.around(scopes, ids) == []
        assert await log.index.people(scopes, 100) == []
        assert await _ids_with_signature(subject, scopes, embedder) == []
        assert await log.index.vectors(embedder, ids) == {}
        for mode in ("text", "fuzzy"):
            assert await _found(knowledge, "notes", "boat", mode, owner=ann) == []
        assert set(await log.index.vectors(embedder, [kept])) == {kept}
        await knowledge.add("notes", "boat of ann", owner=ann)
        assert await log.index.vectors(embedder, ids) == {}, "a vector went with its chunk"
        assert await _found(knowledge, "others", "boat") == ["boat"]


@check("K6", facet=KNOWLEDGE_LOG)
async def what_is_no_list_of_ids_deletes_nothing(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        (name,) = await knowledge.add("notes", "text")
        for ids in (name, "", [""], [5], [None], ["x" * 513]):
            await subject.refuses(InvalidEntryError, knowledge.delete("notes", ids))
        assert await knowledge.delete("notes", []) == 0
        assert await knowledge.delete("notes", ["%", "_" * len(name), name.upper(), f"{name} ", "\x00", "\ud800"]) == 0
        assert await knowledge.count("notes") == 1


@check("K6", facet=KNOWLEDGE_LOG)
async def chunks_added_and_deleted_at_once_leave_index_and_rows_in_step(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:

        async def work(worker: int) -> None:
            for number in range(6):
                mine, everybodys = await knowledge.add("notes", [f"boat {worker} {number}", f"lake {number}"])
                assert await knowledge.delete("notes", [mine]) == 1
                if number % 2:
                    await knowledge.delete("notes", [everybodys])

        await at_once(subject, [partial(work, worker) for worker in range(4)])
        assert await _found(knowledge, "notes", "boat") == []
        left = sorted(await _texts(knowledge, "notes"))
        for mode in ("text", "fuzzy"):
            assert sorted(await _found(knowledge, "notes", "lake", mode)) == left


@check("K7", facet=KNOWLEDGE_LOG)
async def any_word_counts_and_more_of_them_count_more(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        both, one, other = "a boat on the lake", "my Boat", "lake, lake!"
        await knowledge.add("notes", [other, "a piano", one, both, "我在上海学习钢琴", "so 😀 it is", "CAFÉ noir"])
        assert (await _found(knowledge, "notes", "which boat, which lake?"))[0] == both
        assert set(await _found(knowledge, "notes", "which boat, which lake?")) == {both, one, other}
        assert set(await _found(knowledge, "notes", "BOAT unheard-of")) == {one, both}
        for question, text in (("上海", "我在上海学习钢琴"), ("学习", "我在上海学习钢琴"), ("😀", "so 😀 it is")):
            assert await _found(knowledge, "notes", question) == [text]
        assert await _found(knowledge, "notes", "cafe\u0301") == ["CAFÉ noir"]
        for question in ("", " ", "?!", "boa", "oat", "unheard-of", "\x00"):
            assert await _found(knowledge, "notes", question) == []
        assert await _found(knowledge, "unknown", "boat") == []


@check("K7", facet=KNOWLEDGE_LOG)
async def dates_and_people_are_words_of_a_chunk(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        said = [
            Chunk("we went sailing", "Anna", date(2023, 5, 8)),
            Chunk("we went home", "Ben", _INSTANT),
            Chunk("Anna went sailing", "Ben"),
        ]
        await knowledge.add("notes", said)
        assert await _found(knowledge, "notes", "2023") == ["we went sailing"]
        assert await _found(knowledge, "notes", "29 2024") == ["we went home"]
        assert set(await _found(knowledge, "notes", "ben")) == {"we went home", "Anna went sailing"}
        assert (await _found(knowledge, "notes", "who of Anna went sailing?"))[0] == "we went sailing"
        (hit, *_) = await knowledge.search("notes", "sailing Anna", 1, "text", explain=True)
        assert hit.explanation is not None
        assert hit.explanation.text is not None
        assert hit.explanation.text.person == "Anna"


@check("K7", facet=KNOWLEDGE_LOG)
async def any_name_of_a_person_is_known_in_a_question(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        for number, who in enumerate(("a\x00zoe", "\ud800", "\x10ben", "漢字", "O'Neil", '"quoted"')):
            collection = f"talk {number}"
            await knowledge.add(
                collection, [Chunk("we went sailing", who), Chunk("we went sailing", "Anna", group="g")]
            )
            hits = await knowledge.search(collection, f"sailing {who}", 5, "text", explain=True)
            words = question_words(who, "none")
            assert [hit.explanation.text.person for hit in hits] == ([who, None] if words else [None, None]), ascii(who)
            if words:
                (hit,) = await knowledge.search(collection, words[-1], 5, "text", explain=True)
                assert hit.explanation.text.person == who, ascii(who)


@check("K7", facet=KNOWLEDGE_LOG)
async def fuzzy_gives_the_newest_texts_that_have_the_question(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        with stopped(datetime(2024, 1, 1, tzinfo=UTC)) as clock:
            await knowledge.add("notes", Chunk("said last: boat-house", at=date(2025, 1, 1)))
            await knowledge.add("notes", Chunk("said first: Boat_House", at=_INSTANT - timedelta(days=900)))
            clock.advance(hours=1)
            await knowledge.add("notes", ["added in between: a BOAT \n house", "another house"])
        newest_first = ["said last: boat-house", "added in between: a BOAT \n house", "said first: Boat_House"]
        for question in ("boat house", "oat  hou", "BOAT-HOUSE", "boat\thouse", " boat_house "):
            assert await _found(knowledge, "notes", question, "fuzzy") == newest_first
        for most in (1, 2, 3):
            hits = await knowledge.search("notes", "boat house", most, "fuzzy")
            assert [each.text for each in hits] == newest_first[:most]
            assert [each.ranks for each in hits] == [{"fuzzy": rank} for rank in range(1, most + 1)]
        for question in ("", " ", "-", "house boat", "boat%house", "boa_house", "b.at"):
            assert await _found(knowledge, "notes", question, "fuzzy") == []


@check("K7", facet=KNOWLEDGE_LOG)
async def a_search_gives_no_more_hits_than_it_was_asked_for(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        await knowledge.add("notes", [f"boat {number}" for number in range(12)])
        every = await knowledge.search("notes", "boat 7", 12, "text")
        assert every[0].text == "boat 7"
        assert sorted((each.score for each in every), reverse=True) == [each.score for each in every]
        assert [each.ranks for each in every] == [{"text": rank} for rank in range(1, 13)]
        for most in (1, 2, 11, 12, 13):
            assert await knowledge.search("notes", "boat 7", most, "text") == every[:most]
        assert all(each.explanation is None for each in every)
        for wrong in (0, -1, True, "3", None):
            await subject.refuses(ConfigurationError, knowledge.search("notes", "boat", wrong))
        for mode in ("", "TEXT", "like", None):
            await subject.refuses(ConfigurationError, knowledge.search("notes", "boat", 1, mode))
        for question in (None, 5, b"boat", ["boat"], {"$ne": ""}):
            await subject.refuses(InvalidEntryError, knowledge.search("notes", question))


@check("K7", facet=KNOWLEDGE_LOG)
async def chunks_of_a_group_lend_their_words_to_those_beside_them(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        turns = ["good day", "your piano", "since 1998", "very well", "that fine", "good bye", "well then"]
        ids = await knowledge.add("talks", [Chunk(text, group="first talk") for text in turns])
        await knowledge.add("talks", [Chunk(text, group="other talk") for text in ("hi you", "what now", "no idea")])
        await knowledge.add("talks", ["not grouped", "beside nobody"])
        hits = await knowledge.search("talks", "piano", 10, "text", explain=True)
        assert [each.id for each in hits] == [ids[1], ids[2], ids[0], ids[3], ids[4]]
        (own,) = hits[0].explanation.text.words.values()
        assert [hit.explanation.text.words for hit in hits] == [{"piano": own}, {}, {}, {}, {}]
        lent = [[(each.word, each.neighbour) for each in hit.explanation.text.lent] for hit in hits]
        assert lent == [[], *[[("piano", ids[1])]] * 4]
        weights = [round(each.weight / own, 9) for hit in hits for each in hit.explanation.text.lent]
        assert weights == [0.7, 0.5, 0.49, 0.343]


@check("K7", facet=KNOWLEDGE_LOG)
async def groups_of_one_name_in_two_collections_or_of_two_owners_lend_nothing(subject: Subject) -> None:
    async with _chunks(subject) as knowledge, _chunks(subject) as of_another_space:
        ann = _somebody()
        (piano,) = await knowledge.add("talks", Chunk("do you play the piano", group="talk", position=0))
        await knowledge.add("talks", Chunk("since 1998", group="talk", position=1), owner=ann)
        await knowledge.add("talks", Chunk("since 1999", group="talk", position=1), owner=_somebody())
        await knowledge.add("others", Chunk("since 2000", group="talk", position=1))
        await of_another_space.add("talks", Chunk("since 2001", group="talk", position=1))
        for owner in (None, ann):
            assert await _found(knowledge, "talks", "piano", owner=owner) == ["do you play the piano"]
        assert await _found(knowledge, "others", "piano") == []
        violin, beside = await knowledge.add(
            "talks",
            [Chunk("the violin", group="talk", position=0), Chunk("since 1998", group="talk", position=1)],
            owner=ann,
        )
        assert await _found(knowledge, "talks", "violin", owner=ann) == ["the violin", "since 1998"]
        hits = await knowledge.search("talks", "piano violin", 10, "text", owner=ann, explain=True)
        lent = {hit.id: [(each.word, each.neighbour) for each in hit.explanation.text.lent] for hit in hits}
        assert lent == {piano: [], violin: [], beside: [("violin", violin)]}


@check("K8", facet=KNOWLEDGE_LOG)
async def nothing_in_a_question_is_syntax(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        texts = ["alpha beta", "alpha", "gamma", "alphabet soup", "beta, then alpha", "and or not near", *_OPERATORS]
        await knowledge.add("notes", texts)
        kept = await subject.view.log(KNOWLEDGE_LOG).language()
        assert kept is not None
        words = {text: set(index_words(text, kept.language)) for text in texts}
        for question in ("alpha", *_OPERATORS):
            asked = set(question_words(question, kept.language))
            expected = {text for text in texts if asked & words[text]}
            assert set(await _found(knowledge, "notes", question)) == expected, ascii(question)
            wanted = searchable(question)
            containing = {text for text in texts if wanted and wanted in searchable(text)}
            assert set(await _found(knowledge, "notes", question, "fuzzy")) == containing, ascii(question)
        assert sorted(await _texts(knowledge, "notes")) == sorted(texts)


@check("K8", facet=KNOWLEDGE_LOG)
async def a_word_of_a_scope_is_no_word_of_a_question(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        space, ann = knowledge.inner._options.space, _somebody()  # noqa: SLF001 - made above
        await knowledge.add("notes", ["boat", "lake"])
        await knowledge.add("notes", "secret", owner=ann)
        for scope in (scope_of(space, "notes", None), scope_of(space, "notes", ann)):
            for question in (scope, scope[1:], f'"{scope}" OR "{scope}"', f"boat {scope}", f'" OR "{scope}" OR "'):
                for mode in ("text", "fuzzy"):
                    found = await _found(knowledge, "notes", question, mode)
                    assert found == (["boat"] if question.startswith("boat") and mode == "text" else []), question


async def _erase(subject: Subject, owner: str, *, dry_run: bool = False) -> Receipt:
    if subject.mode is Mode.BLOCKING:
        return erase(subject.store, owner, dry_run=dry_run)
    return await async_erase(subject.store, owner, dry_run=dry_run)


async def _readmit(subject: Subject, owner: str) -> bool:
    if subject.mode is Mode.BLOCKING:
        return readmit(subject.store, owner)
    return await async_readmit(subject.store, owner)


async def _chunks_of(subject: Subject, owner: str) -> Sequence[str]:
    ids: Sequence[str] = await subject.view.log(KNOWLEDGE_LOG).of_owner(stored_name("owner", owner), 1_000, "")
    return ids


@check("K9", facet=KNOWLEDGE_LOG)
async def chunks_of_an_erased_person_are_deleted_and_new_ones_refused(subject: Subject) -> None:
    async with _chunks(subject) as knowledge, _chunks(subject) as of_another_space:
        ann, bob = f"{_somebody()}\x00\ud800", _somebody()
        (first, *_) = await knowledge.add("notes", ["boat of ann", "lake of ann"], owner=ann)
        await knowledge.add("others", Chunk("boat of ann", group="g"), owner=ann)
        await of_another_space.add("notes", "boat of ann", owner=ann)
        await knowledge.add("notes", "boat of bob", owner=bob)
        await knowledge.add("notes", "boat of ann")
        counted = await _erase(subject, ann, dry_run=True)
        assert len(await _chunks_of(subject, ann)) == 4, "a dry run deletes nothing"
        receipt = await _erase(subject, ann)
        assert counted.rows["chunks"] == receipt.rows["chunks"] == 4
        assert await _chunks_of(subject, ann) == []
        for owner, found in ((ann, ["boat of ann"]), (bob, ["boat of ann", "boat of bob"])):
            for mode in ("text", "fuzzy"):
                assert sorted(await _found(knowledge, "notes", "boat", mode, owner=owner)) == found
        for texts in ("boat of ann", ["new", "texts"], Chunk("new", group="g")):
            error = await subject.refuses(ErasedError, knowledge.add("notes", texts, owner=ann))
            assert ann not in str(error), "the error names nobody"
        await subject.refuses(ErasedError, of_another_space.add("notes", "new", owner=ann))
        assert sorted(await _texts(knowledge, "notes")) == ["boat of ann", "boat of bob"]
        assert (await knowledge.count(), await of_another_space.count()) == (2, 0)
        assert await _readmit(subject, ann)
        assert await knowledge.add("notes", "boat of ann", owner=ann) == [first]
        assert await _chunks_of(subject, ann) == [first]


@check("K9", Capability.SHARED, facet=KNOWLEDGE_LOG)
async def a_store_that_was_open_before_is_refused_as_well(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        ann = _somebody()
        space = knowledge.inner._options.space  # noqa: SLF001 - made above
        another = Memory(KnowledgeStore(subject.another_store(), space=space, embedder=None), subject.mode)
        await another.add("notes", ["one", "two"], owner=ann)
        await _erase(subject, ann)
        for texts in ("one", "new", ["new", "one"]):
            await subject.refuses(ErasedError, another.add("notes", texts, owner=ann))
        assert (await knowledge.count(), await another.count()) == (0, 0)
        await another.add("notes", "of bob", owner=_somebody())
        await _readmit(subject, ann)


@check("K9", facet=KNOWLEDGE_LOG)
async def a_refused_chunk_does_not_disturb_the_chunks_of_others(subject: Subject) -> None:
    async with _chunks(subject) as knowledge:
        ann = _somebody()
        await _erase(subject, ann)

        async def add(number: int, owner: str | None) -> bool:
            try:
                await knowledge.add("notes", [f"text {number}", "of all"], owner=owner)
            except ErasedError:
                return False
            return True

        added = await at_once(
            subject, [partial(add, number, owner) for number in range(6) for owner in (ann, _somebody(), None)]
        )
        assert added == [False, True, True] * 6
        assert await _chunks_of(subject, ann) == []
        assert await knowledge.count("notes") == 6 * 2 + 6 + 1
        await _readmit(subject, ann)


RULES = (every_text_comes_back_the_same, nothing_in_a_question_is_syntax)
"""Loading them registers the checks."""
