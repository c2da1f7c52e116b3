"""Queries of conversations: what each knows of the newest turn is in the field ``newest``."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from firefly_memory.codec import DAMAGE
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS, Pipeline, Tail, itself
from firefly_memory.databases.mongodb.fields import Document

_MOST_TOKENS = 2**62
"""A budget that no conversation exceeds, within BSON's integers."""


def conversation(conversation_id: str) -> Pipeline:
    return [{"$match": itself(conversation_id)}, *WITH_NEWEST]


def window(conversation_id: str, budget: int) -> Pipeline:
    """A document for each turn, with the turn in ``turn``: the last one, or the only one, has all the rest as well."""
    end = {"$add": ["$newest.tokens_before", "$newest.tokens"]}
    fits = {
        "start": {"$max": [{"$subtract": [end, min(budget, _MOST_TOKENS)]}, "$evicted_tokens"]},
        "end": end,  # for somebody may append at this moment
    }
    within: Pipeline = [{"$gte": ["$tokens_before", "$$start"]}, {"$lt": ["$tokens_before", "$$end"]}]
    older = {"$and": ["$turn", {"$lt": ["$turn.turn_id", "$newest.turn_id"]}]}
    return [
        *conversation(conversation_id),
        *_with_turns("turn", {}, {"$sort": {"tokens_before": 1}}, let=fits, within=within),
        # The summary may be long: once will do.
        {"$replaceWith": {"$cond": [older, {"turn": "$turn"}, "$$ROOT"]}},
    ]


def since(tail: Tail, conversation_id: str, budget: int) -> Document:
    """A filter for the conversation and what may be in its window, if it ended at ``tail`` a while ago.

    Without look-ups, a window of a dozen turns takes the server half the time, and one of fifty turns the same.
    :func:`window_since` tells whether it will do.
    """
    beyond = tail.tokens + min(budget, _MOST_TOKENS)
    within = {"$gte": _start(tail, budget), "$lt": beyond}
    recent = {"conversation_id": conversation_id, "life": tail.life, "tokens_before": within}
    return {"$or": [itself(conversation_id), recent]}


def _start(tail: Tail, budget: int) -> int:
    return max(tail.tokens - budget, tail.evicted_tokens)


def turns(conversation_id: str, after: int, limit: int | None) -> Pipeline:
    stages: Pipeline = [{"$sort": {"turn_id": 1}}]
    if limit is not None:
        stages.append({"$limit": limit})
    return _only_turns(conversation_id, {"turn_id": {"$gt": after}}, *stages)


def keyed(conversation_id: str, idempotency_key: str) -> Pipeline:
    return _only_turns(conversation_id, {"idempotency_key": idempotency_key})


def _only_turns(conversation_id: str, matching: Document, *stages: Document) -> Pipeline:
    dropped = {"dropped": {"$ifNull": ["$dropped_turns", 0]}}
    stored: Pipeline = [{"$gte": ["$turn_id", "$$dropped"]}]
    found = _with_turns("turn", matching, *stages, let=dropped, within=stored, keep_without=False)
    return [{"$match": itself(conversation_id)}, *found, {"$replaceWith": "$turn"}]


def _with_turns(
    field: str,
    matching: Document,
    *stages: Document,
    let: Document | None = None,
    within: Iterable[Document] = (),
    keep_without: bool = True,
) -> Pipeline:
    """Each conversation once for each of its turns that is ``matching`` and ``within`` what ``let`` says."""
    of_this_life: Pipeline = [{"$eq": ["$conversation_id", "$$id"]}, {"$eq": ["$life", "$$life"]}]
    lookup = {
        "from": CONVERSATIONS,
        "let": {"id": "$_id", "life": "$life", **(let or {})},
        "pipeline": [{"$match": {**matching, "$expr": {"$and": [*of_this_life, *within]}}}, *stages],
        "as": field,
    }
    # At once, so that there never is one document of all the turns: it might be larger than documents can be.
    return [{"$lookup": lookup}, {"$unwind": {"path": f"${field}", "preserveNullAndEmptyArrays": keep_without}}]


WITH_NEWEST = _with_turns(
    "newest",
    {"turn_id": {"$ne": None}},
    {"$sort": {"turn_id": -1}},
    {"$limit": 1},
    {"$project": {"_id": 0, "turn_id": 1, "tokens_before": 1, "tokens": 1, "created_at": 1, "created_at_us": 1}},
)


def window_since(tail: Tail, found: Iterable[Document], budget: int) -> list[Document] | None:
    """What :func:`window` gives, from what :func:`since` has found; ``None`` if that does not tell."""
    there, turns = None, []
    for document in found:
        if "turn_id" in document:
            turns.append(document)
        else:
            there = document
    if there is None or not turns or there.get("life") != tail.life:
        return None
    try:
        turns.sort(key=itemgetter("turn_id"))
        newest = turns[-1]
        end = newest["tokens_before"] + newest["tokens"]
        # Every turn begins where the one before it ends, so nothing was appended that the filter left out.
        is_all = tail.tokens <= end < tail.tokens + budget and newest["turn_id"] - turns[0]["turn_id"] == len(turns) - 1
        start = max(end - budget, there["evicted_tokens"])
        is_all = is_all and start >= _start(tail, budget)  # unless evicted turns have come back
        window: list[Document] = [{"turn": turn} for turn in turns if turn["tokens_before"] >= start]
    except DAMAGE:
        return None
    there["newest"] = newest
    window[-1:] = [{**document, **there} for document in window[-1:]] or [there]
    return window if is_all else None
