"""The contract of the facet: the operations on conversations that each backend implements.

A *log* here is the operations of one facet on one backend. It has nothing to do with logging.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import NoneType
from typing import Any, Literal, NamedTuple, Protocol

from firefly_memory.codec import Form
from firefly_memory.entries.record import ReadInstant
from firefly_memory.errors import CorruptDataError
from firefly_memory.facets import LogOf
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.log import Identity, conversation_identity, owner_identity
from firefly_memory.validation import is_whole_number

MOST_TOKENS = 2**31 - 2
"""The most tokens of one turn. The sum of four thousand million such turns fits 64 bits."""


MOST_TURNS = 2**31 - 2
"""The most turns of a conversation."""

Order = Literal["created", "updated"]
"""The order of a list of conversations: by their creation, or by their newest turn. The newest is always first."""


class Head(NamedTuple):
    """The facts about a conversation that are stored beside its turns."""

    conversation_id: str
    turns: int
    tokens: int
    evicted_turns: int
    """The number of turns, from the first on, that are out of the window, replaced by the summary, if there is one."""
    evicted_tokens: int
    summary: str | None
    created_at: Any
    updated_at: Any
    owner: str | None = None
    """The person whose conversation it is, as the creation said. It never changes."""
    dropped_turns: int = 0
    """The number of evicted turns, from the first on, that are no longer stored."""
    flush_id: str | None = None
    """The newest flush that is in force. It names the flush before it, and so on."""
    marks: str | None = None
    """JSON: how many turns there were when each strategy last ran, by the place of the strategy in its list."""

    @property
    def live_tokens(self) -> int:
        """The tokens of the turns in the window."""
        return self.tokens - self.evicted_tokens

    @property
    def live_turns(self) -> int:
        """The number of the turns in the window."""
        return self.turns - self.evicted_turns

    def lacks_turns_for(self, turns: int | None) -> bool:
        """Whether a fork with the first ``turns`` turns, or all, would need turns that were dropped."""
        return turns is not None and 0 < turns < self.evicted_turns and self.dropped_turns > 0


class Flush(NamedTuple):
    """A change by which the oldest turns left the window of a conversation, and the state before it.

    The flushes of a conversation are a chain: its head names the newest, and each names the one before it. A flush that
    no chain contains is not in force: it was restored, or its writer died before the head named it.
    """

    flush_id: str
    """The claim under which it was made."""
    previous: str | None
    """The flush that was in force before it."""
    strategy: str
    """The kind of the strategy, such as ``summarizer``."""
    turns: int
    """The number of turns, from the first on, that are out of the window since."""
    turns_before: int
    """The same number before the flush."""
    tokens_before: int
    """The tokens of these turns."""
    summary_before: str | None
    """The summary that was replaced by this flush."""
    created_at: Any


class Flushed(NamedTuple):
    """The state of a conversation after a flush: the new values of its head."""

    evicted_turns: int
    evicted_tokens: int
    summary: str | None
    dropped_turns: int
    """Turns before this number are deleted in the same change."""
    marks: str | None


class Appended(NamedTuple):
    """The counts of a conversation after a turn was appended. The number of that turn is ``turns - 1``."""

    turns: int
    tokens: int
    evicted_tokens: int
    """The tokens of the turns that are out of the window; too few if another writer has just flushed."""
    evicted_turns: int
    """The number of these turns; likewise."""

    @property
    def live_tokens(self) -> int:
        """The tokens of the turns in the window, or more."""
        return self.tokens - self.evicted_tokens

    @property
    def live_turns(self) -> int:
        """The number of the turns in the window, or more."""
        return self.turns - self.evicted_turns


class StoredTurn(NamedTuple):
    """An encoded turn, as a row, document or entry stores it."""

    turn_id: int
    """Without meaning in a draft that is not appended yet: the backend gives the number."""
    tokens: int
    user_prompt: str
    assistant_response: str
    messages: str | None
    messages_format: str | None
    metadata: Any
    idempotency_key: str | None
    append_id: str
    created_at: Any
    input_tokens: int | None = None
    """The size of the prompt that the last call of the model reported, as far as it is known."""

    @property
    def size(self) -> int:
        """About how many characters it has."""
        return len(self.user_prompt) + len(self.assistant_response) + len(self.messages or "")


def checked_head(head: Head) -> Head:
    """``head`` after a check, for backends that do not check types themselves."""
    numbers = (head.turns, head.tokens, head.evicted_turns, head.evicted_tokens, head.dropped_turns)
    texts = (head.summary, head.owner, head.flush_id, head.marks)
    are_texts = all(isinstance(each, (str, NoneType)) for each in texts)
    if not (are_texts and all(is_whole_number(each, 0) for each in numbers)):
        where = f"conversation {_name(head.conversation_id)}"
        reason = "a count is no whole number, or its summary, owner, flush or marks no text"
        raise CorruptDataError("reading a conversation", where, reason)
    return head


def checked_turn(conversation_id: str, turn: StoredTurn) -> StoredTurn:
    """``turn`` after a check, for backends that do not check types themselves."""
    texts = (turn.user_prompt, turn.assistant_response)
    more = (turn.messages, turn.messages_format, turn.idempotency_key)
    is_sound = (
        is_whole_number(turn.turn_id, 0)
        and is_whole_number(turn.tokens, 0)
        and (turn.input_tokens is None or is_whole_number(turn.input_tokens, 0))
        and all(isinstance(each, str) for each in texts)
        and all(isinstance(each, (str, NoneType)) for each in more)
    )
    if not is_sound:
        where = f"turn {turn.turn_id!r} of conversation {_name(conversation_id)}"
        raise CorruptDataError("reading a conversation", where, "a count is no whole number, or a text no text")
    return turn


def checked_flush(conversation_id: str, flush: Flush) -> Flush:
    """``flush`` after a check, for backends that do not check types themselves."""
    numbers = (flush.turns, flush.turns_before, flush.tokens_before)
    texts = (flush.previous, flush.summary_before)
    is_sound = (
        isinstance(flush.flush_id, str)
        and isinstance(flush.strategy, str)
        and all(is_whole_number(each, 0) for each in numbers)
        and all(isinstance(each, (str, NoneType)) for each in texts)
    )
    if not is_sound:
        where = f"flush {flush.flush_id!r} of conversation {_name(conversation_id)}"
        raise CorruptDataError("reading a conversation", where, "a count is no whole number, or a text no text")
    return flush


def identities_of(conversation_id: str, owner: str | None) -> tuple[Identity, ...]:
    """What must not be erased if the conversation is to be created for ``owner``."""
    itself = conversation_identity(conversation_id)
    return (itself,) if owner is None else (itself, owner_identity(owner))


def askable(turn_id: int) -> int:
    """``turn_id``; ``ValueError`` if it is higher than any number of a turn."""
    if turn_id > MOST_TURNS:
        raise ValueError("no conversation has so many turns")
    return turn_id


def _name(conversation_id: Any) -> str:
    return repr(original_name(conversation_id) if isinstance(conversation_id, str) else conversation_id)


Draft = tuple[str, StoredTurn]
"""The conversation that a turn is to be appended to, and the turn."""


class ConversationLog(Protocol):
    """The operations on conversations, for one mode of one backend. Ids and texts are in their stored form, ``now`` is
    in UTC.

    Each write is all or nothing, and durable when the method returns, as far as the backend is durable.
    """

    @property
    def form(self) -> Form:
        """How metadata is encoded."""

    @property
    def read_instant(self) -> ReadInstant:
        """The function that reads the instants of this backend."""

    async def create(self, conversation_id: str, now: datetime, owner: str | None = None) -> bool:
        """Make an empty conversation; ``False`` if there is one already, whoever owns it."""

    async def append(
        self, conversation_id: str, draft: StoredTurn, expected: int | None, owner: str | None = None
    ) -> Appended | None:
        """Append as the newest turn.

        Create the conversation, for ``owner``, if it does not exist. Return ``None``, and write nothing, if it does not
        have ``expected`` turns, or has a turn with the draft's ``idempotency_key``, or has another owner than
        ``owner``, if one is given.
        """

    async def head(self, conversation_id: str) -> Head | None: ...

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        """The head, and the newest turns that are not evicted and have at most ``budget`` tokens together, in order."""

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        """The first ``limit`` turns after number ``after``, in order, also evicted ones; dropped ones are missing."""

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None: ...

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        """Reserve the next flush until then, if nobody else has, and ``evicted`` turns are evicted."""

    async def flush(self, conversation_id: str, flush: Flush, after: Flushed) -> bool:
        """Store ``flush``, make it the newest of the chain, give the head the values ``after``, delete the turns that
        are dropped by it, and end the claim ``flush.flush_id``: all of this, if the claim still holds, else nothing.

        The caller has the claim, and has read the values before the flush from the head since."""

    async def find_flush(self, conversation_id: str, flush_id: str) -> Flush | None:
        """A flush by its id, whether or not it is in force."""

    async def restore(self, conversation_id: str, newest: str, flush: Flush) -> bool:
        """Give the head the values from before ``flush``, and ``flush.previous`` as the newest flush, and end any
        claim; ``False``, and nothing is changed, if the newest flush is not ``newest``, or turns were dropped since
        that would come back. The marks stay."""

    async def release(self, conversation_id: str, claim: str) -> None:
        """End a claim without a flush."""

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        """Create ``fork_id`` with the owner and the first ``turns`` turns of the conversation, or all, and with its
        summary and its flushes if these concern no other turns. ``False`` if the conversation does not exist, or
        ``fork_id`` exists already; ``TurnsDroppedError`` if the fork would need turns that were dropped."""

    async def delete(self, conversation_id: str, facts: str | None = None, seen: Head | None = None) -> bool:
        """Delete a conversation, and the entries of the namespace ``facts``, if one is given.

        With ``seen``, a head from :meth:`page` in the order ``updated``, only if nobody has appended to the
        conversation since, or deleted it: else ``False``, and nothing was changed.
        """

    async def delete_all(self, namespace: str | None) -> None:
        """Delete every conversation with its facts, and the entries of ``namespace``, if it is given.

        A concurrent append happens before the deletion, or creates a new conversation.
        """

    async def page(
        self, limit: int, after: tuple[datetime, str] | None, owner: str | None = None, order: Order = "created"
    ) -> Sequence[Head]:
        """The first ``limit`` conversations after the place ``after``, newest first, without their summaries: all, or
        those of ``owner``."""


CONVERSATION_LOG: LogOf[ConversationLog] = LogOf("conversations")
"""``view.log(CONVERSATION_LOG)``: the conversations kept beside the entries of a store."""
