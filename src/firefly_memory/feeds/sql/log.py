"""Feeds in SQL: each hook is an operation, run by the executor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.feeds.log import NewMessage, numbers_to
from firefly_memory.feeds.sql import operations
from firefly_memory.feeds.sql.listening import listening
from firefly_memory.feeds.sql.statements import Append


class SQLFeedLog:
    """A :class:`~firefly_memory.feeds.log.FeedLog` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect]) -> None:
        self.form = dialect.form
        self.read_instant = dialect.read_instant
        self._append = executor.method(operations.append_messages)
        self.begin = executor.method(operations.begin_feed)
        self.newest = executor.method(operations.read_newest)
        self.after = executor.method(operations.read_after)
        self.feed = executor.method(operations.read_feed)
        self.drop = executor.method(operations.drop_messages)
        self.first_since = executor.method(operations.read_first_since)
        self.delete = executor.method(operations.delete_feed)
        self.page = executor.method(operations.read_page)
        self.of_owner = executor.method(operations.read_of_owner)
        self.sizes = executor.method(operations.read_sizes)
        self.listening = partial(listening, executor)

    async def append(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> int | None:
        return await self._append(Append(location, messages, owner, notify))

    async def append_each(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> Sequence[int | None]:
        return numbers_to(await self.append(location, messages, owner, notify), len(messages))
