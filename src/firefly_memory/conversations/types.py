"""A conversation as users see it: its turns, its counts, and the window that is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any, overload

from firefly_memory import clock

SUMMARY_PROMPT = "(summary of the conversation so far)"
RECALLED_PROMPT = "(found in memory for this prompt)"

_SUMMARY, _RECALLED = -1, -2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """The user's prompt, the assistant's answer, and the messages between program and model.

    ``turn_id`` counts from 0 without gaps in a conversation; a turn that you make yourself needs none.
    ``token_estimate`` is what replaying the turn costs.
    """

    turn_id: int = 0
    """The number of the turn in its conversation, from 0 on."""
    user_prompt: str = ""
    """What the user said."""
    assistant_response: str = ""
    """What the assistant answered."""
    raw_messages: list[Any] = field(default_factory=list)
    """The messages between program and model, as JSON values."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the application stored with the turn."""
    token_estimate: int = 0
    """How many tokens it takes to replay the turn."""
    created_at: datetime = field(default_factory=clock.now)
    """When the turn was appended."""
    input_tokens: int | None = None
    """The size of the prompt that the last call of the model in this turn reported."""
    summary_is_due: bool = field(default=False, compare=False, repr=False)
    """After ``summarize=False``: whether ``summarize()`` has something to do, as far as the writer knows."""

    @property
    def is_summary(self) -> bool:
        """Whether this turn is an earlier summary, which a summarizer gets as its first turn."""
        return self.turn_id == _SUMMARY

    @property
    def is_recalled(self) -> bool:
        """Whether this turn is what a strategy found for the new prompt: data, not a part of the conversation."""
        return self.turn_id == _RECALLED

    @classmethod
    def of_summary(cls, summary: str, created_at: datetime) -> ConversationTurn:
        """An earlier summary, word for word, in the form of a turn."""
        return cls(turn_id=_SUMMARY, user_prompt=SUMMARY_PROMPT, assistant_response=summary, created_at=created_at)

    @classmethod
    def of_recalled(cls, text: str, created_at: datetime) -> ConversationTurn:
        """What a strategy found for a prompt, in the form of a turn."""
        return cls(turn_id=_RECALLED, user_prompt=RECALLED_PROMPT, assistant_response=text, created_at=created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation in ``list_conversations``, which reads no turns."""

    conversation_id: str
    """The id of the conversation."""
    turns: int
    """The number of turns."""
    total_tokens: int
    """The token estimates of all turns together."""
    summarized_turns: int
    """The number of turns, from the first on, that are out of the window, replaced by the summary, if there is one."""
    created_at: datetime
    """When the conversation was created."""
    updated_at: datetime
    """When the newest turn was appended."""
    dropped_turns: int = 0
    """The number of turns, from the first on, that are no longer stored: a strategy deleted them, or an
    ``InMemoryStore(max_turns_kept=…)`` dropped them."""
    owner: str | None = None
    """The person whose conversation it is, as the creation said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushInfo:
    """A flush that is in force: the oldest turns left the window by it."""

    flush_id: str
    """The id, for ``restore_flush``."""
    strategy: str
    """The kind of the strategy that decided it, such as ``summarizer`` or ``neuralyzer``."""
    first_turn: int
    """The first turn that left the window by it."""
    turns: int
    """How many turns left the window by it."""
    summary: str | None
    """The summary that replaced these turns and all before them; ``None`` if nothing did."""
    created_at: datetime
    """When it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage(Sequence[ConversationInfo]):
    """Some conversations, and in ``next`` the cursor of the next page: ``list_conversations(after=page.next)``."""

    conversations: tuple[ConversationInfo, ...]
    """The conversations of this page."""
    next: str | None
    """``None`` on the last page."""

    def __len__(self) -> int:
        return len(self.conversations)

    @overload
    def __getitem__(self, index: int) -> ConversationInfo: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ConversationInfo]: ...

    def __getitem__(self, index: int | slice) -> ConversationInfo | Sequence[ConversationInfo]:
        return self.conversations[index]


@dataclass(frozen=True, slots=True)
class Window:
    """The replayed part of a conversation, and a receipt for the rest.

    ``messages`` is what ``get_message_history`` returns: the summary, if there is one and it has room, then the
    messages of ``turns``. ``tokens`` counts exactly these and never exceeds ``budget``.
    """

    conversation_id: str
    """The id of the conversation."""
    _: KW_ONLY
    budget: int
    """The most tokens that the messages may have."""
    messages: list[Any] = field(default_factory=list)
    """The messages to replay: the summary, if it fits, then those of the turns."""
    turns: tuple[int, ...] = ()
    """The ``turn_id`` of each replayed turn, oldest first."""
    tokens: int = 0
    """The token estimates of the messages together."""
    summary: str | None = None
    """The summary, also if it did not fit."""
    recalled: str | None = None
    """The text in front of the turns with what was found in memory for the new prompt, if anything was and it fits."""
    total_turns: int = 0
    """The number of turns in the conversation, to be passed on as ``expected_turns``."""
    left_out: tuple[str, ...] = ()
    """The omitted parts, with a phrase for each reason."""
    replayed: tuple[ConversationTurn, ...] = field(default=(), repr=False, compare=False)
    """The turns of these messages, after the summary as a turn, if it fits."""
    unfiltered: tuple[ConversationTurn, ...] = field(default=(), repr=False, compare=False)
    """The turns that the short-term strategies were given."""
