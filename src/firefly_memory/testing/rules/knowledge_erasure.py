"""K9, knowledge: the chunks of erased people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from firefly_memory.errors import ErasedError
from firefly_memory.identifiers import stored_name
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.store import KnowledgeStore
from firefly_memory.knowledge.types import Chunk
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Memory, Subject, check
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.erasure import erase_in, readmit_in
from firefly_memory.testing.rules.knowledge_chunks import chunks_in, found_in, somebody, texts_in


async def _chunks_of(subject: Subject, owner: str) -> Sequence[str]:
    ids: Sequence[str] = await subject.view.log(KNOWLEDGE_LOG).of_owner(stored_name("owner", owner), 1_000, "")
    return ids


@check("K9", facet=KNOWLEDGE_LOG)
async def chunks_of_an_erased_person_are_deleted_and_new_ones_refused(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge, chunks_in(subject) as of_another_space:
        ann, bob = f"{somebody()}\x00\ud800", somebody()
        (first, *_) = await knowledge.add("notes", ["boat of ann", "lake of ann"], owner=ann)
        await knowledge.add("others", Chunk("boat of ann", group="g"), owner=ann)
        await of_another_space.add("notes", "boat of ann", owner=ann)
        await knowledge.add("notes", "boat of bob", owner=bob)
        await knowledge.add("notes", "boat of ann")
        counted = await erase_in(subject, ann, dry_run=True)
        assert len(await _chunks_of(subject, ann)) == 4, "a dry run deletes nothing"
        receipt = await erase_in(subject, ann)
        assert counted.rows["chunks"] == receipt.rows["chunks"] == 4
        assert await _chunks_of(subject, ann) == []
        for owner, found in ((ann, ["boat of ann"]), (bob, ["boat of ann", "boat of bob"])):
            for mode in ("text", "fuzzy"):
                assert sorted(await found_in(knowledge, "notes", "boat", mode, owner=owner)) == found
        for texts in ("boat of ann", ["new", "texts"], Chunk("new", group="g")):
            error = await subject.refuses(ErasedError, knowledge.add("notes", texts, owner=ann))
            assert ann not in str(error), "the error names nobody"
        await subject.refuses(ErasedError, of_another_space.add("notes", "new", owner=ann))
        assert sorted(await texts_in(knowledge, "notes")) == ["boat of ann", "boat of bob"]
        assert (await knowledge.count(), await of_another_space.count()) == (2, 0)
        assert await readmit_in(subject, ann)
        assert await knowledge.add("notes", "boat of ann", owner=ann) == [first]
        assert await _chunks_of(subject, ann) == [first]


@check("K9", Capability.SHARED, facet=KNOWLEDGE_LOG)
async def a_store_that_was_open_before_is_refused_as_well(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        ann = somebody()
        space = knowledge.inner._options.space  # noqa: SLF001 - made above
        another = Memory(KnowledgeStore(subject.another_store(), space=space, embedder=None), subject.mode)
        await another.add("notes", ["one", "two"], owner=ann)
        await erase_in(subject, ann)
        for texts in ("one", "new", ["new", "one"]):
            await subject.refuses(ErasedError, another.add("notes", texts, owner=ann))
        assert (await knowledge.count(), await another.count()) == (0, 0)
        await another.add("notes", "of bob", owner=somebody())
        await readmit_in(subject, ann)


@check("K9", facet=KNOWLEDGE_LOG)
async def a_refused_chunk_does_not_disturb_the_chunks_of_others(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        ann = somebody()
        await erase_in(subject, ann)

        async def add(number: int, owner: str | None) -> bool:
            try:
                await knowledge.add("notes", [f"text {number}", "of all"], owner=owner)
            except ErasedError:
                return False
            return True

        added = await at_once(
            subject, [partial(add, number, owner) for number in range(6) for owner in (ann, somebody(), None)]
        )
        assert added == [False, True, True] * 6
        assert await _chunks_of(subject, ann) == []
        assert await knowledge.count("notes") == 6 * 2 + 6 + 1
        await readmit_in(subject, ann)
