"""Durable memory for LLM agents on the database a team already runs.

Every public name can be imported from here. Names are loaded when they are first used: importing the package loads
no driver, no SQLAlchemy and no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.conversations.memory import ConversationMemory
    from firefly_memory.conversations.types import ConversationInfo, ConversationPage, ConversationTurn, Window
    from firefly_memory.entries.entry import MemoryEntry, MemoryScope
    from firefly_memory.errors import (
        ConditionError,
        ConfigurationError,
        ConflictError,
        CorruptDataError,
        DatabaseConnectionError,
        DatabaseStoreError,
        EntryOwnershipError,
        ErasedError,
        FireflyMemoryError,
        InvalidEntryError,
        LanguageModelError,
        MissingDependencyError,
        NotSupportedError,
        OutcomeUnknownError,
        SchemaMismatchError,
        StaleConversationError,
        StepError,
        StoreClosedError,
        StoreTimeoutError,
        TurnConflictError,
        TurnsDroppedError,
        UnknownConversationError,
        UnknownRecordError,
    )
    from firefly_memory.manager import MemoryManager
    from firefly_memory.protocols import ABSENT, AsyncMemoryStore, Capability, MemoryStore, Page, StoreView
    from firefly_memory.settings import MemorySettings
    from firefly_memory.stores.adapter import adapt
    from firefly_memory.stores.base import EntryStore
    from firefly_memory.stores.file import FileStore
    from firefly_memory.stores.memory import InMemoryStore
    from firefly_memory.stores.mongodb import MongoDBStore
    from firefly_memory.stores.postgresql import PostgreSQLStore
    from firefly_memory.stores.sqlite import SQLiteStore
    from firefly_memory.summarization import create_llm_summarizer
    from firefly_memory.tokens.estimator import TokenEstimator
    from firefly_memory.urls import connect
    from firefly_memory.working import WorkingMemory

__version__ = "0.1.0"

__all__ = [
    "ABSENT",
    "AsyncMemoryStore",
    "Capability",
    "ConditionError",
    "ConfigurationError",
    "ConflictError",
    "ConversationInfo",
    "ConversationMemory",
    "ConversationPage",
    "ConversationTurn",
    "CorruptDataError",
    "DatabaseConnectionError",
    "DatabaseStoreError",
    "EntryOwnershipError",
    "EntryStore",
    "ErasedError",
    "FileStore",
    "FireflyMemoryError",
    "InMemoryStore",
    "InvalidEntryError",
    "LanguageModelError",
    "MemoryEntry",
    "MemoryManager",
    "MemoryScope",
    "MemorySettings",
    "MemoryStore",
    "MissingDependencyError",
    "MongoDBStore",
    "NotSupportedError",
    "OutcomeUnknownError",
    "Page",
    "PostgreSQLStore",
    "SQLiteStore",
    "SchemaMismatchError",
    "StaleConversationError",
    "StepError",
    "StoreClosedError",
    "StoreTimeoutError",
    "StoreView",
    "TokenEstimator",
    "TurnConflictError",
    "TurnsDroppedError",
    "UnknownConversationError",
    "UnknownRecordError",
    "Window",
    "WorkingMemory",
    "adapt",
    "connect",
    "create_llm_summarizer",
]

_ERRORS = "firefly_memory.errors"
_PROTOCOLS = "firefly_memory.protocols"
_WHERE = {
    "ABSENT": _PROTOCOLS,
    "AsyncMemoryStore": _PROTOCOLS,
    "Capability": _PROTOCOLS,
    "ConditionError": _ERRORS,
    "ConfigurationError": _ERRORS,
    "ConflictError": _ERRORS,
    "ConversationInfo": "firefly_memory.conversations.types",
    "ConversationMemory": "firefly_memory.conversations.memory",
    "ConversationPage": "firefly_memory.conversations.types",
    "ConversationTurn": "firefly_memory.conversations.types",
    "CorruptDataError": _ERRORS,
    "DatabaseConnectionError": _ERRORS,
    "DatabaseStoreError": _ERRORS,
    "EntryOwnershipError": _ERRORS,
    "EntryStore": "firefly_memory.stores.base",
    "ErasedError": _ERRORS,
    "FileStore": "firefly_memory.stores.file",
    "FireflyMemoryError": _ERRORS,
    "InMemoryStore": "firefly_memory.stores.memory",
    "InvalidEntryError": _ERRORS,
    "LanguageModelError": _ERRORS,
    "MemoryEntry": "firefly_memory.entries.entry",
    "MemoryManager": "firefly_memory.manager",
    "MemoryScope": "firefly_memory.entries.entry",
    "MemorySettings": "firefly_memory.settings",
    "MemoryStore": _PROTOCOLS,
    "MissingDependencyError": _ERRORS,
    "MongoDBStore": "firefly_memory.stores.mongodb",
    "NotSupportedError": _ERRORS,
    "OutcomeUnknownError": _ERRORS,
    "Page": _PROTOCOLS,
    "PostgreSQLStore": "firefly_memory.stores.postgresql",
    "SQLiteStore": "firefly_memory.stores.sqlite",
    "SchemaMismatchError": _ERRORS,
    "StaleConversationError": _ERRORS,
    "StepError": _ERRORS,
    "StoreClosedError": _ERRORS,
    "StoreTimeoutError": _ERRORS,
    "StoreView": _PROTOCOLS,
    "TokenEstimator": "firefly_memory.tokens.estimator",
    "TurnConflictError": _ERRORS,
    "TurnsDroppedError": _ERRORS,
    "UnknownConversationError": _ERRORS,
    "UnknownRecordError": _ERRORS,
    "Window": "firefly_memory.conversations.types",
    "WorkingMemory": "firefly_memory.working",
    "adapt": "firefly_memory.stores.adapter",
    "connect": "firefly_memory.urls",
    "create_llm_summarizer": "firefly_memory.summarization",
}


if not TYPE_CHECKING:  # or no checker would notice a misspelt name

    def __getattr__(name: str) -> Any:
        return lazily(name, _WHERE, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
