"""Any texts and any questions: every store gives the same hits, in every mode, and nothing of another scope."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pymongo
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.knowledge.rows import scope_of
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.search.hits import MODES, Hit
from firefly_memory.search.index import indexed
from firefly_memory.search.kinds import kinds_asked
from firefly_memory.search.ranking import ScopeCounts, people_named, rank_text
from firefly_memory.search.searchable import searchable
from firefly_memory.search.words import question_pieces, question_words

NAME = "knowledge_of_any_text"

OPEN: dict[str, Callable[[Mapping[str, Callable[[], str]], Path], EntryStore]] = {
    "memory": lambda _, __: InMemoryStore(),
    "sqlite": lambda _, file: SQLiteStore(file),
    "postgresql": lambda servers, _: PostgreSQLStore(servers["postgresql"](), schema_name=NAME, pool_min_size=0),
    "mongodb": lambda servers, _: MongoDBStore(servers["mongodb"](), database=NAME),
}
"""A line for each kind of store."""


class Letters(StaticEmbedder):
    """How often each letter is in a text."""

    name = "letters"
    dimensions = 26

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [[float(text.lower().count(letter)) for letter in ascii_lowercase] for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        weighted = [(vector, weight) for text, weight in pieces for vector in self.embed([text])]
        return [sum(weight * vector[number] for vector, weight in weighted) for number in range(26)]


Stores = Mapping[str, KnowledgeStore]


@pytest.fixture(scope="module")
def stores(
    servers_of_the_session: Mapping[str, Callable[[], str]],
    tmp_path_factory: pytest.TempPathFactory,
    new_sqlite_file: Path,
) -> Iterator[Stores]:
    """One of each kind, all with the same space, so that chunks have the same ids."""
    file = Path(shutil.copy(new_sqlite_file, tmp_path_factory.mktemp("any_text") / "memory.db"))
    space = uuid4().hex
    opened = {
        kind: KnowledgeStore(open_store(servers_of_the_session, file), space=space, embedder=Letters())
        for kind, open_store in OPEN.items()
    }
    yield opened
    for knowledge in opened.values():
        knowledge.store.close_sync()
    with psycopg.connect(servers_of_the_session["postgresql"](), autocommit=True) as server:
        server.execute(f"DROP SCHEMA {NAME} CASCADE".encode())
    with pymongo.MongoClient[dict[str, Any]](servers_of_the_session["mongodb"]()) as client:
        client.drop_database(NAME)


# Texts and questions


WORDS = [
    "boat", "Boats", "lake", "sailing", "the", "of", "AND", "OR", "NOT", "NEAR(", "2023", "May", "8", "Anna", "CAFÉ", "cafe\u0301",
    "Häuser", "naïve", "ﬁsh", "İstanbul", "ß", "上海", "我在上海学习钢琴", "ไทย", "ひらがな", "שלום", "مرحبا", "\u202eabc\u202c", "😀", "👩‍👩‍👧", "1️⃣",
    "x_y", "a-b", "%", "_", "*", "boat*", '"boat"', '"', "'", "\\", "(", "[a-z]", ".*", "$where", "{}", "NULL", "null", ":a", "|", "&", "!",
    "\x00", "a\x00b", "\ud800", "\x10", "\u200b", "\ufffd", "\u0345", "word" * 20,
]  # fmt: skip

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
anything = st.text(max_size=20) | st.text(st.characters(categories=["L", "M", "N", "S", "C"]), max_size=8)
texts = (sentences | anything).filter(lambda text: bool(text.strip()))
questions = sentences | anything
people = st.sampled_from(["Anna", "Ben Lee", "a\x00b", "上海", "\ud800"])


class Added(NamedTuple):
    """A chunk, and where it is added."""

    chunk: Chunk
    collection: str
    owner: str | None


chunks = st.builds(
    Chunk,
    texts,
    who=st.none() | people,
    at=st.none() | st.sampled_from([date(2023, 5, 8), date(2024, 1, 1), datetime(2023, 5, 8, 9, tzinfo=UTC)]),
    group=st.sampled_from([None, "first", "second\x00"]),
)
additions = st.builds(Added, chunks, st.sampled_from(["mine", "others"]), st.sampled_from([None, "ann", "bob"]))

_run = count()


class Documents:
    """What was added in one example, and what a search in it has to find."""

    def __init__(self, stores: Stores, added: Sequence[Added]) -> None:
        self.stores = stores
        self._of = next(_run)
        self._added = {collection: self._add(collection, added) for collection in ("mine", "others")}

    def name(self, collection: str) -> str:
        return f"{collection} {self._of}"

    def _add(self, collection: str, added: Sequence[Added]) -> dict[str, tuple[Chunk, str | None, int]]:
        """By id, as it is stored: the chunk, its owner, and its number in its group."""
        found: dict[str, tuple[Chunk, str | None, int]] = {}
        for owner in (None, "ann", "bob"):
            given = [each.chunk for each in added if (each.collection, each.owner) == (collection, owner)]
            ids = {
                tuple(knowledge.add(self.name(collection), given, owner=owner)) for knowledge in self.stores.values()
            }
            assert len(ids) == 1, "the ids are the same everywhere"
            groups: dict[str | None, Iterator[int]] = {}
            for chunk, name in zip(given, ids.pop(), strict=True):
                position = 0 if chunk.group is None else next(groups.setdefault(chunk.group, count()))
                found.setdefault(name, (chunk, owner, position))
        return found

    def in_scope(self, owner: str | None) -> dict[str, tuple[Chunk, str | None, int]]:
        return {name: each for name, each in self._added["mine"].items() if each[1] in (None, owner)}

    def hits(self, question: str, mode: Any, owner: str | None) -> Sequence[Hit]:
        """The same from every store."""
        every: dict[str, Sequence[Hit]] = {
            kind: knowledge.search(self.name("mine"), question, 100, mode, owner=owner)
            for kind, knowledge in self.stores.items()
        }
        first = every["memory"]
        assert all(_seen(hits) == _seen(first) for hits in every.values()), {kind: _seen(every[kind]) for kind in every}
        there = self.in_scope(owner)
        assert all(hit.text == there[hit.id][0].text for hit in first), "nothing of another scope"
        return first

    def containing(self, question: str, owner: str | None) -> set[str]:
        wanted = searchable(question)
        return {
            name for name, (chunk, *_) in self.in_scope(owner).items() if wanted and wanted in searchable(chunk.text)
        }

    def ranked(self, question: str, owner: str | None) -> list[tuple[str, float]]:
        """By a look at every document."""
        candidates = [self._candidate(name, *each) for name, each in self.in_scope(owner).items()]
        words = question_words(question, "english")
        having = {word: sum(word in each.words for each in candidates) for word in words}
        named = people_named(question, {each.who for each in candidates if each.who}, "english")
        counts, kinds = ScopeCounts(len(candidates), having), kinds_asked(question, "english")
        ranked = rank_text(words, candidates, counts, named, kinds)
        return [(each.id, each.score) for each in ranked]

    def _candidate(self, name: str, chunk: Chunk, owner: str | None, position: int) -> Candidate:
        scope = scope_of("", "", owner)
        words = indexed(scope, chunk.text, "english", who=chunk.who, at=chunk.at).words
        group = None if chunk.group is None else f"{scope} {chunk.group}"
        return Candidate(id=name, words=words, who=chunk.who, group=group, position=position)


def has_letters(question: str) -> bool:
    """Whether the embedder of these tests has anything to say of it."""
    return any(Letters().embed_weighted([(piece.text, 1.0) for piece in question_pieces(question, "english")]))


def _seen(hits: Sequence[Hit]) -> list[tuple[str, str, float, Mapping[str, int]]]:
    return [(hit.id, ascii(hit.text), hit.score, hit.ranks) for hit in hits]


@pytest.mark.parametrize("examples", [25, pytest.param(100, marks=pytest.mark.thorough)])
def test_every_store_finds_what_a_look_at_every_document_finds(stores: Stores, examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(
        st.lists(additions, max_size=20), st.lists(questions, min_size=1, max_size=3), st.sampled_from([None, "ann"])
    )
    def finds(added: list[Added], asked: list[str], owner: str | None) -> None:
        _check_searches(stores, added, asked, owner)

    finds()


def _check_searches(stores: Stores, added: list[Added], asked: list[str], owner: str | None) -> None:
    documents = Documents(stores, added)
    parts = [each.chunk.text[1:5] for each in added[:1]]
    for question in [*asked, *parts]:
        assert {hit.id for hit in documents.hits(question, "fuzzy", owner)} == documents.containing(question, owner)
        found = [(hit.id, hit.score) for hit in documents.hits(question, "text", owner)]
        assert found == documents.ranked(question, owner)
        semantic = documents.hits(question, "semantic", owner)
        compared = documents.in_scope(owner).keys() if has_letters(question) else set()
        assert {hit.id for hit in semantic} == compared
        hybrid = documents.hits(question, "hybrid", owner)
        assert {hit.id for hit in hybrid} == {name for name, _ in found} | {hit.id for hit in semantic}
        assert documents.hits(question, "best", owner) == hybrid


def test_a_hundred_documents_are_found_by_every_store_in_the_same_order(stores: Stores) -> None:
    added = [
        Added(Chunk(" ".join(WORDS[number % 7 :: 1 + number % 11]), group=f"{number % 5}"), "mine", None)
        for number in range(100)
    ]
    documents = Documents(stores, added)
    for question in ("boat", "the boat of May", " ".join(WORDS)):
        found = [(hit.id, hit.score) for hit in documents.hits(question, "text", None)]
        assert found == documents.ranked(question, None)
        documents.hits(question, "hybrid", None)


MEGABYTE = " ".join([
    "boat " * 20_000, *[f"w{number}" for number in range(3_000)], "b" * 200_000, "上海" * 5_000, "\"'*(%" * 90_000,
    "a" + "\u0301" * 50_000, "\x00\ud800" * 8_000, "NULL OR boat AND " * 5_000,
])  # fmt: skip


def test_a_megabyte_is_a_text_and_a_question(stores: Stores) -> None:
    assert len(MEGABYTE.encode("utf-8", "surrogatepass")) > 1_000_000
    documents = Documents(stores, [Added(Chunk(MEGABYTE), "mine", None), Added(Chunk("boat w77"), "mine", None)])
    for mode in ("text", "hybrid"):
        assert len(documents.hits(MEGABYTE, mode, None)) == 2
    assert [hit.text == MEGABYTE for hit in documents.hits(MEGABYTE, "fuzzy", None)] == [True]
    for mode in MODES:
        assert MEGABYTE in [hit.text for hit in documents.hits("boat", mode, None)]
