"""Stores the messages of a run. The caller gets the answer of the run even if storing fails."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from pydantic_ai.messages import ModelMessage

from firefly_memory.agents.run_messages import in_conversation
from firefly_memory.concurrency.cancellation import finished
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.conversations.types import ConversationTurn, Window
from firefly_memory.errors import (
    ConflictError,
    ErasedError,
    FireflyMemoryError,
    InvalidEntryError,
    TurnConflictError,
    UnknownConversationError,
)
from firefly_memory.identifiers import new_entry_id, stored_text
from firefly_memory.working import WorkingMemory

logger = logging.getLogger("firefly_memory")

OnConflict = Literal["append", "reject", "branch"]

_Stored = tuple[str, ConversationTurn | None]
"""The id of the conversation that a turn is in, or should be in, and the turn if it is."""


class Said(NamedTuple):
    """A turn that is to be stored."""

    prompt: str
    response: str
    messages: list[ModelMessage]


@dataclass
class TurnOfSteps:
    """Several runs that form one turn: each run sees the messages of the earlier runs, and only the turn is stored."""

    loaded: Window
    messages: list[ModelMessage] = field(default_factory=list)
    """The messages of its runs."""
    turn_key: str = field(default_factory=new_entry_id)
    owner: str | None = None
    """The owner that its runs say."""

    def so_far(self) -> Window:
        """The window for the next run."""
        return replace(self.loaded, messages=[*self.loaded.messages, *self.messages])


class Recorder:
    """Appends turns to conversations of ``owner`` as ``on_conflict`` says. A turn that cannot be stored is logged, or,
    if it ``must_store``, an error."""

    def __init__(
        self,
        conversation: ConversationMemory,
        on_conflict: OnConflict,
        owner: str | None = None,
        *,
        must_store: bool = False,
    ) -> None:
        self._conversation = conversation
        self._must_store = must_store
        self._on_conflict = on_conflict
        self._owner = owner

    async def add(self, key: str | None, loaded: Window, said: Said, result: Any, *, is_repeated: bool = False) -> str:
        """Store the turn, even while this task is cancelled, and then summarize if a summary is due.

        The turn of a run that ``is_repeated`` is already stored and stays as it is. Returns the id of the conversation
        that has the turn, or would have it if storing had not failed.
        """
        conversation_id, turn = await finished(self._append(key, loaded, said, result, is_repeated=is_repeated))
        if turn is not None and turn.summary_is_due:
            await self._conversation.async_summarize(conversation_id)
        return conversation_id

    async def add_broken(self, key: str | None, loaded: Window, said: Said) -> None:
        """Store the turn of a run that failed. An error of storing is logged, because the run raises its own error."""
        try:
            await self._append(key, loaded, said, None)
        except FireflyMemoryError:
            logger.exception("the turn of a run that broke off was not stored")

    async def _append(
        self, key: str | None, loaded: Window, said: Said, result: Any, *, is_repeated: bool = False
    ) -> _Stored:
        expected = None if self._on_conflict == "append" else loaded.total_turns
        options = {"idempotency_key": key, "expected_turns": expected}
        turn = None
        try:
            turn = await self._add_turn(loaded.conversation_id, said, options)
        except TurnConflictError as conflict:
            turn = await self._stored_before(conflict)
            if not is_repeated and (turn is None or turn.user_prompt != said.prompt):
                logger.warning("run %s in %r was stored before, with another prompt", key, loaded.conversation_id)
                return await self._append(None, loaded, said, result)
            logger.info("run %s in %r was stored before", key, loaded.conversation_id)
        except ConflictError as conflict:
            await self._forget_facts_of_deleted(loaded)
            if self._on_conflict != "branch" or isinstance(conflict, ErasedError):
                conflict.result = result
                raise
            return await self._branch(loaded, said, result)
        except Exception as error:
            logger.exception("the turn of run %s in %r was not stored", key, loaded.conversation_id)
            await self._forget_facts_of_deleted(loaded)
            self._raise_if_it_must(error, result)
        return loaded.conversation_id, turn

    async def _stored_before(self, conflict: TurnConflictError) -> ConversationTurn | None:
        """The stored turn with the same id. The repeated run has other timestamps, and perhaps other texts."""
        after = None if conflict.turn_id == 0 else conflict.turn_id - 1
        turns = await self._conversation.async_get_turns(conflict.conversation_id, limit=1, after=after)
        return turns[0] if turns else None

    def _raise_if_it_must(self, error: Exception, result: Any) -> None:
        if self._must_store and isinstance(error, FireflyMemoryError):
            error.result = result
            raise error

    async def _branch(self, loaded: Window, said: Said, result: Any) -> _Stored:
        conversation_id = branch = loaded.conversation_id
        turn = None
        try:
            branch = await self._new_branch(loaded)
            said = said._replace(messages=in_conversation(said.messages, branch))
            turn = await self._add_turn(branch, said, {"metadata": {"branched_from": conversation_id}})
        except Exception as error:
            logger.exception("the turn of a run in %r, which has gone another way, was not stored", conversation_id)
            self._raise_if_it_must(error, result)
        else:
            logger.warning("%r has gone another way; the turn is in the new conversation %r", conversation_id, branch)
        return branch, turn

    async def _new_branch(self, loaded: Window) -> str:
        """A new conversation with the turns that the run has seen."""
        if loaded.total_turns:
            with suppress(UnknownConversationError):  # it has been deleted meanwhile
                return await self._conversation.async_fork_conversation(
                    loaded.conversation_id, turns=loaded.total_turns
                )
        return await self._conversation.async_new_conversation(owner=self._owner)

    async def _forget_facts_of_deleted(self, loaded: Window) -> None:
        """Delete facts that a run has written after its conversation was deleted: the next user of the id would read
        them. A conversation without turns keeps its facts, because it may not have been created yet."""
        name, store = loaded.conversation_id, self._conversation.store
        try:
            if loaded.total_turns and await store.suspending.log(CONVERSATION_LOG).head(stored_text(name)) is None:
                await WorkingMemory(store=store, conversation_id=name).async_clear()
        except Exception:
            logger.exception("facts of %r, which may have been deleted, were not looked at", name)

    async def _add_turn(self, conversation_id: str, said: Said, options: dict[str, Any]) -> ConversationTurn:
        may_warn = True
        while True:
            try:
                return await self._conversation.async_add_turn(
                    conversation_id, *said, **options, owner=self._owner, summarize=False
                )
            except Warning as warning:  # the application turns warnings into errors: store the turn first, then raise
                if not may_warn:
                    raise
                may_warn = False
                logger.warning("%s", warning)
            except InvalidEntryError as invalid:  # JSON has no lone surrogates, for example
                if not said.messages:
                    raise
                said = said._replace(messages=[])
                logger.warning("of a turn in %r only the texts are stored: %s", conversation_id, invalid)
