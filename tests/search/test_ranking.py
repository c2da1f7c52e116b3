"""The ranking of candidates for text: weights, neighbours, people, order, explanation."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.factors import KIND, QUESTION
from firefly_memory.search.kinds import kinds_among
from firefly_memory.search.neighbours import REACH, Lent
from firefly_memory.search.ranking import (
    Near,
    RankedText,
    ScopeCounts,
    people_named,
    people_of,
    rank_text,
    words_for_engine,
)
from tests.search.strategies import WORDS, candidate_lists, languages, people, questions, scope_counts, texts

near_parts = st.dictionaries(
    st.sampled_from(WORDS), st.dictionaries(st.sampled_from([*WORDS, "nowhere"]), st.floats(0.1, 0.7))
)

COUNTS = ScopeCounts(10, {"boat": 1, "lake": 4})
BOAT = log(1 + 9.5 / 1.5)
LAKE = log(1 + 6.5 / 4.5)


def turn(number: int, *words: str, group: str = "session", who: str | None = None) -> Candidate:
    return Candidate(id=f"{group}{number}", words=words, who=who, group=group, position=number)


def scores(ranked: list[RankedText]) -> dict[str, float]:
    """Without the factor for the length."""
    return {each.id: each.score / each.match.length for each in ranked}


def test_a_word_weighs_more_if_fewer_documents_have_it_and_less_each_time_it_is_repeated() -> None:
    alone = [Candidate(id="a", words=["boat"]), Candidate(id="b", words=["lake", "x", "lake"]), Candidate(id="c")]
    assert scores(rank_text(["boat", "lake"], alone, COUNTS)) == pytest.approx(
        {"a": BOAT, "b": LAKE * 2 * 1.9 / 2.9}, abs=1e-12
    )


def test_of_documents_with_the_same_words_the_longer_one_comes_first_up_to_a_length() -> None:
    documents = [Candidate(id=f"{words:03}", words=["boat", *"x" * (words - 1)]) for words in (1, 7, 64, 65, 500)]
    ranked = rank_text(["boat"], documents, COUNTS)
    assert [each.id for each in ranked] == ["064", "065", "500", "007", "001"]
    assert [round(each.match.length, 2) for each in ranked] == [2.2, 2.2, 2.2, 1.6, 1.2]
    assert [each.score for each in ranked] == pytest.approx([BOAT * each.match.length for each in ranked])


def test_a_word_of_the_question_counts_once_however_often_it_is_asked() -> None:
    assert rank_text(["boat", "boat"], [turn(1, "boat")], COUNTS) == rank_text(["boat"], [turn(1, "boat")], COUNTS)


def test_neighbours_lend_less_with_each_step_and_less_to_those_before_them() -> None:
    session = [turn(5, "boat"), *(turn(number) for number in (1, 2, 3, 4, 6, 7, 8, 9))]
    assert scores(rank_text(["boat"], session, COUNTS)) == pytest.approx(
        {
            "session5": BOAT,
            "session6": 0.7 * BOAT,
            "session7": 0.7 * 0.7 * BOAT,
            "session8": 0.7 * 0.49 * BOAT,
            "session4": 0.5 * BOAT,
            "session3": 0.5 * 0.7 * BOAT,
            "session2": 0.5 * 0.49 * BOAT,
        }
    )


def test_a_question_counts_less_and_lends_all_to_the_answer_right_after_it() -> None:
    session = [turn(3), turn(4), turn(5, "_is_a", "boat"), turn(6), turn(7)]
    ranked = rank_text(["boat"], session, COUNTS)
    assert scores(ranked) == pytest.approx(
        {
            "session6": BOAT,
            "session5": 0.6 * BOAT,
            "session4": 0.5 * BOAT,
            "session7": 0.7 * 0.7 * BOAT,
            "session3": 0.5 * 0.7 * BOAT,
        }
    )
    assert {each.id: each.match.question for each in ranked if each.match.question != 1} == {"session5": 0.6}


def test_a_document_of_a_kind_that_is_asked_for_counts_more() -> None:
    documents = [
        Candidate(id="a", words=["_is_p", "boat"]),
        Candidate(id="b", words=["_scope", "_is_nt", "boat"]),
        Candidate(id="c", words=["boat"]),
    ]
    assert scores(rank_text(["boat"], documents, COUNTS)) == pytest.approx({"a": BOAT, "b": BOAT, "c": BOAT})
    ranked = rank_text(["boat"], documents, COUNTS, kinds="tp")
    assert scores(ranked) == pytest.approx({"a": 1.3 * BOAT, "b": 1.3 * BOAT, "c": BOAT})
    assert {each.id: each.match.kind for each in ranked} == {"a": 1.3, "b": 1.3, "c": 1.0}


def test_a_word_near_one_of_the_question_counts_for_a_part_of_it() -> None:
    near = {"ship": {"boat": 0.5, "lake": 0.1}, "pond": {"lake": 0.5}}
    documents = [
        Candidate(id="a", words=["boat", "ship"]),
        Candidate(id="b", words=["ship", "ship", "pond"]),
        Candidate(id="c", words=["sea"]),
    ]
    ranked = rank_text(["boat", "lake"], documents, COUNTS, near=near)
    twice = 2 * 1.9 / 2.9
    assert scores(ranked) == pytest.approx({"a": BOAT + 0.1 * LAKE, "b": 0.5 * BOAT * twice + 0.5 * LAKE}, abs=1e-12)
    assert {each.id: {*each.match.words} for each in ranked} == {"a": {"boat", "ship"}, "b": {"ship", "pond"}}
    assert rank_text(["boat", "lake"], documents, COUNTS)[0].match.words == {"boat": BOAT}


def test_a_near_word_is_lent_and_the_explanation_has_the_word_that_the_neighbour_has() -> None:
    ranked = rank_text(["boat"], [turn(1, "ship"), turn(2)], COUNTS, near={"ship": {"boat": 0.5}})
    assert [each.match.lent for each in ranked[:1]] == [()]
    (lent,) = ranked[1].match.lent
    assert lent == Lent("ship", "session1", lent.weight)
    assert lent.weight == pytest.approx(0.7 * 0.5 * BOAT)


def test_of_equal_near_words_the_same_one_counts_each_time() -> None:
    near = {"ship": {"boat": 0.5}, "raft": {"boat": 0.5}}
    for words in (["ship", "raft"], ["raft", "ship"]):
        (found,) = rank_text(["boat"], [Candidate(id="a", words=words)], COUNTS, near=near)
        assert dict(found.match.words) == {"ship": pytest.approx(0.5 * BOAT)}


def test_each_word_counts_by_its_own_weight_or_by_the_largest_of_the_neighbours() -> None:
    session = [turn(1, "boat", "boat"), turn(2, "lake"), turn(3, "boat"), turn(4, "lake")]
    found = {each.id: each for each in rank_text(["boat", "lake"], session, COUNTS)}
    loan = 0.7 * BOAT * 2 * 1.9 / 2.9
    assert found["session2"].score == pytest.approx((loan + LAKE) * found["session2"].match.length)
    assert found["session2"].match.words == {"lake": LAKE}
    (lent,) = found["session2"].match.lent
    assert lent == Lent("boat", "session1", lent.weight)
    assert lent.weight == pytest.approx(loan)
    assert found["session2"].match.person is None


def test_of_documents_at_one_position_the_one_with_the_larger_weight_lends() -> None:
    session = [turn(2), Candidate(id="b", words=["boat"], group="session", position=1)]
    session += [Candidate(id=each, words=["boat", "boat"], group="session", position=1) for each in "dc"]
    lent = {each.id: each.match.lent for each in rank_text(["boat"], session, COUNTS)}["session2"]
    assert [each.neighbour for each in lent] == ["c"]


def test_documents_without_a_group_have_no_neighbours() -> None:
    apart = [Candidate(id="a", words=["boat"], position=1), Candidate(id="b", position=2)]
    assert list(scores(rank_text(["boat"], apart, COUNTS))) == ["a"]


def test_a_person_named_in_the_question_raises_what_they_said_and_what_is_about_them() -> None:
    documents = [
        Candidate(id="a", words=["boat"], who="Ben"),
        Candidate(id="b", words=["boat"], who="Anna Berg"),
        Candidate(id="c", words=["boat"], about=["Ben", "Anna Berg"]),
        Candidate(id="d", words=["lake"], who="Anna Berg"),
        Candidate(id="e", who="Anna Berg"),
    ]
    named = people_named("What did ANNA's boat cost?", ["Ben", "Anna Berg"], "english")
    assert named == ["Anna Berg"]
    ranked = rank_text(["anna", "boat"], documents, COUNTS, named)
    assert [(each.id, each.match.person) for each in ranked] == [("b", "Anna Berg"), ("c", "Anna Berg"), ("a", None)]
    assert scores(ranked) == pytest.approx({"b": BOAT * 1.5, "c": BOAT * 1.5, "a": BOAT})


def test_a_name_that_is_a_stop_word_names_nobody() -> None:
    assert people_named("Will it rain?", ["Will", "Rain Man"], "english") == ["Rain Man"]


def test_people_are_those_who_speak_and_those_whom_it_is_about() -> None:
    candidates = [Candidate(id="a", who="Ben"), Candidate(id="b", about=["Anna", ""]), Candidate(id="c", who="")]
    assert people_of(candidates) == {"Ben", "Anna"}


def test_an_engine_is_asked_for_the_rarest_words_first_and_in_a_large_scope_for_no_frequent_one() -> None:
    having = {"boat": 400, "lake": 5, "may": 300, "2023": 300}
    question = ["boat", "may", "nowhere", "lake", "2023", "boat"]
    assert words_for_engine(question, ScopeCounts(999, having)) == ["lake", "2023", "may", "boat"]
    assert words_for_engine(question, ScopeCounts(1000, having)) == ["lake", "2023", "may"]
    assert words_for_engine(["boat", "nowhere"], ScopeCounts(1000, having)) == ["boat"]
    assert words_for_engine(["nowhere"], ScopeCounts(1000, having)) == []


def test_equal_scores_are_in_the_order_of_ids_up_to_as_many_as_are_asked_for() -> None:
    documents = [Candidate(id=each, words=["boat"]) for each in "cab"]
    ranked = rank_text(["boat"], documents, COUNTS)
    assert [each.id for each in ranked] == ["a", "b", "c"]
    assert rank_text(["boat"], documents, COUNTS, most=2) == ranked[:2]


def test_a_word_in_every_document_still_counts_and_a_wrong_count_does_no_harm() -> None:
    for counts in (ScopeCounts(3, {"boat": 3}), ScopeCounts(3, {"boat": 9}), ScopeCounts(0, {})):
        assert [each.score > 0 for each in rank_text(["boat"], [turn(1, "boat")], counts)] == [True]


@given(questions, candidate_lists(), scope_counts, st.lists(people), st.randoms())
def test_the_order_of_the_candidates_does_not_matter(
    question: list[str], candidates: list[Candidate], counts: ScopeCounts, named: list[str], chance: st.DataObject
) -> None:
    ranked = rank_text(question, candidates, counts, named)
    chance.shuffle(candidates)  # type: ignore[attr-defined]
    assert rank_text(question, candidates, counts, named[::-1]) == ranked
    assert [(-each.score, each.id) for each in ranked] == sorted((-each.score, each.id) for each in ranked)


@given(questions, candidate_lists(), scope_counts, st.sampled_from(["", "nt", "p"]), near_parts)
def test_neighbours_never_cross_groups_and_explanations_add_up(
    question: list[str], candidates: list[Candidate], counts: ScopeCounts, kinds: str, parts: Near
) -> None:
    by_id = {each.id: each for each in candidates}
    near = {
        word: {asked: part for asked, part in of.items() if asked in question}
        for word, of in parts.items()
        if word not in question
    }
    for each in rank_text(question, candidates, counts, kinds=kinds, near=near):
        found = by_id[each.id]
        for lent in each.match.lent:
            neighbour = by_id[lent.neighbour]
            assert found.group is not None
            assert neighbour.group == found.group
            assert 1 <= abs(neighbour.position - found.position) <= REACH
            assert lent.word in neighbour.words
        assert set(each.match.words) <= set(found.words) & {*question, *near}
        total = sum(each.match.words.values()) + sum(lent.weight for lent in each.match.lent)
        is_of = {*kinds_among(found.words)}
        assert each.match.question == (QUESTION if "a" in is_of else 1)
        assert each.match.kind == (KIND if is_of & set(kinds) else 1)
        assert each.score == pytest.approx(total * found.length_factor * each.match.question * each.match.kind)


@given(questions, candidate_lists(), scope_counts)
def test_a_group_is_ranked_the_same_whatever_other_groups_there_are(
    question: list[str], candidates: list[Candidate], counts: ScopeCounts
) -> None:
    first = [each for each in candidates if each.group == "first"]
    ids = {each.id for each in first}
    together = [each for each in rank_text(question, candidates, counts) if each.id in ids]
    assert together == rank_text(question, first, counts)


@given(texts, st.lists(texts, max_size=3), languages)
def test_any_question_may_be_asked_about_people_of_any_name(question: str, names: list[str], language: str) -> None:
    assert set(people_named(question, names, language)) <= set(names)
