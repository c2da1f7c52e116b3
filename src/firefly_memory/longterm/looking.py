"""Facts, what they said before, and people, as people look at them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_text
from firefly_memory.longterm.fact_form import fact_of, version_of
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.people import USER_ROWS, VERSION_ROWS
from firefly_memory.longterm.rows import FACTS, FactRow, UserRow, VersionRow
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Search, Size, Type, Where
from firefly_memory.protocols import StoreView

_MOST = 2**62
"""The largest number that a version can have."""

_DIGITS = len(str(_MOST))


class FactReader:
    """Facts by their ids, in every store that keeps them."""

    def __init__(self, view: StoreView, direct: None) -> None:
        self._log = view.log(LONG_TERM_LOG).facts

    async def page(self, query: Query) -> Sequence[Placed]:
        after = "" if query.after is None else stored_text(query.after[0])
        if "owner" in query.where:
            rows = await self._of_owner(stored_name("owner", query.where["owner"]), query.limit, after)
        else:
            rows = await self._log.page(query.limit, after)
        return [Placed((original_name(each.id),), _fact_row(each)) for each in rows]

    async def get(self, row_id: RowId) -> Row | None:
        rows = await self._log.read([stored_name("id", row_id[0])])
        return _fact_row(rows[0]) if rows else None

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        return await self._log.delete([stored_name("id", row_id[0]) for row_id in dict.fromkeys(row_ids)])

    async def size(self, _: Where) -> Size:
        return Size(await self._log.count())

    async def _of_owner(self, owner: str, limit: int, after: str) -> Sequence[FactRow]:
        """A page that is not full counts as the last one: so others take the place of what is deleted meanwhile."""
        rows: list[FactRow] = []
        while wanted := limit - len(rows):
            ids = await self._log.of_owner(owner, wanted, after)
            rows += sorted(await self._log.read(ids), key=lambda row: row.id) if ids else []
            if len(ids) < wanted:
                break
            after = ids[-1]
        return rows


class VersionReader:
    """What one fact said before, in order."""

    def __init__(self, view: StoreView, direct: None) -> None:
        self._log = view.log(LONG_TERM_LOG).facts

    async def page(self, query: Query) -> Sequence[Placed]:
        number = 0 if query.after is None else min(max(query.after[0], 0), _MOST)
        rows = await self._log.versions(stored_name("fact_id", query.where["fact_id"]), query.limit, number)
        return [Placed((each.number,), _version_row(each)) for each in rows]

    async def get(self, row_id: RowId) -> Row | None:
        name = _version_name(row_id)
        if name is None:
            return None
        rows = await self._log.versions(name[0], 1, name[1] - 1)
        return _version_row(rows[0]) if rows and rows[0].number == name[1] else None

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        names = [name for name in map(_version_name, dict.fromkeys(row_ids)) if name is not None]
        return await self._log.delete_versions(names) if names else 0

    async def size(self, where: Where) -> Size:
        if "fact_id" not in where:
            return Size(await self._log.count_versions())
        fact_id = stored_name("fact_id", where["fact_id"])
        return Size((await self._log.count_versions_of([fact_id])).get(fact_id, 0))


class UserReader:
    """People by the ids of their records, merged ones too."""

    def __init__(self, view: StoreView, direct: None) -> None:
        self._log = view.log(LONG_TERM_LOG).people

    async def page(self, query: Query) -> Sequence[Placed]:
        after = "" if query.after is None else stored_text(query.after[0])
        if "canonical_id" in query.where:
            rows = await self._of_id(stored_name("canonical_id", query.where["canonical_id"]), query.limit, after)
        else:
            rows = await self._log.page(query.limit, after)
        return [Placed((original_name(each.id),), _user_row(each)) for each in rows]

    async def get(self, row_id: RowId) -> Row | None:
        rows = await self._log.read([stored_name("id", row_id[0])])
        return _user_row(rows[0]) if rows else None

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        """With the facts of their own, and all who stand for one of them."""
        return await self._log.delete([stored_name("id", row_id[0]) for row_id in dict.fromkeys(row_ids)])

    async def size(self, _: Where) -> Size:
        return Size(await self._log.count())

    async def _of_id(self, canonical_id: str, limit: int, after: str) -> Sequence[UserRow]:
        """One person has this id in each space."""
        same = await self._log.same_people([canonical_id])
        found = (row for row in same if row.canonical_id == canonical_id and row.id > after)
        return sorted(found, key=lambda row: row.id)[:limit]


def _version_name(row_id: RowId) -> tuple[str, int] | None:
    """The fact and the number of a version, if there can be such a one."""
    fact_id, digits = row_id
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS:
        return None
    number = int(digits)
    return (stored_name("fact_id", fact_id), number) if 0 < number <= _MOST else None


def _fact_row(row: FactRow) -> Row:
    fact = fact_of(row)
    return {
        "id": original_name(row.id),
        "key": fact.key,
        "value": fact.value,
        "fact_type": fact.fact_type,
        "scope": fact.scope,
        "scope_id": original_name(row.scope_id),
        "owner": fact.user_id,
        "space": original_name(row.space),
        "confidence": fact.confidence,
        "times_confirmed": fact.times_confirmed,
        "times_contradicted": fact.times_contradicted,
        "versions": row.versions,
        "source_episode_id": fact.source_episode_id,
        "access_count": fact.access_count,
        "last_accessed": _text_of(fact.last_accessed),
        "valid_from": fact.valid_from.isoformat(),
        "created_at": fact.created_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
    }


def _version_row(row: VersionRow) -> Row:
    version = version_of(row)
    return {
        "fact_id": original_name(row.fact_id),
        "number": version.number,
        "value": version.value,
        "confidence": version.confidence,
        "source_episode_id": version.source_episode_id,
        "owner": original_or_none(row.owner),
        "valid_from": version.valid_from.isoformat(),
        "superseded_at": version.superseded_at.isoformat(),
    }


def _user_row(row: UserRow) -> Row:
    return {
        "id": original_name(row.id),
        "canonical_id": original_name(row.canonical_id),
        "display_name": original_or_none(row.display_name),
        "telegram_id": original_or_none(row.telegram_id),
        "email": original_or_none(row.email),
        "space": original_name(row.space),
        "total_conversations": row.total_conversations,
        "last_conversation_at": _text_of(row.last_conversation_at),
        "merged_into_id": original_or_none(row.merged_into_id),
        "first_seen": row.first_seen.isoformat(),
        "updated_at": row.updated_at.isoformat(),
    }


def _text_of(moment: datetime | None) -> Any:
    return None if moment is None else moment.isoformat()


FACT_ROWS = Resource(
    kind=FACTS.kind,
    title="facts of long-term memory, in all spaces and scopes",
    fields=(
        Field("id"),
        Field("key"),
        Field("value", Type.JSON),
        Field("fact_type"),
        Field("scope"),
        Field("scope_id", in_table=False),
        Field("owner"),
        Field("space", in_table=False),
        Field("confidence", Type.NUMBER),
        Field("times_confirmed", Type.NUMBER, in_table=False),
        Field("times_contradicted", Type.NUMBER, in_table=False),
        Field("versions", Type.NUMBER, in_table=False),
        Field("source_episode_id", in_table=False),
        Field("access_count", Type.NUMBER, in_table=False),
        Field("last_accessed", Type.INSTANT, in_table=False),
        Field("valid_from", Type.INSTANT, in_table=False),
        Field("created_at", Type.INSTANT, in_table=False),
        Field("updated_at", Type.INSTANT),
    ),
    identity=("id",),
    orders={"id": (str,)},
    reader="firefly_memory.longterm.looking:FactReader",
    indexed=(("owner",),),
    search=Search(
        "firefly_memory.longterm.searching:FactSearcher",
        takes=("space", "user_id", "agent_id", "session_id", "fact_type"),
        shows=("scope", "confidence"),
    ),
)

VERSIONS = Resource(
    kind=VERSION_ROWS,
    title="what one fact of long-term memory said before",
    fields=(
        Field("fact_id", in_table=False),
        Field("number", Type.NUMBER),
        Field("value", Type.JSON),
        Field("confidence", Type.NUMBER),
        Field("source_episode_id", in_table=False),
        Field("owner"),
        Field("valid_from", Type.INSTANT),
        Field("superseded_at", Type.INSTANT),
    ),
    identity=("fact_id", "number"),
    orders={"number": (int,)},
    reader="firefly_memory.longterm.looking:VersionReader",
    indexed=(("fact_id",),),
    counted=((), ("fact_id",)),
    needs=("fact_id",),
)

USERS = Resource(
    kind=USER_ROWS,
    title="people of long-term memory, also those who were merged into others",
    fields=(
        Field("id"),
        Field("canonical_id"),
        Field("display_name"),
        Field("telegram_id", in_table=False),
        Field("email", in_table=False),
        Field("space", in_table=False),
        Field("total_conversations", Type.NUMBER),
        Field("last_conversation_at", Type.INSTANT, in_table=False),
        Field("merged_into_id", in_table=False),
        Field("first_seen", Type.INSTANT, in_table=False),
        Field("updated_at", Type.INSTANT),
    ),
    identity=("id",),
    orders={"id": (str,)},
    reader="firefly_memory.longterm.looking:UserReader",
    indexed=(("canonical_id",),),
)

RESOURCES = (FACT_ROWS, VERSIONS, USERS)
