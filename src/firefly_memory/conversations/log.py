"""What a place has to offer so that conversations can be kept in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import NoneType
from typing import Any, NamedTuple, Protocol

from firefly_memory.codec import Form
from firefly_memory.entries.record import ReadInstant
from firefly_memory.errors import CorruptDataError
from firefly_memory.facets import LogOf
from firefly_memory.identifiers import original_name
from firefly_memory.validation import is_whole_number

MOST_TOKENS = 2**31 - 2
"""Of one turn. Four thousand million such turns have a sum that fits 64 bits."""


MOST_TURNS = 2**31 - 2
"""Of a conversation: what may be asked for."""


class Head(NamedTuple):
    """What is known of a conversation without its turns."""

    conversation_id: str
    turns: int
    tokens: int
    evicted_turns: int
    """How many turns, from the first on, the summary stands for."""
    evicted_tokens: int
    summary: str | None
    created_at: Any
    updated_at: Any
    dropped_turns: int = 0
    """How many of those, from the first on, the place no longer has: none, but where somebody set a bound."""

    @property
    def live_tokens(self) -> int:
        """The tokens of the turns that the summary does not stand for."""
        return self.tokens - self.evicted_tokens


HEAD_COLUMNS = tuple(name for name in Head._fields if name != "dropped_turns")
"""What a database has columns for, in order: it drops nothing."""


class Appended(NamedTuple):
    """What a conversation has with a turn that was just appended: the turn is number ``turns - 1``."""

    turns: int
    tokens: int
    evicted_tokens: int
    """Of the turns that the summary stands for; fewer, perhaps, if somebody else has made one lately."""

    @property
    def live_tokens(self) -> int:
        """The tokens of the turns that the summary does not stand for, or more."""
        return self.tokens - self.evicted_tokens


class StoredTurn(NamedTuple):
    """A turn, encoded: what a row, document or entry of it holds."""

    turn_id: int
    """In a draft, which is about to be appended, without meaning: the place gives the number."""
    tokens: int
    user_prompt: str
    assistant_response: str
    messages: str | None
    messages_format: str | None
    metadata: Any
    idempotency_key: str | None
    append_id: str
    created_at: Any

    @property
    def size(self) -> int:
        """About how many characters it has."""
        return len(self.user_prompt) + len(self.assistant_response) + len(self.messages or "")


def checked_head(head: Head) -> Head:
    """``head``, which comes from a place that takes anything for a number and for a text."""
    numbers = (head.turns, head.tokens, head.evicted_turns, head.evicted_tokens)
    if not (all(is_whole_number(each, 0) for each in numbers) and isinstance(head.summary, (str, NoneType))):
        where = f"conversation {_name(head.conversation_id)}"
        raise CorruptDataError("reading a conversation", where, "a count is no whole number, or its summary no text")
    return head


def checked_turn(conversation_id: str, turn: StoredTurn) -> StoredTurn:
    """``turn``, which comes from such a place."""
    texts = (turn.user_prompt, turn.assistant_response)
    more = (turn.messages, turn.messages_format, turn.idempotency_key)
    is_sound = (
        is_whole_number(turn.turn_id, 0)
        and is_whole_number(turn.tokens, 0)
        and all(isinstance(each, str) for each in texts)
        and all(isinstance(each, (str, NoneType)) for each in more)
    )
    if not is_sound:
        where = f"turn {turn.turn_id!r} of conversation {_name(conversation_id)}"
        raise CorruptDataError("reading a conversation", where, "a count is no whole number, or a text no text")
    return turn


def askable(turn_id: int) -> int:
    """``turn_id``; ``ValueError`` if nobody could ask for the turns after it."""
    if turn_id > MOST_TURNS:
        raise ValueError("no conversation has so many turns")
    return turn_id


def _name(conversation_id: Any) -> str:
    return repr(original_name(conversation_id) if isinstance(conversation_id, str) else conversation_id)


Draft = tuple[str, StoredTurn]
"""The conversation that a turn is to be appended to, and the turn."""


class ConversationLog(Protocol):
    """One mode of one place. Ids and texts are in their stored form, ``now`` is in UTC.

    Whatever writes is all or nothing, and what it wrote is durable when it returns, as far as the place is.
    """

    @property
    def form(self) -> Form:
        """How metadata is encoded."""

    @property
    def read_instant(self) -> ReadInstant:
        """How the instants this place returns are read."""

    async def create(self, conversation_id: str, now: datetime) -> bool:
        """Make an empty conversation; ``False`` if there is one already."""

    async def append(self, conversation_id: str, draft: StoredTurn, expected: int | None) -> Appended | None:
        """Append as the newest turn.

        Makes the conversation if there is none. ``None``, and nothing is written, if it does not have ``expected``
        turns, or has one with the draft's ``idempotency_key``.
        """

    async def head(self, conversation_id: str) -> Head | None: ...

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        """The head, and the newest turns that are not evicted and have ``budget`` tokens or less together, in order."""

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        """The first ``limit`` turns after number ``after``, in order, evicted or not, but for those dropped."""

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None: ...

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        """Reserve the next summary until then, if nobody else has and ``evicted`` turns are evicted."""

    async def evict(self, conversation_id: str, claim: str, summary: str, turns: int, tokens: int) -> bool:
        """Let ``summary`` stand for the first ``turns`` turns, if the claim still holds, and end it."""

    async def release(self, conversation_id: str, claim: str) -> None:
        """End a claim that came to nothing."""

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        """Make ``fork_id`` with the first ``turns`` turns of the conversation, or all of them, and with its summary if
        that stands for none but these. ``False`` if there is no such conversation, or a ``fork_id`` already;
        ``TurnsDroppedError`` if the fork would need turns that were dropped."""

    async def delete(self, conversation_id: str, facts: str | None = None) -> None:
        """Delete a conversation, and the entries of the namespace ``facts``, if one is given."""

    async def delete_all(self, namespace: str | None) -> None:
        """Delete every conversation that is there with its facts, and the entries of a namespace, if one is given.

        Who appends to one meanwhile has appended before it was deleted, or to a new one.
        """

    async def page(self, limit: int, after: tuple[datetime, str] | None) -> Sequence[Head]:
        """The newest ``limit`` conversations made before ``after``, newest first, without their summaries."""


CONVERSATION_LOG: LogOf[ConversationLog] = LogOf("conversations")
"""``view.log(CONVERSATION_LOG)``: the conversations kept beside the entries of a store."""
