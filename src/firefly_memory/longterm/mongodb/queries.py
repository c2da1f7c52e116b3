"""How facts are listed, and read as they were at an instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from firefly_memory.databases.mongodb.fields import Document, split
from firefly_memory.longterm.rows import FactPosition, FactRow, Filters


def listed(words: Sequence[str], filters: Filters, after: FactPosition | None) -> Document | None:
    """A filter for the facts of some places after a position; ``None`` for no facts. Each part of it is a range of the
    list of one place, so that the server merges these and sorts nothing."""
    least = 0.0 if filters.min_confidence is None else filters.min_confidence
    wanted = _wanted(filters)
    parts: list[Document] = []
    for word in dict.fromkeys(words):
        if after is None:
            at_least = {} if filters.min_confidence is None else {"confidence": {"$gte": least}}
            parts.append({"scope": word, **at_least, **wanted})
        else:
            parts += [{"scope": word, **each, **wanted} for each in _ranges_after(after, least)]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"$or": parts}


def _wanted(filters: Filters) -> Document:
    wanted: Document = {}
    if filters.types is not None:
        wanted["fact_type"] = {"$in": list(filters.types)}
    if filters.pattern:
        wanted["$expr"] = _has(filters.pattern)
    return wanted


def _ranges_after(after: FactPosition, least: float) -> Iterator[Document]:
    if after.confidence > least:
        yield {"confidence": {"$lt": after.confidence, "$gte": least}}
    if after.confidence >= least:
        date, microseconds = split(after.newest)
        same: Document = {"confidence": after.confidence}
        yield {**same, "newest": {"$lt": date}}
        yield {**same, "newest": date, "newest_us": {"$lt": microseconds}}
        yield {**same, "newest": date, "newest_us": microseconds, "_id": {"$gt": after.id}}


def _has(pattern: Sequence[str]) -> Document:
    """Whether a line of the searchable form has these words in this order. Not a regular expression: with four words it
    may take seconds where this takes milliseconds, and it gives up on a long text."""
    form = {"$cond": [{"$eq": [{"$type": "$searchable"}, "string"]}, "$searchable", ""]}
    words = [{"word": each, "bytes": len(each.encode())} for each in pattern]
    found = {"$indexOfBytes": ["$$line", "$$this.word", "$$value"]}
    behind = {"$cond": [{"$lt": ["$$found", 0]}, -1, {"$add": ["$$found", "$$this.bytes"]}]}
    one_more = {"$let": {"vars": {"found": found}, "in": behind}}
    all_of_them: Document = {
        "$reduce": {
            "input": {"$literal": words},
            "initialValue": 0,
            "in": {"$cond": [{"$lt": ["$$value", 0]}, -1, one_more]},
        }
    }
    lines = {"input": {"$split": [form, "\n"]}, "as": "line", "in": {"$gte": [all_of_them, 0]}}
    return {"$anyElementTrue": [{"$map": lines}]}


def said_by(row: FactRow, at: datetime) -> Document:
    """A filter for the versions of a fact that were said before or at an instant."""
    date, microseconds = split(at)
    return {
        "fact_id": row.id,
        "number": {"$lte": row.versions},
        "valid_from": {"$lte": date},
        "$and": [
            {"$or": [{"valid_from": {"$lt": date}}, {"valid_from_us": {"$lte": microseconds}}]},
            {
                "$or": [
                    {"superseded_at": {"$gt": date}},
                    {"superseded_at": date, "superseded_at_us": {"$gt": microseconds}},
                ]
            },
        ],
    }
