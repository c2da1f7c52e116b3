"""K5 and K6, knowledge: what is seen, and what a deletion leaves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from firefly_memory.errors import InvalidEntryError
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.rows import scope_of
from firefly_memory.knowledge.store import KnowledgeStore
from firefly_memory.knowledge.types import Chunk
from firefly_memory.search.index import Vector
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.knowledge_chunks import NAMES, chunks_in, found_in, listed, somebody, texts_in


@check("K5", facet=KNOWLEDGE_LOG)
async def collections_that_look_alike_see_only_themselves(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        for name in NAMES:
            await knowledge.add(name, f"boat of {name!a}")
        for name in NAMES:
            for mode in ("text", "fuzzy"):
                assert await found_in(knowledge, name, "boat", mode) == [f"boat of {name!a}"], ascii(name)
        for name in NAMES[::2]:
            assert await knowledge.delete(name) == 1
        for number, name in enumerate(NAMES):
            left = [f"boat of {name!a}"] * (number % 2)
            assert await texts_in(knowledge, name) == await found_in(knowledge, name, "boat") == left, ascii(name)


@check("K5", facet=KNOWLEDGE_LOG)
async def a_space_sees_only_itself(subject: Subject) -> None:
    collection = uuid4().hex
    async with (
        chunks_in(subject, "a_") as one,
        chunks_in(subject, "A%") as other,
        chunks_in(subject, "\x00\ud800") as third,
    ):
        without = subject.memory(KnowledgeStore, embedder=None)
        spaces = {"one": one, "other": other, "third": third, "without": without}
        ids = {}
        for name, knowledge in spaces.items():
            ids[name] = await knowledge.add(collection, ["the same boat", f"boat of {name}"])
        for name, knowledge in spaces.items():
            mine = ["the same boat", f"boat of {name}"]
            assert await texts_in(knowledge, collection) == mine
            for mode in ("text", "fuzzy"):
                assert sorted(await found_in(knowledge, collection, "boat", mode)) == sorted(mine)
            assert await knowledge.count(collection) == 2
        for name in ("other", "third", "without"):
            assert await one.delete(collection, ids[name]) == 0
        assert await one.delete(collection) == 2
        assert [await knowledge.count(collection) for knowledge in spaces.values()] == [0, 2, 2, 2]
        assert await without.delete(collection) == 2


@check("K5", facet=KNOWLEDGE_LOG)
async def chunks_of_a_person_are_found_by_those_who_name_the_person(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        ann = somebody()
        people = [ann, ann.upper(), f"{ann} ", f"{ann}\x00", ann[:-1], ann.replace(" ", "%"), ann.replace(" ", "_")]
        await knowledge.add("notes", "boat of nobody")
        for number, person in enumerate(people):
            await knowledge.add("notes", f"boat {number}", owner=person)
        for mode in ("text", "fuzzy"):
            assert await found_in(knowledge, "notes", "boat", mode) == ["boat of nobody"]
            assert await found_in(knowledge, "notes", "boat", mode, owner=somebody()) == ["boat of nobody"]
            for number, person in enumerate(people):
                found = await found_in(knowledge, "notes", "boat", mode, owner=person)
                assert sorted(found) == [f"boat {number}", "boat of nobody"], ascii(person)
        assert await knowledge.count("notes") == len(await listed(knowledge, "notes")) == len(people) + 1
        for name in ("", "x" * 513, 7):
            await subject.refuses(InvalidEntryError, knowledge.search("notes", "boat", owner=name))


async def _ids_with_signature(subject: Subject, scopes: Sequence[str], embedder: str) -> list[str]:
    found = await subject.view.log(KNOWLEDGE_LOG).index.signatures(scopes, embedder, 100)
    assert found is not None
    return sorted(found.ids)


@check("K6", facet=KNOWLEDGE_LOG)
async def with_a_chunk_go_its_words_and_its_vectors(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        log, space = subject.view.log(KNOWLEDGE_LOG), knowledge.inner._options.space  # noqa: SLF001 - made above
        ann, embedder = somebody(), f"check {uuid4().hex}"
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
            assert len(await found_in(knowledge, "notes", "boat", mode, owner=ann)) == len(left)
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
            assert await found_in(knowledge, "notes", "boat", mode, owner=ann) == []
        assert set(await log.index.vectors(embedder, [kept])) == {kept}
        await knowledge.add("notes", "boat of ann", owner=ann)
        assert await log.index.vectors(embedder, ids) == {}, "a vector went with its chunk"
        assert await found_in(knowledge, "others", "boat") == ["boat"]


@check("K6", facet=KNOWLEDGE_LOG)
async def the_chunks_of_one_source_go_together(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        sources: list[Any] = ["a.md", "A.md", "a.md ", "%", {"file": "a.md"}, 1, True, None, "\x00", "\ud800"]
        for source in sources:
            await knowledge.add("notes", [f"one of {source!r}", "two"], source=source, owner=None)
        await knowledge.add("notes", "a person's", source="a.md", owner=somebody())
        await knowledge.add("others", "elsewhere", source="a.md")
        assert await knowledge.delete("notes", source="a.md") == 3, "also those of people"
        assert await knowledge.delete("notes", source="a.md") == 0
        assert await knowledge.delete("notes", source={"file": "a.md"}) == 2
        for source in ("a", "_.md", "", "null", {}):
            assert await knowledge.delete("notes", source=source) == 0, source
        left = {repr(each.source) for each in await listed(knowledge, "notes")}  # 1 and True are two sources
        assert left == {repr(each) for each in sources if each not in ("a.md", {"file": "a.md"})}
        assert await knowledge.count("others") == 1
        await subject.refuses(InvalidEntryError, knowledge.delete("notes", [], source="a.md"))
        await subject.refuses(InvalidEntryError, knowledge.delete("notes", source=object()))
        assert await knowledge.delete("notes", source=None) == 2 * len(sources) - 4, "without a source: all of them"


@check("K6", facet=KNOWLEDGE_LOG)
async def what_is_no_list_of_ids_deletes_nothing(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        (name,) = await knowledge.add("notes", "text")
        for ids in (name, "", [""], [5], [None], ["x" * 513]):
            await subject.refuses(InvalidEntryError, knowledge.delete("notes", ids))
        assert await knowledge.delete("notes", []) == 0
        assert await knowledge.delete("notes", ["%", "_" * len(name), name.upper(), f"{name} ", "\x00", "\ud800"]) == 0
        assert await knowledge.count("notes") == 1


@check("K6", facet=KNOWLEDGE_LOG)
async def chunks_added_and_deleted_at_once_leave_index_and_rows_in_step(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:

        async def work(worker: int) -> None:
            for number in range(6):
                mine, everybodys = await knowledge.add("notes", [f"boat {worker} {number}", f"lake {number}"])
                assert await knowledge.delete("notes", [mine]) == 1
                if number % 2:
                    await knowledge.delete("notes", [everybodys])

        await at_once(subject, [partial(work, worker) for worker in range(4)])
        assert await found_in(knowledge, "notes", "boat") == []
        left = sorted(await texts_in(knowledge, "notes"))
        for mode in ("text", "fuzzy"):
            assert sorted(await found_in(knowledge, "notes", "lake", mode)) == left
