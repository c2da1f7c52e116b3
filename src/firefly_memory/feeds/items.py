"""What users get of a feed: messages with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

Message = dict[str, Any]
"""A message: any dict. Its ``type``, ``agent_key`` and ``is_global`` say who sees it."""

Messages = list[Message]


@dataclass(frozen=True, slots=True)
class FeedItem:
    """A message of a feed, and its number: the first one is 1, and each has the next one."""

    number: int
    message: Message
    created_at: datetime
    """When it was appended, by the clock of its writer."""


Items = list[FeedItem]
