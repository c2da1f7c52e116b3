"""Words near those of a question: which ones, where they count, and where there are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

import pytest
from hypothesis import given

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.errors import EmbedderError, MissingDependencyError
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.search import searching
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.near_words import MOST, PART, WORDS, WordTable, near_words, rare_ones
from tests.search.strategies import texts
from tests.support.knowledge_stores import COMMON

NEAR = {
    "pet": [("pet", 1.0), ("pets", 0.9), ("the", 0.8), ("dog", 0.6), ("dogs", 0.5), ("puppy", 0.5), ("animal", 0.2)],
    "walks": [("dog", 0.3), ("hike", 0.4)],
}


class Table(StaticEmbedder):
    """Has some near words, and one vector for all texts."""

    name = "table"
    dimensions = 2

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [[0.0, 1.0] for _ in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return [0.0, 1.0]

    def nearest_words(self, word: str) -> Sequence[tuple[str, float]]:
        return NEAR.get(word, [])


def test_near_words_are_stems_with_a_part_by_their_cosine_and_neither_stop_words_nor_the_word_itself() -> None:
    assert near_words(Table(), "Which PET?", "english") == {
        "dog": {"pet": pytest.approx(PART * 0.6)},
        "puppi": {"pet": pytest.approx(PART * 0.5)},
    }


def test_a_word_may_be_near_several_of_the_question_and_one_of_the_question_is_near_none() -> None:
    assert near_words(Table(), "a pet that walks", "english")["dog"] == {
        "pet": pytest.approx(PART * 0.6),
        "walk": pytest.approx(PART * 0.3),
    }
    assert "dog" not in near_words(Table(), "a pet dog that walks", "english")


def test_only_so_many_are_near_a_word_and_only_the_first_words_of_a_question_have_near_ones() -> None:
    class Numbers(Table):
        def nearest_words(self, word: str) -> Sequence[tuple[str, float]]:
            return [(f"{word}{'bcdfghjklmnpqrstvwxz'[number]}", 0.9 - number / 50) for number in range(20)]

    assert list(near_words(Numbers(), "boat", "english")) == [f"boat{letter}" for letter in "bcdfghjk"]
    question = " ".join("zq" + letter * 3 for letter in "bcdfghjklmnpqrstvwxz")
    assert len(near_words(Numbers(), question, "english")) == MOST * WORDS


@pytest.mark.parametrize(
    ("embedder", "question", "language"),
    [
        (Table(), "pet", "german"),
        (Table(), "pet", "none"),
        (Table(), "", "english"),
        (Table(), "4711-B ünï 上海", "english"),
        (None, "pet", "english"),
    ],
)
def test_some_questions_have_no_near_words(embedder: object, question: str, language: str) -> None:
    assert near_words(embedder, question, language) == {}


def test_an_engine_is_asked_for_rare_ones_only() -> None:
    assert rare_ones({"dog": 15, "hike": 0, "cat": 14, "pup": 1, "fish": 10, "all": 5}) == ["pup", "all", "fish", "cat"]
    assert rare_ones({"dog": 31}) == []


@pytest.mark.parametrize("error", [EmbedderError("table", "it is broken"), MissingDependencyError("it", "x", "y")])
def test_a_table_that_fails_costs_no_search(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, __: str) -> None:
        raise error

    monkeypatch.setattr(Table, "nearest_words", fail)
    assert near_words(Table(), "pet", "english") == {}


@given(texts)
def test_any_question_has_near_words_or_none(question: str) -> None:
    for parts in near_words(WordLlamaEmbedder(), question, "english").values():
        assert all(0 < part <= PART for part in parts.values())


def test_the_default_embedder_is_a_table_of_words() -> None:
    assert isinstance(WordLlamaEmbedder(), WordTable)
    near = near_words(WordLlamaEmbedder(), "Did she repair it?", "english")
    assert 0 < len(near) <= MOST
    assert "fix" in near


CHUNKS = [
    Chunk("Rex, my dog, is old.", "Ben", None, "first"),
    Chunk("I see.", "Anna", None, "first"),
    Chunk("It rained.", "Ben", None, "second"),
    Chunk("Their pet is a cat.", "Ben", None, "third"),
]

OPEN: Mapping[str, Callable[[Mapping[str, Callable[[], str]], str], EntryStore]] = {
    "memory": lambda _, __: InMemoryStore(),
    "sqlite": lambda _, name: SQLiteStore(name),
    "postgresql": lambda servers, _: PostgreSQLStore(servers["postgresql"](), schema_name=COMMON),
    "mongodb": lambda servers, _: MongoDBStore(servers["mongodb"](), database=COMMON),
}


@pytest.mark.parametrize("kind", OPEN)
def test_every_store_finds_texts_by_near_words_behind_those_with_the_word_itself(
    kind: str, servers_of_the_session: Mapping[str, Callable[[], str]], tmp_path: object
) -> None:
    with OPEN[kind](servers_of_the_session, f"{tmp_path}/memory.db") as store:
        space = uuid4().hex
        knowledge = KnowledgeStore(store, space=space, embedder=Table())
        knowledge.add("notes", CHUNKS)
        hits = knowledge.search("notes", "Which pet?", 10, "text", explain=True)
        assert [hit.text for hit in hits] == [CHUNKS[3].text, CHUNKS[0].text, CHUNKS[1].text]
        matches = [hit.explanation.text for hit in hits if hit.explanation and hit.explanation.text]
        assert [[*each.words] for each in matches] == [["pet"], ["dog"], []]
        assert [[loan.word for loan in each.lent] for each in matches] == [[], [], ["dog"]]
        assert CHUNKS[0].text in [hit.text for hit in knowledge.search("notes", "Which pet?", 10, "hybrid")]
        alone = KnowledgeStore(store, space=space, embedder=None)
        assert [hit.text for hit in alone.search("notes", "Which pet?", 10, "text")] == [CHUNKS[3].text]


def test_in_a_large_scope_words_count_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = KnowledgeStore(InMemoryStore(), embedder=Table())
    knowledge.add("notes", CHUNKS)
    assert len(knowledge.search("notes", "Which pet?", 10, "text")) == 3
    monkeypatch.setattr(searching, "LARGEST_SCOPE_OF_NEAR_WORDS", 3)
    assert len(knowledge.search("notes", "Which pet?", 10, "text")) == 1
