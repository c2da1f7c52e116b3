"""From rankings to hits: one mode or both, cut, with texts and explanations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.hits import Explanation
from firefly_memory.search.ranking import ScopeCounts, rank_text
from firefly_memory.search.results import joined
from firefly_memory.search.semantic import rank_meaning
from tests.search.strategies import candidate_lists, questions, scope_counts

TEXT = rank_text(
    ["boat"],
    [Candidate(id="a", words=["boat"], group="g", position=1), Candidate(id="b", group="g", position=2)],
    ScopeCounts(3, {"boat": 1}),
)
MEANING = rank_meaning([Candidate(id=each) for each in "bc"], {"b": 0.9, "c": 0.5}, 0.1)


def test_one_ranking_alone_keeps_its_order_and_its_scores() -> None:
    assert [(each.id, each.score, each.ranks, each.explanation) for each in joined(text=TEXT, top_k=9)] == [
        ("a", TEXT[0].score, {"text": 1}, None),
        ("b", TEXT[1].score, {"text": 2}, None),
    ]
    assert [(each.id, each.score, each.ranks) for each in joined(semantic=MEANING, top_k=1)] == [
        ("b", MEANING[0].score, {"semantic": 1})
    ]


def test_both_rankings_are_fused_and_each_hit_says_why_it_is_there() -> None:
    found = joined(text=TEXT, semantic=MEANING, top_k=2, explain=True, notes=("without the index",))
    assert [(each.id, each.ranks) for each in found] == [("b", {"text": 2, "semantic": 1}), ("a", {"text": 1})]
    assert found[0].explanation == Explanation(
        scores={"text": TEXT[1].score, "semantic": MEANING[0].score},
        text=TEXT[1].match,
        semantic=MEANING[0].match,
        notes=("without the index",),
    )
    assert TEXT[1].match.lent[0].neighbour == "a"
    assert found[1].explanation is not None
    assert found[1].explanation.semantic is None


def test_without_a_ranking_there_is_no_hit() -> None:
    assert joined(top_k=3) == joined(text=[], semantic=[], top_k=3) == []


def test_more_hits_than_fusion_looks_at_come_from_one_ranking() -> None:
    many = [Candidate(id=f"{number:03}", words=["boat"]) for number in range(150)]
    assert len(joined(text=rank_text(["boat"], many, ScopeCounts(150, {"boat": 150})), top_k=140)) == 140


@given(questions, candidate_lists(), scope_counts, st.integers(1, 5))
def test_fused_hits_are_candidates_each_once(
    question: list[str], candidates: list[Candidate], counts: ScopeCounts, top_k: int
) -> None:
    ranked = rank_text(question, candidates, counts)
    meanings = rank_meaning(candidates, {each.id: len(each.words) / 10 for each in candidates}, 0.2)
    ids = [each.id for each in joined(text=ranked, semantic=meanings, top_k=top_k)]
    assert len(ids) == len(set(ids)) == min(top_k, len(candidates))
    assert set(ids) <= {each.id for each in candidates}
