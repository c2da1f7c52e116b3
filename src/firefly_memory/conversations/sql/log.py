"""Conversations in SQL: each hook is an operation, run by the executor."""

from __future__ import annotations

from firefly_memory.conversations.sql import flushing, operations
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor


class SQLConversationLog:
    """A :class:`~firefly_memory.conversations.log.ConversationLog` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect]) -> None:
        self.form = dialect.form
        self.read_instant = dialect.read_instant
        self.create = executor.method(operations.create_conversation)
        self.append = executor.method(operations.append_turn)
        self.head = executor.method(operations.conversation_head)
        self.window = executor.method(operations.conversation_window)
        self.turns = executor.method(operations.turns_after)
        self.find = executor.method(operations.find_turn)
        self.claim = executor.method(operations.claim_summary)
        self.flush = executor.method(flushing.flush_turns)
        self.find_flush = executor.method(flushing.find_flush)
        self.restore = executor.method(flushing.restore_turns)
        self.release = executor.method(operations.release_claim)
        self.fork = executor.method(operations.fork_conversation)
        self.delete = executor.method(operations.delete_conversation)
        self.delete_all = executor.method(operations.delete_all_conversations)
        self.page = executor.method(operations.conversation_page)
