"""Any facts and any queries: every store gives the same hits, those that a look at every fact gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.longterm import FactHit, MemoryService, fact_form, patterns
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.places import lookup_of
from firefly_memory.longterm.rows import FactRow, Filters
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.hits import MODES
from firefly_memory.search.kinds import kinds_asked
from firefly_memory.search.ranking import ScopeCounts, rank_text
from firefly_memory.search.searchable import searchable, value_text
from firefly_memory.search.words import question_pieces, question_words
from firefly_memory.testing.clock import stopped
from tests.support.knowledge_stores import Letters
from tests.support.long_term_stores import COMMON

START = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)

OPEN: dict[str, Callable[[Mapping[str, Callable[[], str]], Path], EntryStore]] = {
    "memory": lambda _, __: InMemoryStore(),
    "sqlite": lambda _, file: SQLiteStore(file),
    "postgresql": lambda servers, _: PostgreSQLStore(servers["postgresql"](), schema_name=COMMON),
    "mongodb": lambda servers, _: MongoDBStore(servers["mongodb"](), database=COMMON),
}
"""A line for each kind of store."""

Stores = Mapping[str, EntryStore]


@pytest.fixture(scope="module")
def stores(
    servers_of_the_session: Mapping[str, Callable[[], str]],
    tmp_path_factory: pytest.TempPathFactory,
    new_sqlite_file: Path,
) -> Iterator[Stores]:
    file = Path(shutil.copy(new_sqlite_file, tmp_path_factory.mktemp("any_facts") / "memory.db"))
    with ExitStack() as opened:
        yield {
            kind: opened.enter_context(open_store(servers_of_the_session, file)) for kind, open_store in OPEN.items()
        }


# Facts and queries


WORDS = [
    "boat", "Boats", "local", "time", "zone", "lesson_local_time", "get-local-time", "the", "of", "AND", "NEAR(", "CAFÉ", "cafe\u0301", "ﬁsh",
    "İstanbul", "ß", "上海", "我在上海学习钢琴", "ไทย", "שלום", "\u202eabc\u202c", "😀", "👩‍👩‍👧", "x_y", "a-b", "%", "_", "*", '"', "'", "\\", "(", "[a-z]",
    ".*", "$where", "{}", "null", "1.5", "\x00", "a\x00b", "\ud800", "\x1e", "\u2028", "\n", "\u0345", "word" * 20,
]  # fmt: skip

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
anything = st.text(max_size=15) | st.text(st.characters(categories=["L", "M", "N", "S", "C"]), max_size=8)
texts = sentences | anything
values: st.SearchStrategy[Any] = (
    texts
    | st.sampled_from([None, True, 0, 1.5, [], {}])
    | st.lists(texts, max_size=3)
    | st.dictionaries(texts, texts, max_size=2)
)
keys = texts.filter(bool)
TYPES = ["world_knowledge", "correction", "of our own %"]
PLACES = [
    {"scope": "global"},
    {"scope": "agent", "agent_id": "planner"},
    {"scope": "user", "user_id": "ann"},
    {"scope": "user", "user_id": "bob"},
    {"scope": "session", "session_id": "s"},
]
IDS = [{}, {"user_id": "ann"}, {"agent_id": "planner", "user_id": "ann", "session_id": "s"}]


class Written(NamedTuple):
    """A fact that is written."""

    key: str
    value: Any
    place: Mapping[str, Any]
    fact_type: str
    confidence: float
    waits: int
    """Microseconds since the one before."""


facts = st.builds(
    Written,
    keys,
    values,
    st.sampled_from(PLACES),
    st.sampled_from(TYPES),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.sampled_from([0, 0, 1, 1_000]),
)
filters = st.fixed_dictionaries(
    {
        "fact_types": st.none() | st.lists(st.sampled_from(TYPES), max_size=2),
        "min_confidence": st.sampled_from([None, 0.0, 0.5, 0.8]),
    }
)


class Facts:
    """What was written in one example, and what a search has to find."""

    def __init__(self, stores: Stores, written: Sequence[Written]) -> None:
        space = uuid4().hex
        self.services = {kind: MemoryService(store, space=space, embedder=Letters()) for kind, store in stores.items()}
        for service in self.services.values():
            _write(service, written)

    def hits(self, query: str, **options: Any) -> Sequence[FactHit]:
        """The same from every store."""
        every = {
            kind: service.search_facts(query, **{"limit": 100, **options}) for kind, service in self.services.items()
        }
        first = every["memory"]
        for kind, hits in every.items():
            assert [_seen(hit) for hit in hits] == [_seen(hit) for hit in first], kind
            assert hits.next == first.next, kind
        return first

    def pages(self, query: str, limit: int, **options: Any) -> Iterator[FactHit]:
        page: Any = self.hits(query, limit=limit, **options)
        while page.next is not None:
            assert len(page) == limit
            yield from page
            page = self.hits(query, limit=limit, after=page.next, **options)
        yield from page

    def visible(self, ids: Mapping[str, str]) -> list[FactRow]:
        memory = self.services["memory"]
        facts = memory.store.blocking.log(LONG_TERM_LOG).facts
        rows = run_without_loop(facts.list(lookup_of(memory.space, ids).words, Filters(), 1_000, None))
        return list(run_without_loop(facts.read([row.id for row in rows])))  # with their words

    def fitting(self, query: str, ids: Mapping[str, str], wanted: Mapping[str, Any]) -> list[str]:
        """By a look at every fact: the ids in the order of their confidence."""
        words = searchable(query).split()
        found = [
            row for row in self.visible(ids) if _passes(row, wanted) and any(_has(words, each) for each in _lines(row))
        ]
        return [row.id for row in sorted(found, key=lambda row: (-row.confidence, -row.newest.timestamp(), row.id))]

    def ranked(self, query: str, ids: Mapping[str, str], wanted: Mapping[str, Any]) -> list[tuple[str, float]]:
        """By a look at every fact."""
        rows, words = self.visible(ids), question_words(query, "english")
        having = {word: sum(word in row.words for row in rows) for word in words}
        candidates = [Candidate(id=row.id, words=row.words) for row in rows if _passes(row, wanted)]
        ranked = rank_text(words, candidates, ScopeCounts(len(rows), having), [], kinds_asked(query, "english"))
        return [(each.id, each.score) for each in ranked]


def _write(service: MemoryService, written: Sequence[Written]) -> None:
    """The ids are the same in every store, and not in the order of the writing."""
    with pytest.MonkeyPatch.context() as patch, stopped(START) as now:
        numbers = count()
        patch.setattr(fact_form, "new_entry_id", lambda: uuid5(UUID(service.space), str(next(numbers))).hex)
        for each in written:
            now.advance(microseconds=each.waits)
            service.set_fact(each.key, each.value, fact_type=each.fact_type, confidence=each.confidence, **each.place)


def _lines(row: FactRow) -> tuple[str, str]:
    fact = fact_form.fact_of(row)
    return searchable(fact.key), searchable(value_text(fact.value))


def _has(words: Sequence[str], text: str) -> bool:
    for word in words:
        _, found, text = text.partition(word)
        if not found:
            return False
    return True


def _passes(row: FactRow, wanted: Mapping[str, Any]) -> bool:
    types, least = wanted["fact_types"], wanted["min_confidence"]
    return (types is None or row.fact_type in types) and row.confidence >= (least or 0.0)


def _seen(hit: FactHit) -> tuple[Any, ...]:
    return hit.id, ascii(hit.text), hit.score, hit.ranks, hit.fact.confidence, hit.fact.updated_at


def _has_letters(query: str) -> bool:
    """Whether the embedder of these tests has anything to say of it."""
    return any(Letters().embed_weighted([(piece.text, 1.0) for piece in question_pieces(query, "english")]))


def check(stores: Stores, written: Sequence[Written], asked: Sequence[str], wanted: Mapping[str, Any]) -> None:
    facts = Facts(stores, written)
    parts = [each.key[1:5] for each in written[:1]]
    for query, ids in zip([*asked, *parts], IDS, strict=False):
        by_fuzzy = [hit.id for hit in facts.hits(query, **ids, **wanted)]
        assert by_fuzzy == facts.fitting(query, ids, wanted)
        assert [hit.id for hit in facts.pages(query, 2, **ids, **wanted)] == by_fuzzy
        by_text = [(hit.id, hit.score) for hit in facts.hits(query, mode="text", **ids, **wanted)]
        assert by_text == facts.ranked(query, ids, wanted)
        compared = {row.id for row in facts.visible(ids) if _passes(row, wanted)} if _has_letters(query) else set()
        assert {hit.id for hit in facts.hits(query, mode="semantic", **ids, **wanted)} == compared
        hybrid = facts.hits(query, mode="hybrid", **ids, **wanted)
        assert {hit.id for hit in hybrid} == {name for name, _ in by_text} | compared
        assert facts.hits(query, mode="best", **ids, **wanted) == hybrid


examples = given(st.lists(facts, max_size=12), st.lists(texts, min_size=1, max_size=2), filters)
allowed = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=8, suppress_health_check=allowed, derandomize=True)
@examples
def test_every_store_finds_what_a_look_at_every_fact_finds(
    stores: Stores, written: list[Written], asked: list[str], wanted: dict[str, Any]
) -> None:
    check(stores, written, asked, wanted)


@pytest.mark.thorough
@settings(max_examples=200, suppress_health_check=allowed)
@examples
def test_every_store_finds_the_same_of_many_more_facts(
    stores: Stores, written: list[Written], asked: list[str], wanted: dict[str, Any]
) -> None:
    check(stores, written, asked, wanted)


def test_a_hundred_facts_are_found_by_every_store_in_the_same_order(stores: Stores) -> None:
    places = [each for each in PLACES if each.get("user_id") != "bob"]
    written = [
        Written(f"boat {number}", f"a boat {'lake ' * (number % 7)}{number % 10}", places[number % 4], TYPES[number % 2], number % 5 / 4, number % 3)
        for number in range(100)
    ]  # fmt: skip
    facts = Facts(stores, written)
    filtered: list[dict[str, Any]] = [{"min_confidence": None}, {"fact_types": TYPES[1:2], "min_confidence": 0.5}]
    for mode, options in product(MODES, filtered):
        query = "boat" if mode == "fuzzy" else "which boat, which lake 7?"
        every = facts.hits(query, mode=mode, **IDS[-1], **options)
        assert len(every) == (100 if len(options) == 1 else 30), mode
        for limit in (1, 10):
            assert len(facts.hits(query, mode=mode, limit=limit, **IDS[-1], **options)) == limit


def test_a_pattern_that_is_too_long_for_a_database_is_looked_for_all_the_same(stores: Stores) -> None:
    words = [f"w{number}" for number in range(3 * patterns.MOST_WORDS)]
    values = [
        " ".join(words),
        " ".join(words[:-1]),
        " ".join(words[1:]),
        f"{' '.join(words)} more",
        "y" * 300,
        "y" * 299,
    ]
    written = [Written(f"key {n}", value, PLACES[0], TYPES[0], 1.0, 1) for n, value in enumerate(values * 3)]
    facts = Facts(stores, [each._replace(key=f"{each.key} {n}") for n, each in enumerate(written)])
    every = {"fact_types": None, "min_confidence": None}
    for query, found in (
        (" ".join(words), 6),
        (" ".join(words[:-1]), 9),
        ("y" * 300, 3),
        ("y" * 299, 6),
        ("y" * 301, 0),
    ):
        expected = facts.fitting(query, {}, every)
        assert len(expected) == found
        assert [hit.id for hit in facts.hits(query)] == expected
        for limit in (1, 2, 5):
            assert [hit.id for hit in facts.pages(query, limit)] == expected
