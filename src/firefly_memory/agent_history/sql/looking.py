"""Agent history in SQL by its ids: each page is one range of the primary key, in the order of the database's own
collation, which code points would not be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Integer, Select, Text, bindparam, func, select

from firefly_memory.agent_history.log import HistoryRecord
from firefly_memory.agent_history.sql.statements import HistoryStatements
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session


class LookingStatements(HistoryStatements):
    @cached_property
    def first_by_id(self) -> Statement:
        return self.compiled(self._by_id())

    @cached_property
    def next_by_id(self) -> Statement:
        return self.compiled(self._by_id().where(self.table.c.conversation_id > bindparam("after", type_=Text)))

    @cached_property
    def count(self) -> Statement:
        return self.compiled(select(func.count()).select_from(self.table))

    def _by_id(self) -> Select[Any]:
        columns = [self.dialect.value_out(self.table.c[name]) for name in HistoryRecord._fields]
        return select(*columns).order_by(self.table.c.conversation_id).limit(bindparam("limit", type_=Integer))


@reads
def list_history(session: Session, limit: int, after: str | None) -> list[HistoryRecord]:
    statements = session.statements(LookingStatements)
    statement = statements.first_by_id if after is None else statements.next_by_id
    return [statements.record_of(row) for row in session.fetch(statement, {"limit": limit, "after": after})]


@reads
def count_history(session: Session) -> int:
    return int(session.fetch(session.statements(LookingStatements).count, {})[0][0])


class SQLDirectHistory:
    """A :class:`~firefly_memory.agent_history.looking.DirectHistory` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self._run = executor.run

    async def page(self, limit: int, after: str | None) -> Sequence[HistoryRecord]:
        return await self._run(list_history, limit, after)

    async def count(self) -> int:
        return await self._run(count_history)
