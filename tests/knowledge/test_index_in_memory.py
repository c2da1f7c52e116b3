"""The index in memory finds what a look at every row finds. The rows are those of any facet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import NotSupportedError
from firefly_memory.knowledge.log import CHUNKS
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.counting import KeptCounts
from firefly_memory.search.hits import checked_request
from firefly_memory.search.in_memory import MemorySearchIndex
from firefly_memory.search.index import Signatures, Subject, Vector
from firefly_memory.search.neighbours import Neighbours
from firefly_memory.search.searching import WORDS_ONLY, Searcher, beside_the_loop
from tests.knowledge import START


class Document(NamedTuple):
    """A row of some facet."""

    id: str
    scope: str
    searchable: str
    words: Sequence[str]
    who: str | None
    group_id: str | None
    position: int
    newest: datetime


SCOPES = ["_a", "_b", "_c"]
WORDS = ["boat", "lake", "may", "piano"]


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    ids = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), unique=True, max_size=20))
    return [draw(document(each)) for each in ids]


@st.composite
def document(draw: st.DrawFn, name: str) -> Document:
    scope = draw(st.sampled_from(SCOPES))
    words = draw(st.lists(st.sampled_from(WORDS), max_size=6))
    return Document(
        id=name,
        scope=scope,
        searchable=" ".join(words),
        words=[scope, *words],
        who=draw(st.sampled_from([None, "Anna", "Ben", "\x100"])),
        group_id=draw(st.sampled_from([None, "first", "second"])),
        position=draw(st.integers(0, 9)),
        newest=START + timedelta(days=draw(st.integers(0, 3))),
    )


class Scan:
    """The index as the protocol describes it, by a look at every row."""

    def __init__(
        self, rows: Sequence[Document], vectors: Mapping[str, Sequence[Vector]], scopes: Sequence[str]
    ) -> None:
        self._rows = sorted(each for each in rows if each.scope in scopes)
        self._every = rows
        self._vectors = vectors

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        return {word: sum(word in each.words for each in self._rows) for word in words}

    def best(self, weights: Mapping[str, int], limit: int) -> list[str]:
        sums = [(-sum(weights[word] for word in weights if word in each.words), each.id) for each in self._rows]
        return [name for _, name in sorted(each for each in sums if each[0])[:limit]]

    def around(self, ids: Sequence[str]) -> set[str]:
        asked = [each for each in self._rows if each.id in ids]
        return {each.id for each in self._rows if any(self._is_near(each, one) for one in asked)}

    def _is_near(self, one: Document, other: Document) -> bool:
        in_group = one.group_id is not None and (one.scope, one.group_id) == (other.scope, other.group_id)
        return one.id == other.id or (in_group and abs(one.position - other.position) <= 3)

    def containing(self, text: str, limit: int) -> list[str]:
        found = [(-each.newest.timestamp(), each.id) for each in self._rows if text in each.searchable]
        return [name for _, name in sorted(found)[:limit]]

    def people(self) -> set[str]:
        return {each.who.replace("\x100", "\0") for each in self._rows if each.who is not None}

    def signatures(self, embedder: str) -> dict[str, bytes]:
        return {each.id: found.signature for each in self._rows for found in self._of(embedder, each.id)}

    def vectors(self, embedder: str, ids: Sequence[str]) -> dict[str, bytes]:
        there = {each.id for each in self._every}
        return {name: found.vector for name in ids if name in there for found in self._of(embedder, name)}

    def _of(self, embedder: str, name: str) -> list[Vector]:
        return [each for each in self._vectors.get(name, ()) if each.embedder == embedder][:1]


vectors = st.builds(Vector, st.sampled_from("ef"), st.binary(min_size=4, max_size=4), st.binary(min_size=1, max_size=1))


@given(documents(), st.data())
def test_the_index_finds_what_a_look_at_every_row_finds(rows: list[Document], data: st.DataObject) -> None:
    there: dict[str, Document] = {}
    index = MemorySearchIndex(CHUNKS, there, ForkSafeLock())
    of_rows = {each.id: data.draw(st.lists(vectors, max_size=3)) for each in rows}
    for each in rows:
        there[each.id] = each
        index.add(each)
        for found in of_rows[each.id]:
            assert index.add_vector(each, found) == (
                found is next(one for one in of_rows[each.id] if one.embedder == found.embedder)
            )
    for name in data.draw(st.lists(st.sampled_from([each.id for each in rows]), unique=True)) if rows else []:
        index.remove(there.pop(name))
    scopes = data.draw(st.lists(st.sampled_from(SCOPES), max_size=3))
    scan = Scan(list(there.values()), of_rows, scopes)
    words = data.draw(st.lists(st.sampled_from([*WORDS, *SCOPES, "nowhere"]), unique=True))
    limit = data.draw(st.integers(0, 25))
    weights = {word: data.draw(st.integers(1, 3)) for word in words}
    for most in (None, limit):
        assert run_without_loop(index.counts(scopes, words, most)) == scan.counts(words)
    assert run_without_loop(index.best(scopes, weights, limit)) == scan.best(weights, limit)
    for text in ("", "boat", "lake may", "o"):
        assert run_without_loop(index.containing(scopes, text, limit)) == scan.containing(text, limit)
    ids = data.draw(st.lists(st.sampled_from([*(each.id for each in rows), "unknown"]), max_size=4))
    around = run_without_loop(index.around(scopes, ids))
    assert sorted(each.id for each in around) == sorted(scan.around(ids))
    people = run_without_loop(index.people(scopes, 10))
    assert (set(people), len(people)) == (scan.people(), len(scan.people()))
    assert len(run_without_loop(index.people(scopes, 1))) == min(1, len(people))
    for embedder in "efg":
        _check_signatures(run_without_loop(index.signatures(scopes, embedder, limit)), scan.signatures(embedder), limit)
        assert run_without_loop(index.vectors(embedder, ids)) == scan.vectors(embedder, ids)


def _check_signatures(found: Signatures | None, there: Mapping[str, bytes], most: int) -> None:
    if len(there) > most:
        assert found is None
    else:
        assert found == Signatures(sorted(there), [there[each] for each in sorted(there)])


async def test_a_candidate_has_what_the_ranking_needs() -> None:
    one = Document("1", "_a", "boat", ["_a", "boat", "boat"], "\x100", "g", 4, START)
    index = MemorySearchIndex(CHUNKS, {one.id: one}, ForkSafeLock())
    index.add(one)
    (found,) = await index.around(["_a"], ["1"])
    assert found == Candidate(id="1", words=["_a", "boat", "boat"], who="\0", group=found.group, position=4)


async def test_three_rows_before_and_three_after_are_neighbours() -> None:
    rows = {str(place): Document(str(place), "_a", "", ["_a"], None, "g", place, START) for place in range(10)}
    index = MemorySearchIndex(CHUNKS, rows, ForkSafeLock())
    for each in rows.values():
        index.add(each)
    assert sorted(each.id for each in await index.around(["_a"], ["5"])) == list("2345678")


async def test_groups_of_one_name_in_two_scopes_lend_each_other_nothing() -> None:
    rows = {
        each.id: each
        for each in (
            Document("1", "_a", "boat", ["_a", "boat"], None, "g", 1, START),
            Document("2", "_a", "", ["_a"], None, "g", 2, START),
            Document("3", "_b", "", ["_b"], None, "g", 2, START),
        )
    }
    index = MemorySearchIndex(CHUNKS, rows, ForkSafeLock())
    for each in rows.values():
        index.add(each)
    found = {each.id: each for each in await index.around(["_a", "_b"], list(rows))}
    neighbours = Neighbours(found.values(), {"1": {"boat": 1.0}, "2": {}, "3": {}})
    assert [name for name in found if neighbours.lent_to(found[name])] == ["2"]


async def test_rows_without_vectors_are_searched_by_their_words_only() -> None:
    subject = Subject("turns", "turns", has_vectors=False)
    one = Document("1", "_a", "boat", ["_a", "boat"], None, None, 0, START)
    index = MemorySearchIndex(subject, {one.id: one}, ForkSafeLock())
    index.add(one)
    said: set[str] = set()
    search = Searcher(subject, index, None, "english", beside_the_loop, KeptCounts(), said)
    (found,) = await search.found(checked_request("boat", 10, "best", explain=True), ["_a"])
    assert found.explanation is not None
    assert (found.id, found.explanation.notes, said) == ("1", (WORDS_ONLY,), set()), "the log has nothing to say"
    with pytest.raises(NotSupportedError, match="turns are searched by their words only; use mode='best'"):
        await search.found(checked_request("boat", 10, "semantic", explain=False), ["_a"])
