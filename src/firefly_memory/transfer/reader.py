"""Items of an archive or of another store, into a store: one after the other, entries in batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.codec import DOCUMENT
from firefly_memory.conversations.flows import Condition, ConversationFlows, NewTurn, Rules
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.transfer import checked_summarized, turn_from_json
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.entries.entry import MemoryEntry, MemoryScope
from firefly_memory.entries.fact_ids import id_of_today
from firefly_memory.errors import FireflyMemoryError
from firefly_memory.facets import log_if_there
from firefly_memory.identifiers import namespace_out_of_the_way, original_name, stored_name
from firefly_memory.protocols import Capability, StoreView
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.transfer.agent_history import DialogueWriter, Replaceable, if_unfinished
from firefly_memory.transfer.items import ENTRY, Counts, Item

PAGE = 500


class Reader:
    """Saves item after item; entries in batches. With ``replace``, entries take the place of those with their ids in
    the order as well. What is ``there`` already is counted and passed by. Dialogues give way if ``replaceable``."""

    def __init__(
        self, view: StoreView, counts: Counts, *, replace: bool = False, replaceable: Replaceable = if_unfinished
    ) -> None:
        self._view = view
        self._counts = counts
        self._replace = replace
        self._namespace = ""
        self._batch: list[MemoryEntry] = []
        self._conversation: Item | None = None
        self._turns = 0
        self._dialogues = DialogueWriter(log_if_there(view, AGENT_HISTORY_LOG), replaceable)

    async def take(self, kind: str, item: Item, *, there: bool = False) -> None:
        if kind != ENTRY:
            await self._save_batch()
        match kind:
            case "entry":
                if not there:
                    await self._take_entry(dict(item))
            case "conversation":
                await self._take_conversation(item, there)
            case "turn":
                await self._take_turn(item, there)
            case "dialogue":
                await self._finish_conversation()
                await self._dialogues.begin(item)
            case "dialogue_entry":
                await self._dialogues.take(item)
            case _:
                raise ValueError(f"there are no lines of the kind {kind!r}")
        self._counts.add(kind)

    async def finish(self) -> None:
        """Save what is still to be saved."""
        await self._save_batch()
        await self._finish_conversation()
        await self._dialogues.finish()

    async def save_all(self) -> None:
        """Save what was taken, however little that is."""
        await self._save_batch()
        await self._dialogues.take_a_step()

    @asynccontextmanager
    async def whole_dialogues(self) -> AsyncIterator[None]:
        """Of a dialogue with something in it that is refused, nothing stays."""
        try:
            yield
        except Exception:
            with suppress(FireflyMemoryError):  # the first error is the one to raise
                await self._dialogues.abandon()
            raise

    async def _take_entry(self, item: Item) -> None:
        """Under the names that revision 0004 gives: an archive of before may have others."""
        given = item.pop("namespace")
        entry = _entry_from_json(item)
        _check_names(given, entry)
        entry.entry_id = id_of_today(given, entry.key, entry.entry_id)
        namespace = namespace_out_of_the_way(given)
        if namespace != self._namespace or len(self._batch) == PAGE:
            await self._save_batch()
        self._namespace = namespace
        self._batch.append(entry)

    async def _save_batch(self) -> None:
        if self._batch:
            if self._replace:  # one that is saved again would keep its place
                await self._view.delete_many(self._namespace, [entry.entry_id for entry in self._batch])
            if Capability.ATOMIC_BATCHES in self._view.capabilities:
                await self._view.save_many(self._namespace, self._batch)
            else:
                for entry in self._batch:
                    await self._view.save(self._namespace, entry)
            self._batch = []

    async def _take_conversation(self, item: Item, there: bool) -> None:
        await self._finish_conversation()
        name = item["conversation_id"]
        created_at = datetime.fromisoformat(item["created_at"]).astimezone(UTC)
        if not there:
            await self._view.log(CONVERSATION_LOG).create(stored_name("conversation_id", name), created_at)
        self._conversation, self._turns = item, 0

    async def _take_turn(self, item: Item, there: bool) -> None:
        conversation = self._conversation
        if conversation is None or item["conversation_id"] != conversation["conversation_id"]:
            raise ValueError("it is of another conversation than the lines before")
        if not there:
            turn = turn_from_json(item, self._turns, "turn")
            condition = Condition(turn_id=self._turns, idempotency_key=item.get("idempotency_key"))
            flows = Flows(self._view, self._tokens(turn, item.get("token_estimate")))
            await flows.add_turn(item["conversation_id"], turn, condition, summarize=False)
        self._turns += 1

    def _tokens(self, turn: NewTurn, said: int | None) -> int | None:
        """What the turn costs; ``None`` to count it."""
        return None if turn.raw_messages is None else said

    async def _finish_conversation(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None and conversation["summary"] is not None:
            turns = checked_summarized(conversation, "conversation", self._turns)
            flows = Flows(self._view)
            await flows.replace_summary(conversation["conversation_id"], conversation["summary"], turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted(TokenEstimator):
    """For a turn whose tokens have been counted before, perhaps by an estimator of somebody's own."""

    tokens: int

    def estimate_turn(self, user_prompt: str, assistant_response: str, messages: Sequence[Any] = ()) -> int:
        return self.tokens


class Flows(ConversationFlows):
    """The conversations of a store, for turns that have ``tokens``, if these are known."""

    def __init__(self, view: StoreView, tokens: int | None = None) -> None:
        estimator = TokenEstimator() if tokens is None else _Counted(tokens=tokens)
        super().__init__(view.log(CONVERSATION_LOG), Rules(1, 0, estimator), None)

    async def keyed_turns(self, conversation_id: str) -> AsyncIterator[tuple[ConversationTurn, str | None]]:
        """All turns, with their idempotency keys."""
        name, after = stored_name("conversation_id", conversation_id), -1
        while page := await self._log.turns(name, after, PAGE):
            for stored in page:
                key = stored.idempotency_key
                yield self._turn(name, stored), None if key is None else original_name(key)
            after = page[-1].turn_id


def _check_names(namespace: str, entry: MemoryEntry) -> None:
    """Now, for this entry: later they would be refused with its batch."""
    stored_name("namespace", namespace)
    stored_name("entry_id", entry.entry_id)
    if entry.key is not None:
        stored_name("key", entry.key)


def _entry_from_json(item: dict[str, Any]) -> MemoryEntry:
    content, metadata = DOCUMENT.decode(item.pop("content")), DOCUMENT.decode(item.pop("metadata"))
    return MemoryEntry(content=content, metadata=metadata, scope=MemoryScope(item.pop("scope")), **item)
