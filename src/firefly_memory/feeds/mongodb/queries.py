"""Queries of feeds.

A query of messages gives the head after them. A writer that does not know of a drop may insert a message with a number
that is dropped already. No reader returns it: each reads ``dropped`` after the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo import DESCENDING

from firefly_memory.databases.mongodb.fields import Document, split
from firefly_memory.feeds.log import MOST_MESSAGES, Which
from firefly_memory.feeds.mongodb.documents import FEEDS, Tail, itself, of_life

Pipeline = list[Document]

MOST_RANGES = 200
"""So many ranges of an index the server merges in their order; more of them it reads as a whole, and sorts."""

_BRIEFLY: Document = {"$project": {"number": 1, "created_at": 1, "created_at_us": 1}}


def head(location: str) -> Document:
    """The stage that adds the head after the messages."""
    return {"$unionWith": {"coll": FEEDS, "pipeline": [{"$match": itself(location)}]}}


def newest(
    location: str, tail: Tail, which: Which, agent_keys: Sequence[str], limit: int | None, most: int = MOST_MESSAGES
) -> Pipeline:
    """The newest messages of a kind up to number ``most``, in any order."""
    within: Document = {**of_life(location, tail.life), which: {"$gt": tail.dropped, "$lte": most}}
    if which != "agents":
        return _last(within, which, limit)
    if limit is None or len(agent_keys) <= MOST_RANGES:
        return _last({**within, "agent_key": _one_of(agent_keys)}, which, limit)
    groups = (agent_keys[first : first + MOST_RANGES] for first in range(0, len(agent_keys), MOST_RANGES))
    first, *others = (_last({**within, "agent_key": _one_of(each)}, which, limit) for each in groups)
    unions: Pipeline = [{"$unionWith": {"coll": FEEDS, "pipeline": each}} for each in others]
    newest_of_them: Pipeline = [{"$sort": {which: DESCENDING}}, {"$limit": limit}]
    return [*first, *unions, *newest_of_them]


def _one_of(agent_keys: Sequence[str]) -> Any:
    return agent_keys[0] if len(agent_keys) == 1 else {"$in": list(agent_keys)}


def _last(matching: Document, field: str, limit: int | None) -> Pipeline:
    if limit is None:
        return [{"$match": matching}]
    return [{"$match": matching}, {"$sort": {field: DESCENDING}}, {"$limit": limit}]


def after(location: str, tail: Tail, number: int, limit: int | None) -> Pipeline:
    within = {**of_life(location, tail.life), "number": {"$gt": max(min(number, MOST_MESSAGES), tail.dropped)}}
    found: Pipeline = [{"$match": within}, {"$sort": {"number": 1}}]
    return found if limit is None else [*found, {"$limit": limit}]


def newest_of_all(location: str, tail: Tail) -> Pipeline:
    within = {**of_life(location, tail.life), "number": {"$gt": tail.dropped}}
    return [*_last(within, "number", 1), _BRIEFLY]


def since(location: str, tail: Tail, before: datetime) -> Pipeline:
    """The first message that was not appended before an instant."""
    date, microseconds = split(before)
    same: Document = {"created_at": date, "created_at_us": {"$gte": microseconds}}
    later: Document = {"$or": [{"created_at": {"$gt": date}}, same]}
    within = {**of_life(location, tail.life), "number": {"$gt": tail.dropped}}
    return [{"$match": {**within, **later}}, {"$sort": {"number": 1}}, {"$limit": 1}, _BRIEFLY]


WITH_NEWEST: Pipeline = [
    {
        "$lookup": {
            "from": FEEDS,
            "let": {"location": "$_id", "life": "$life"},
            "pipeline": [
                {
                    "$match": {
                        "number": {"$gt": 0},
                        "$expr": {"$and": [{"$eq": ["$location", "$$location"]}, {"$eq": ["$life", "$$life"]}]},
                    }
                },
                {"$sort": {"number": DESCENDING}},
                {"$limit": 1},
                _BRIEFLY,
            ],
            "as": "newest",
        }
    },
    {"$unwind": {"path": "$newest", "preserveNullAndEmptyArrays": True}},
]
"""The stages that give each head the newest message in ``newest``."""


def page(wanted: Document, after: str, limit: int) -> Pipeline:
    """Heads, each with the newest message in ``newest``."""
    return [{"$match": {**wanted, "_id": {"$gt": after}}}, {"$sort": {"_id": 1}}, {"$limit": limit}, *WITH_NEWEST]


def sizes() -> Pipeline:
    """One document with the number of feeds, and that of their messages."""
    is_there = {"$or": [{"$gt": ["$newest", None]}, {"$gt": ["$settled", None]}]}
    stored = {"$max": [{"$subtract": [{"$ifNull": ["$newest.number", 0]}, "$dropped"]}, 0]}
    totals = {"_id": None, "feeds": {"$sum": {"$cond": [is_there, 1, 0]}}, "messages": {"$sum": stored}}
    return [{"$match": {"_id": {"$gte": ""}}}, *WITH_NEWEST, {"$group": totals}]
