"""A conversation from the outside: its turns, what is known of it, and the window that is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any

from firefly_memory import clock

SUMMARY_PROMPT = "(summary of the conversation so far)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """What the user said, what the assistant answered, and the messages that passed between program and model.

    ``turn_id`` counts from 0 without gaps in a conversation; a turn that you make yourself needs none.
    ``token_estimate`` is what replaying the turn costs.
    """

    turn_id: int = 0
    user_prompt: str = ""
    assistant_response: str = ""
    raw_messages: list[Any] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    token_estimate: int = 0
    created_at: datetime = field(default_factory=clock.now)
    summary_is_due: bool = field(default=False, compare=False, repr=False)
    """Of a turn added with ``summarize=False``: whether, as far as is known, ``summarize()`` has something to do."""

    @property
    def is_summary(self) -> bool:
        """Whether this stands for all the turns before it: what a summarizer gets first once there is a summary."""
        return self.turn_id < 0

    @classmethod
    def of_summary(cls, summary: str, created_at: datetime) -> ConversationTurn:
        """An earlier summary, word for word, in the form of a turn."""
        return cls(turn_id=-1, user_prompt=SUMMARY_PROMPT, assistant_response=summary, created_at=created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """What ``list_conversations`` tells of a conversation, without reading any of its turns."""

    conversation_id: str
    turns: int
    total_tokens: int
    summarized_turns: int
    """How many of its turns, from the first on, are in the summary and no longer replayed."""
    created_at: datetime
    updated_at: datetime
    dropped_turns: int = 0
    """How many of those, from the first on, an ``InMemoryStore(max_turns_kept=…)`` no longer has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage(Sequence[ConversationInfo]):
    """Some conversations, and in ``next`` where to go on: ``list_conversations(after=page.next)``."""

    conversations: tuple[ConversationInfo, ...]
    next: str | None
    """``None`` on the last page."""

    def __len__(self) -> int:
        return len(self.conversations)

    def __getitem__(self, index: Any) -> Any:
        return self.conversations[index]


@dataclass(frozen=True, slots=True)
class Window:
    """What of a conversation is replayed, and a receipt for the rest.

    ``messages`` is what ``get_message_history`` returns: the summary, if there is one and it has room, then the
    messages of ``turns``. ``tokens`` counts exactly these and never exceeds ``budget``.
    """

    conversation_id: str
    _: KW_ONLY
    budget: int
    messages: list[Any] = field(default_factory=list)
    turns: tuple[int, ...] = ()
    """The ``turn_id`` of each turn that is replayed, oldest first."""
    tokens: int = 0
    summary: str | None = None
    """The summary, whether or not it had room."""
    total_turns: int = 0
    """How many turns the conversation has: what ``expected_turns`` is, for whoever has seen this."""
    left_out: tuple[str, ...] = ()
    """What is not among the messages, and why: a phrase for each reason."""
    replayed: tuple[ConversationTurn, ...] = field(default=(), repr=False, compare=False)
    """The turns whose messages these are, after the summary as one, if it had room."""
