"""Feeds in MongoDB for tests, asked for without a ``MongoMessageStore``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from firefly_memory.feeds.log import NewMessage
from firefly_memory.identifiers import new_entry_id

DATABASE = "feeding"
NOW = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)


def a_message(
    content: str = "", agent_key: str | None = "a", *, conversation: bool = False, everyone: bool = False, at: Any = NOW
) -> NewMessage:
    return NewMessage(new_entry_id(), agent_key, conversation, everyone, content, at, len(content))


def new_location() -> str:
    return f"location {uuid4().hex}"
