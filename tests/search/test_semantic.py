"""The search by meaning: vectors and signatures as they are stored, the question's vector, and the ranking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.search.embedders.batches import embed_all
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.search.neighbours import REACH
from firefly_memory.search.ranking import ScopeCounts
from firefly_memory.search.semantic import (
    Question,
    async_question_vector,
    common_level,
    question_vector,
    rank_meaning,
    to_rank,
)
from firefly_memory.search.signatures import (
    cosines,
    estimated_cosines,
    nearest,
    signature_bytes,
    signatures_from,
    vector_bytes,
    vectors_from,
)
from tests.search.strategies import candidate_lists, texts

COUNTS = ScopeCounts(100, {"boat": 2, "lake": 40})


class Static(StaticEmbedder):
    """Notes the weights of a question."""

    name = "static"
    dimensions = 2

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [[0.0, 1.0] for _ in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts, purpose)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        self.pieces = list(pieces)
        return [1.0, 0.0]


async def test_a_static_embedder_is_given_each_word_with_its_weight_in_the_scope() -> None:
    embedder = Static()
    question = Question("Which BOATS were on the lake?", "english", COUNTS)
    assert question_vector(embedder, question).tolist() == [1.0, 0.0]
    assert embedder.pieces == [("BOATS", COUNTS.idf("boat")), ("lake", COUNTS.idf("lake"))]
    assert (await async_question_vector(embedder, question)).tolist() == [1.0, 0.0]
    assert Question("北京", "english", COUNTS).weighted_pieces() == [("北京", COUNTS.idf("北京"))]
    assert Question("", "english", COUNTS).weighted_pieces() == []


async def test_other_embedders_are_not_given_the_names_of_people() -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    embedder = CallableEmbedder(embed, name="noting", dimensions=2)
    question = Question("Where did Anna's sister meet Ben?", "english", COUNTS, ["Anna Berg", "Ben"])
    assert question_vector(embedder, question).tolist() == [1.0, 0.0]
    await async_question_vector(embedder, question)
    await async_question_vector(embedder, Question("Anna?", "english", COUNTS, ["Anna Berg"]))
    assert asked == ["Where did sister meet"] * 2 + ["Anna?"]


@given(st.lists(st.lists(st.floats(-9, 9, width=32), min_size=11, max_size=11), max_size=5))
def test_vectors_and_signatures_come_back_as_they_were_stored(rows: list[list[float]]) -> None:
    vectors = np.array(rows, dtype=np.float32).reshape(len(rows), 11)
    assert vectors_from([vector_bytes(row) for row in vectors], 11).tolist() == vectors.tolist()
    signatures = signatures_from([signature_bytes(row) for row in vectors], 11)
    assert signatures.shape == (len(rows), 2)
    assert (np.unpackbits(signatures, axis=1)[:, :11] == (vectors > 0)).all()
    vectors.flags.writeable = False
    for question in vectors:
        assert np.isfinite(cosines(question, vectors)).all()
        assert np.isfinite(estimated_cosines(question, signatures)).all()


def test_cosines_are_exact_and_those_of_signatures_are_near() -> None:
    chance = np.random.default_rng(7)
    topics = chance.normal(size=(40, 256))
    vectors = (topics[chance.integers(0, 40, 2000)] + chance.normal(size=(2000, 256))).astype(np.float32)
    question = (topics[3] + chance.normal(size=256)).astype(np.float32)
    exact = cosines(question, vectors)
    assert exact[5] == pytest.approx(
        question @ vectors[5] / np.linalg.norm(question) / np.linalg.norm(vectors[5]), abs=1e-5
    )
    estimated = estimated_cosines(question, signatures_from([signature_bytes(row) for row in vectors], 256))
    assert np.abs(exact - estimated).mean() < 0.04
    names = [f"{number:04}" for number in range(2000)]
    best = set(nearest(exact, names, 10).tolist())
    assert best == set(np.argsort(-exact)[:10].tolist())
    assert best <= set(nearest(estimated, names).tolist())


def test_without_a_length_there_is_no_cosine_and_of_equal_rows_the_first_names_are_taken() -> None:
    zeros, rows = np.zeros(8, dtype=np.float32), np.ones((3, 8), dtype=np.float32)
    assert cosines(zeros, rows).tolist() == cosines(rows[0], np.zeros((3, 8), dtype=np.float32)).tolist() == [0, 0, 0]
    assert estimated_cosines(zeros, np.zeros((2, 1), dtype=np.uint8)).tolist() == [0, 0]
    assert sorted(nearest(cosines(rows[0], rows), ["c", "a", "b"], 2).tolist()) == [1, 2]
    assert nearest(cosines(rows[0], rows), ["c", "a", "b"]).tolist() == [0, 1, 2]


def turn(number: int, group: str | None = "session") -> Candidate:
    return Candidate(id=f"{group}{number}", group=group, position=number)


def test_a_document_lends_what_it_has_above_the_common_level() -> None:
    session = [turn(number) for number in range(1, 6)]
    level = common_level([0.9, 0.1, 0.1, 0.1, 0.3])
    assert level == pytest.approx(0.3 + np.std([0.9, 0.1, 0.1, 0.1, 0.3]))
    ranked = rank_meaning(session, {"session1": 0.9, "session3": 0.1, "session4": 0.1, "session5": 0.3}, level)
    above = 0.9 - level
    assert [(each.id, each.match.neighbour, each.match.cosine) for each in ranked] == [
        ("session1", None, 0.9),
        ("session2", "session1", None),
        ("session3", "session1", 0.1),
        ("session4", "session1", 0.1),
        ("session5", None, 0.3),
    ]
    expected = [above, 0.7 * above, 0.49 * above, 0.343 * above, 0.3 - level]
    assert [each.score for each in ranked] == pytest.approx(expected)


def test_the_factors_of_text_hold_for_meaning_as_well() -> None:
    documents = [
        Candidate(id="a", words=["_is_a", "x", "x"], who="Ben"),
        Candidate(id="b", words=["_is_n", "x", "x"], who="Ben"),
        Candidate(id="c", words=["x", "x", "x"], who="Anna"),
    ]
    ranked = rank_meaning(documents, dict.fromkeys("abc", 0.6), 0.1, ["Anna"], "n")
    assert [each.id for each in ranked] == ["c", "b", "a"]
    assert [each.score for each in ranked] == pytest.approx([0.5 * 1.4 * factor for factor in (1.5, 1.3, 0.6)])
    assert [(each.match.person, each.match.kind, each.match.question) for each in ranked] == [
        ("Anna", 1, 1),
        (None, 1.3, 1),
        (None, 1, 0.6),
    ]
    below = rank_meaning(documents, dict.fromkeys("abc", 0.0), 0.1, ["Anna"], "n")
    assert [each.id for each in below] == ["c", "b", "a"], "below the common level in the same order"
    assert [each.score for each in below] == pytest.approx([-0.1 / 1.4 / 1.5, -0.1 / 1.4 / 1.3, -0.1 / 1.4 / 0.6])


def test_a_question_lends_all_of_its_meaning_to_the_answer_right_after_it() -> None:
    session = [
        Candidate(id=f"{place}", words=["_is_a"] * (place == 2), group="g", position=place) for place in (1, 2, 3)
    ]
    ranked = rank_meaning(session, {"2": 0.6}, 0.1)
    assert {each.id: each.score / each.match.length for each in ranked} == pytest.approx(
        {"3": 0.5, "2": 0.5 * 0.6, "1": 0.5 * 0.5}
    )
    assert [each.id for each in rank_meaning(session, {"2": 0.6}, 0.1, most=1)] == ["3"]


def test_a_document_without_a_vector_and_without_a_loan_is_left_out() -> None:
    assert [each.id for each in rank_meaning([turn(1), turn(9), turn(2, None)], {"session1": 0.5}, 0.1)] == ["session1"]
    assert common_level([]) == 0.0


@given(candidate_lists(), st.data())
def test_the_order_of_the_candidates_does_not_matter_and_loans_stay_in_their_group(
    candidates: list[Candidate], data: st.DataObject
) -> None:
    given_cosines = {each.id: data.draw(st.floats(-1, 1)) for each in candidates if data.draw(st.booleans())}
    level = data.draw(st.floats(-1, 1))
    ranked = rank_meaning(candidates, given_cosines, level)
    assert rank_meaning(candidates[::-1], given_cosines, level) == ranked
    by_id = {each.id: each for each in candidates}
    for each in ranked:
        if each.match.neighbour is not None:
            lender = by_id[each.match.neighbour]
            assert by_id[each.id].group is not None
            assert by_id[each.id].group == lender.group
            assert abs(by_id[each.id].position - lender.position) <= REACH
            assert given_cosines[lender.id] > level


@given(texts, st.lists(texts, max_size=2))
def test_any_question_has_a_vector(text: str, names: list[str]) -> None:
    question = Question(text, "english", COUNTS, names)
    assert question_vector(Static(), question).shape == (2,)
    assert embed_all(Static(), [question.without_names()], "query").shape == (1, 2)


def test_the_nearest_documents_are_ranked_and_of_equal_ones_the_first() -> None:
    assert to_rank({"a": -0.1, "d": 0.5, "c": 0.5, "b": 0.5, "e": 0.9}, 3) == ["e", "b", "c"]
    assert to_rank({"a": 0.1}, 3) == ["a"]
    assert to_rank({}, 3) == []
