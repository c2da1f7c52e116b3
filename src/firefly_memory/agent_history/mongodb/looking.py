"""Agent history in MongoDB by its ids: each page is one range of the index that every collection has."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.agent_history.log import HistoryRecord
from firefly_memory.agent_history.mongodb import documents
from firefly_memory.agent_history.mongodb.log import history_log
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.errors import translated


class MongoDirectHistory:
    """A :class:`~firefly_memory.agent_history.looking.DirectHistory` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        self._access = access
        self._log = history_log(access)

    async def page(self, limit: int, after: str | None) -> Sequence[HistoryRecord]:
        return await self._log.page(limit, after or "")

    async def count(self) -> int:
        with translated("count", self._access.database.db_name):
            connection = await self._access.connected("count")
            return int(await connection.result_of(connection[documents.RECORDS].count_documents({"_id": {"$gte": ""}})))
