"""What ``firefly-memory search`` does: :func:`firefly_memory.service.search`, on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from firefly_memory import service
from firefly_memory.cli.invocation import current
from firefly_memory.cli.looking import cell, column
from firefly_memory.cli.output import say
from firefly_memory.cli.search_indexes import embedder_named
from firefly_memory.cli.tables import Column, show_table
from firefly_memory.cli.target import Where
from firefly_memory.cli.text import Shown, on_one_line
from firefly_memory.errors import InvalidEntryError
from firefly_memory.looking import Field, Row
from firefly_memory.search.hits import Explanation, Hit, checked_mode
from firefly_memory.search.ranking import TextMatch
from firefly_memory.search.semantic import SemanticMatch
from firefly_memory.service.registered import search_of
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import reading

_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the filters of its search."""

    question: str
    filters: Mapping[str, str]

    @classmethod
    def on_the_command_line(cls, question: str, filters: Mapping[str, str], named: Mapping[str, str | None]) -> Asked:
        """``named`` are the filters that have options of their own; ``UsageError`` if one is given twice."""
        by_name = {name: value for name, value in named.items() if value is not None}
        twice = [name for name in by_name if name in filters]
        if twice:
            raise click.UsageError(f"{twice[0]} is given twice", click.get_current_context())
        return cls(_read_question() if question == _STANDARD_INPUT else question, {**by_name, **filters})


def _read_question() -> str:
    """The text of the standard input. Bytes that are not UTF-8 become U+FFFD."""
    question = sys.stdin.buffer.read().decode(errors="replace").strip()
    if not question:
        raise click.UsageError("the standard input has no question", click.get_current_context())
    return question


def show_hits(
    where: Where, kind: str, asked: Asked, *, mode: str, limit: int, explain: bool, embedder: str | None
) -> None:
    _check(limit)
    resource, search = search_of(kind)
    with reading(where.target(), timeout=where.timeout) as store:
        hits = service.search(
            store,
            kind,
            asked.question,
            limit,
            checked_mode(mode),
            where=asked.filters,
            explain=explain,
            embedder=embedder_named(embedder),
        )
        rows = [_row(store, kind, hit) for hit in hits]
    fields = [each for name in search.shows if (each := resource.field(name)) is not None]
    if current().json or hits:
        _show(kind, hits, rows, fields)
    else:
        say(f"no {kind} were found")
    if not current().json:
        for line in _explanations(hits) if explain else ():
            print(line)


def _check(limit: int) -> None:
    if limit > service.MOST_ROWS:
        raise InvalidEntryError("--limit", f"is {limit}; a search gives at most {service.MOST_ROWS} hits")


def _row(store: EntryStore, kind: str, hit: Hit) -> Row:
    """The fields of a hit; none if it was deleted meanwhile."""
    return service.get(store, kind, hit.id) or {}


def _show(kind: str, hits: Sequence[Hit], rows: Sequence[Row], fields: Sequence[Field]) -> None:
    found = list(enumerate(zip(hits, rows, strict=True), start=1))
    result = [_as_json(rank, hit, {each.name: row.get(each.name) for each in fields}) for rank, (hit, row) in found]
    there = [each for each in fields if any(row.get(each.name) is not None for row in rows)]
    columns = [
        Column("rank", align="right"),
        Column("score", align="right"),
        Column("id", is_whole=True),
        Column("text"),
        *map(column, there),
    ]
    cells = [
        [rank, _figure(hit.score), hit.id, hit.text, *(cell(each, row.get(each.name)) for each in there)]
        for rank, (hit, row) in found
    ]
    show_table({"kind": kind, "hits": result}, columns, cells)


def _figure(number: float) -> str:
    return f"{number:.4f}"


def _as_json(rank: int, hit: Hit, fields: Mapping[str, Any]) -> dict[str, Any]:
    found = {"rank": rank, "id": hit.id, "score": hit.score, "text": hit.text, "ranks": dict(hit.ranks), **fields}
    return found if hit.explanation is None else {**found, "explanation": _explanation_as_json(hit.explanation)}


def _explanation_as_json(explanation: Explanation) -> dict[str, Any]:
    text, semantic = explanation.text, explanation.semantic
    return {
        "scores": dict(explanation.scores),
        "words": {} if text is None else dict(text.words),
        "lent": []
        if text is None
        else [{"word": e.word, "neighbour": e.neighbour, "weight": e.weight} for e in text.lent],
        "person": None if text is None else text.person,
        "cosine": None if semantic is None else semantic.cosine,
        "neighbour": None if semantic is None else semantic.neighbour,
        "notes": list(explanation.notes),
    }


def _explanations(hits: Sequence[Hit]) -> Iterator[Shown]:
    """A block for each hit, and below them what the whole search did without."""
    for rank, hit in enumerate(hits, start=1):
        lines = list(_reasons(hit))
        width = max((len(on_one_line(label)) for label, _ in lines), default=0)
        yield Shown(f"\n{rank}  {on_one_line(hit.id)}")
        yield from (Shown(f"   {on_one_line(label):<{width}}  {on_one_line(reason)}") for label, reason in lines)
    notes = dict.fromkeys(note for hit in hits if hit.explanation is not None for note in hit.explanation.notes)
    yield from (Shown(f"\nnote: {on_one_line(note)}") for note in notes)


def _reasons(hit: Hit) -> Iterator[tuple[str, str]]:
    explanation = hit.explanation or Explanation()
    for mode, rank in hit.ranks.items():
        score = explanation.scores.get(mode)
        yield mode, f"rank {rank}" + ("" if score is None else f", score {_figure(score)}")
    if explanation.text is not None:
        yield from _reasons_in_words(explanation.text)
    if explanation.semantic is not None:
        yield "cosine", _reason_in_meaning(explanation.semantic)


def _reasons_in_words(match: TextMatch) -> Iterator[tuple[str, str]]:
    if match.words:
        yield "words", ", ".join(f"{word} {_figure(weight)}" for word, weight in match.words.items())
    for loan in match.lent:
        yield "lent", f"{loan.word} {_figure(loan.weight)} by {loan.neighbour}"
    if match.person is not None:
        yield "person", match.person


def _reason_in_meaning(match: SemanticMatch) -> str:
    cosine = "no vector" if match.cosine is None else _figure(match.cosine)
    return cosine if match.neighbour is None else f"{cosine}, the score is lent by {match.neighbour}"
