"""What looking counts of the conversations in SQL, in one query."""

from __future__ import annotations

from functools import cached_property

from sqlalchemy import func, select

from firefly_memory.conversations.looking import Totals
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.databases.sql.statements import FacetStatements


class LookingStatements(FacetStatements):
    @cached_property
    def totals(self) -> Statement:
        c = self.in_schema("memory_conversations").c
        return self.compiled(select(func.count(), func.sum(c.turns), func.sum(c.tokens)))


@reads
def count_conversations(session: Session) -> Totals:
    conversations, turns, tokens = session.fetch(session.statements(LookingStatements).totals, {})[0]
    return Totals(int(conversations), int(turns or 0), int(tokens or 0))


class SQLDirectConversations:
    """A :class:`~firefly_memory.conversations.looking.DirectConversations` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self._run = executor.run

    async def totals(self) -> Totals:
        return await self._run(count_conversations)
