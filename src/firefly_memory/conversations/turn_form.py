"""A turn as callers pass it, as it is stored, and as users see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firefly_memory import clock
from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.conversations.log import MOST_TOKENS, ConversationLog, StoredTurn, askable
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.entries.entry import in_utc
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import new_entry_id, original_name, stored_name, stored_text
from firefly_memory.messages.storage import PYDANTIC_AI, decoded, encoded
from firefly_memory.messages.usage import reported_input_tokens
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import checked_mapping, checked_text, checked_whole_number


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A new turn, as the caller passed it."""

    user_prompt: str
    assistant_response: str
    raw_messages: Sequence[Any] | None = ()
    """``None`` if unknown: then a retry is compared without them."""
    metadata: dict[str, Any] | None = None
    created_at: datetime | None = None
    input_tokens: int | None = None


class TurnForm:
    """Writes and reads the turns of one mode of a backend."""

    def __init__(self, log: ConversationLog, estimator: TokenEstimator) -> None:
        self._log = log
        self._estimator = estimator

    def draft(self, new: NewTurn, idempotency_key: str | None) -> StoredTurn:
        prompt, response = (
            checked_text("user_prompt", new.user_prompt),
            checked_text("assistant_response", new.assistant_response),
        )
        given = () if new.raw_messages is None else new.raw_messages
        messages, form = encoded(given)
        return StoredTurn(
            turn_id=-1,
            tokens=_tokens(self._estimator.estimate_turn(prompt, response, given)),
            user_prompt=stored_text(prompt),
            assistant_response=stored_text(response),
            messages=messages,
            messages_format=form,
            metadata=self._log.form.encode(_mapping(new.metadata), "metadata"),
            idempotency_key=None if idempotency_key is None else stored_name("idempotency_key", idempotency_key),
            append_id=new_entry_id(),
            created_at=clock.now() if new.created_at is None else in_utc(new.created_at),
            input_tokens=_reported(new, given),
        )

    def appended(self, new: NewTurn, draft: StoredTurn, turn_id: int) -> ConversationTurn:
        """The turn as it was stored."""
        # Reading pydantic-ai's messages back would take as long as writing them, and make the same of them.
        theirs = draft.messages_format == PYDANTIC_AI
        return ConversationTurn(
            turn_id=turn_id,
            user_prompt=new.user_prompt,
            assistant_response=new.assistant_response,
            raw_messages=list(new.raw_messages or ()) if theirs else decoded(draft.messages, draft.messages_format),
            metadata=self._log.form.decode(draft.metadata),
            token_estimate=draft.tokens,
            created_at=draft.created_at,
            input_tokens=draft.input_tokens,
        )

    def turn(self, name: str, stored: StoredTurn) -> ConversationTurn:
        try:
            return ConversationTurn(
                turn_id=askable(stored.turn_id),
                user_prompt=original_name(stored.user_prompt),
                assistant_response=original_name(stored.assistant_response),
                raw_messages=decoded(stored.messages, stored.messages_format),
                metadata=self._log.form.decode(stored.metadata),
                token_estimate=stored.tokens,
                created_at=self._log.read_instant(stored.created_at),
                input_tokens=stored.input_tokens,
            )
        except DAMAGE as exc:
            where = f"turn {stored.turn_id} of conversation {original_name(name)!r}"
            raise damaged("reading a conversation", where, exc) from exc


def _tokens(estimate: Any) -> int:
    """At least 1, so that running sums tell turns apart, and so few that the sum of all turns fits 64 bits."""
    if not isinstance(estimate, int) or estimate > MOST_TOKENS:
        raise InvalidEntryError("token_estimate", f"must be a whole number, and not above {MOST_TOKENS}")
    return max(1, int(estimate))


def _reported(new: NewTurn, messages: Sequence[Any]) -> int | None:
    """The size of the last prompt, as the caller says it, or the messages do."""
    if new.input_tokens is None:
        reported = reported_input_tokens(messages)
        return None if reported is None else min(reported, MOST_TOKENS)
    return min(checked_whole_number("input_tokens", new.input_tokens, 0), MOST_TOKENS)


def _mapping(value: Any) -> dict[str, Any]:
    return {} if value is None else checked_mapping("metadata", value)
