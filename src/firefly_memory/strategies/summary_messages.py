"""The message that has the summary of a conversation, in lists of messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from firefly_memory.conversations.replay import replayed
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.messages.parts import get
from firefly_memory.messages.quoted_text import unindented
from firefly_memory.messages.shapes import read, role_of
from firefly_memory.messages.storage import summary_text

_HEADING = summary_text("")


def summary_message(summary: str, messages: Sequence[Any]) -> Any:
    """The message with ``summary``, as the window of a conversation has it: of the system, in the form of ``messages``.

    Its time is that of the newest of ``messages``, so that the same messages always give the same message.
    """
    times = (get(message, "timestamp") for message in reversed(messages))
    when = next((time for time in times if isinstance(time, datetime)), datetime.min.replace(tzinfo=UTC))
    form = ConversationTurn(raw_messages=list(messages[-1:]), created_at=when)
    return replayed([form], [ConversationTurn.of_summary(summary, when)])[0]


def summary_of(message: Any) -> str | None:
    """The summary that a message of :func:`summary_message`, or of a window, has; ``None`` for any other message."""
    texts = read(message).texts if role_of(message) == "system" else ()
    if len(texts) != 1 or not texts[0].startswith(_HEADING):
        return None
    return unindented(texts[0].removeprefix(_HEADING))
