"""From the rankings of one question to its hits: the modes joined, cut to ``top_k``, and explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firefly_memory.search.fusion import DEPTH, Fused, fuse
from firefly_memory.search.hits import Explanation
from firefly_memory.search.ranking import RankedText
from firefly_memory.search.semantic import RankedMeaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A hit whose text has not been read yet: only those that are given back need theirs."""

    id: str
    score: float
    ranks: Mapping[str, int]
    explanation: Explanation | None


def joined(
    *,
    text: Sequence[RankedText] | None = None,
    semantic: Sequence[RankedMeaning] | None = None,
    top_k: int,
    explain: bool = False,
    notes: tuple[str, ...] = (),
) -> list[Found]:
    """The best of the rankings that were made, best first. With one of them its order and scores stay; two are fused.

    ``notes`` say what the search did without, such as vectors.
    """
    texts = {each.id: each for each in text or ()} if explain else {}
    meanings = {each.id: each for each in semantic or ()} if explain else {}
    return [
        Found(
            id=each.id,
            score=each.score,
            ranks=each.ranks,
            explanation=_explained(texts.get(each.id), meanings.get(each.id), notes) if explain else None,
        )
        for each in _in_one_order(text, semantic, top_k)
    ]


def _in_one_order(
    text: Sequence[RankedText] | None, semantic: Sequence[RankedMeaning] | None, top_k: int
) -> list[Fused]:
    if text is not None and semantic is not None:
        ids = {"text": [each.id for each in text[:DEPTH]], "semantic": [each.id for each in semantic[:DEPTH]]}
        return fuse(ids)[:top_k]
    if text is not None:
        return [Fused(each.id, each.score, {"text": rank}) for rank, each in enumerate(text[:top_k], start=1)]
    best = (semantic or ())[:top_k]
    return [Fused(each.id, each.score, {"semantic": rank}) for rank, each in enumerate(best, start=1)]


def _explained(text: RankedText | None, semantic: RankedMeaning | None, notes: tuple[str, ...]) -> Explanation:
    scores = {mode: each.score for mode, each in (("text", text), ("semantic", semantic)) if each is not None}
    return Explanation(
        scores=scores,
        text=None if text is None else text.match,
        semantic=None if semantic is None else semantic.match,
        notes=notes,
    )
