"""Agent history, as people look at it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from firefly_memory.agent_history.log import (
    AGENT_HISTORY_LOG,
    HistoryEntry,
    HistoryRecord,
    damaged_history,
    delete_record,
    in_line,
)
from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_text
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Size, Type, Where
from firefly_memory.protocols import StoreView

_MESSAGES = 100
"""The newest messages that looking at one conversation shows."""


class DirectHistory(Protocol):
    """What a database reads and counts by its indexes."""

    async def page(self, limit: int, after: str | None) -> Sequence[HistoryRecord]:
        """The first ``limit`` records after an id, in the order of the database's index."""

    async def count(self) -> int: ...


class HistoryReader:
    """The conversations of pydantic-ai, by their ids."""

    def __init__(self, view: StoreView, direct: DirectHistory | None) -> None:
        self._log = view.log(AGENT_HISTORY_LOG)
        assert direct is not None  # of every store that keeps agent history
        self._direct = direct

    async def page(self, query: Query) -> Sequence[Placed]:
        after = None if query.after is None else stored_text(query.after[0])
        records = await self._direct.page(query.limit, after)
        return [Placed((original_name(each.conversation_id),), _row(each)) for each in records]

    async def get(self, row_id: RowId) -> Row | None:
        record = await self._log.record(stored_name("conversation_id", row_id[0]))
        return None if record is None else {**_row(record), "messages": await self._messages(record)}

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        names = [stored_name("conversation_id", row_id[0]) for row_id in dict.fromkeys(row_ids)]
        return sum([await delete_record(self._log, name) for name in names])

    async def size(self, _: Where) -> Size:
        return Size(await self._direct.count())

    async def _messages(self, record: HistoryRecord) -> list[Any]:
        if record.head_id is None:
            return []
        found = await self._log.history(record.head_id, _MESSAGES)
        try:
            return [_message(entry) for entry in in_line(found, record.head_id, _MESSAGES)]
        except KeyError as exc:
            missing = ValueError(f"its message {exc.args[0]!r} is missing")
            raise damaged_history("conversation", record.conversation_id, missing) from exc


def _message(entry: HistoryEntry) -> Any:
    try:
        return json.loads(entry.message)
    except ValueError as exc:
        raise damaged_history("entry", entry.entry_id, exc) from exc


def _row(record: HistoryRecord) -> Row:
    return {
        "conversation_id": original_name(record.conversation_id),
        "scope": original_or_none(record.scope),
        "forked_from": original_or_none(record.forked_from),
        "usage": _usage(record),
        "updated_at": record.updated_at.isoformat(),
    }


def _usage(record: HistoryRecord) -> Any:
    try:
        return json.loads(record.usage)
    except ValueError as exc:
        raise damaged_history("conversation", record.conversation_id, exc) from exc


AGENT_HISTORY = Resource(
    kind="agent-history",
    title="conversations of pydantic-ai's ConversationStore",
    fields=(
        Field("conversation_id"),
        Field("scope"),
        Field("forked_from", in_table=False),
        Field("usage", Type.JSON, in_table=False),
        Field("updated_at", Type.INSTANT),
        Field("messages", Type.JSON, is_filter=False, in_table=False),
    ),
    identity=("conversation_id",),
    orders={"id": (str,)},
    reader="firefly_memory.agent_history.looking:HistoryReader",
    direct={
        "sql": "firefly_memory.agent_history.sql.looking:SQLDirectHistory",
        "mongodb": "firefly_memory.agent_history.mongodb.looking:MongoDirectHistory",
    },
)

RESOURCES = (AGENT_HISTORY,)
