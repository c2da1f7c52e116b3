"""Recall and mean reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from evaluation.corpus import Question


class Figures(NamedTuple):
    """How well the evidence of some questions was found, in percent."""

    recall_5: float
    recall_10: float
    mrr: float
    error_10: float
    """The standard error of ``recall_10``: another set of as many questions of this kind would have a figure that
    differs by about so much."""


def figures(questions: Sequence[Question], search: Callable[[str], Sequence[str]]) -> Figures:
    """Recall is the part of a question's evidence among the first hits; the reciprocal rank is that of the first.

    Two questions or more.
    """
    rows = [_of_one(question.evidence, search(question.text)) for question in questions]
    of_5, of_10, ranks = (tuple(100 * each for each in column) for column in zip(*rows, strict=True))
    return Figures(fmean(of_5), fmean(of_10), fmean(ranks), stdev(of_10) / sqrt(len(of_10)))


def _of_one(evidence: Sequence[str], hits: Sequence[str]) -> tuple[float, float, float]:
    first = next((1 / rank for rank, hit in enumerate(hits, start=1) if hit in evidence), 0.0)
    return _recall(evidence, hits[:5]), _recall(evidence, hits[:10]), first


def _recall(evidence: Sequence[str], hits: Sequence[str]) -> float:
    return len(set(evidence).intersection(hits)) / len(evidence)
