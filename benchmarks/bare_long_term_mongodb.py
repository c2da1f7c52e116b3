"""The bare driver of MongoDB, keeping facts by hand: one command for each call.

What a fact said before stands in the fact itself, so a write needs no transaction.
"""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime
from typing import Any

import orjson
from bson.codec_options import CodecOptions
from pymongo import ASCENDING, DESCENDING, AsyncMongoClient, ReturnDocument, WriteConcern

from benchmarks.bare import new_id
from benchmarks.bare_long_term import FACTS, USERS, BareLongTerm, Pair, owner_of, scopes_of, searchable, words_of
from benchmarks.long_term_facts import Ids, Whose

_OPTIONS: dict[str, Any] = {
    "codec_options": CodecOptions(tz_aware=True, tzinfo=UTC),
    "write_concern": WriteConcern("majority", j=True),
}
_KEYS = [("scope", ASCENDING), ("key", ASCENDING)]
_ORDER = [("confidence", DESCENDING), ("newest", DESCENDING), ("newest_us", DESCENDING), ("_id", ASCENDING)]
_IN_LISTS = [("scope", ASCENDING), *_ORDER, ("fact_type", ASCENDING)]
_AS_NEW = {
    "confidence": 1.0, "times_contradicted": 0, "source_episode_id": None, "access_count": 0, "last_accessed": None,
    "who": None, "group_id": None, "position": 0, "newest_us": 0, "space": "default", "fact_type": "world_knowledge",
}  # fmt: skip
_RANKS = {"session": 0, "user": 1, "agent": 2, "global": 3}
_FIELDS = dict.fromkeys(
    (
        "key", "value", "fact_type", "fact_scope", "scope_id", "owner", "confidence", "times_confirmed",
        "times_contradicted", "source_episode_id", "access_count", "last_accessed", "valid_from", "created_at",
        "newest",
    ),
    1,
)  # fmt: skip
_AFTER = ReturnDocument.AFTER


class BareMongoLongTerm(BareLongTerm):
    def __init__(self, client: AsyncMongoClient[Any], database: str) -> None:
        self._client = client
        self._facts: Any = client.get_database(database).get_collection(FACTS, **_OPTIONS)
        self._users: Any = client.get_database(database).get_collection(USERS, **_OPTIONS)

    async def get(self, key: str, ids: Ids) -> Any:
        wanted = {"scope": {"$in": scopes_of(ids)}, "key": key}
        change = {"$inc": {"access_count": 1}, "$set": {"last_accessed": datetime.now(UTC)}}
        found = await _settled(
            self._facts.find_one_and_update(
                wanted, change, {"value": 1}, sort=[("rank", ASCENDING)], hint=_KEYS, return_document=_AFTER
            )
        )
        return orjson.loads(found["value"])

    async def find(self, key: str, whose: Whose) -> Any:
        found = await _settled(self._facts.find_one({"scope": whose.word, "key": key}, _FIELDS, hint=_KEYS))
        return orjson.loads(found["value"])

    async def set(self, key: str, value: str, whose: Whose) -> int:
        now, text = datetime.now(UTC), searchable(key, value)
        is_new = {"$eq": [{"$type": "$value"}, "missing"]}
        encoded = orjson.dumps(value).decode()
        differs = {"$and": [{"$not": [is_new]}, {"$ne": ["$value", {"$literal": encoded}]}]}
        old = {name: f"${name}" for name in ("value", "confidence", "source_episode_id", "owner", "valid_from")}
        said = {"$ifNull": ["$said", []]}
        change: dict[str, Any] = {
            "value": {"$literal": encoded},
            "times_confirmed": {"$add": [{"$ifNull": ["$times_confirmed", 0]}, 1]},
            "said": {"$cond": [differs, {"$concatArrays": [said, [{**old, "superseded_at": now}]]}, said]},
            "valid_from": {"$cond": [{"$or": [is_new, differs]}, now, "$valid_from"]},
            "created_at": {"$ifNull": ["$created_at", now]},
            "newest": now,
            "written_by": new_id(),
            "searchable": {"$literal": text},
            "words": {"$literal": words_of(whose, text)},
            "rank": _RANKS[whose.scope],
            "fact_scope": whose.scope,
            "scope_id": {"$literal": whose.id},
            "owner": {"$literal": owner_of(whose)},
            "_id": {"$ifNull": ["$_id", new_id()]},
            **{name: {"$ifNull": [f"${name}", {"$literal": each}]} for name, each in _AS_NEW.items()},
        }
        found = await _settled(
            self._facts.find_one_and_update(
                {"scope": whose.word, "key": key},
                [{"$set": change}],
                {"times_confirmed": 1},
                upsert=True,
                return_document=_AFTER,
            )
        )
        return int(found["times_confirmed"])

    async def listed(self, ids: Ids, limit: int) -> list[Pair]:
        return await self._in_order({"$or": [{"scope": each} for each in scopes_of(ids)]}, limit)

    async def search(self, query: str, ids: Ids, limit: int) -> list[Pair]:
        pattern = ".*".join(map(re.escape, query.split()))
        has = {"confidence": {"$gte": 0.5}, "searchable": {"$regex": pattern}}
        return await self._in_order({"$or": [{"scope": each, **has} for each in scopes_of(ids)]}, limit)

    async def context(self, user_id: str) -> dict[str, Any]:
        word = Whose("user", user_id).word
        person = await _settled(self._users.find_one({"word": word}))
        facts = await self._in_order({"scope": word}, 100)
        return {"user_id": person["canonical_id"], "facts": facts, "about": person}

    async def _in_order(self, wanted: dict[str, Any], limit: int) -> list[Pair]:
        cursor = self._facts.find(wanted, _FIELDS, hint=_IN_LISTS).sort(_ORDER).limit(limit)
        return [(each["key"], orjson.loads(each["value"])) for each in await _settled(cursor.to_list(None))]

    async def close(self) -> None:
        await _settled(self._client.close())


async def _settled(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
