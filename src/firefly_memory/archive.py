"""Everything a store keeps, as JSON Lines: out in constant memory, in again as often as one likes.

The first line says what the file is, the last one how much is in it. Between them each line is an entry, a conversation
or a turn, whose conversation came before it; so it is with a dialogue and its entries, which are what pydantic-ai's
``ConversationStore`` keeps. Values are written as :data:`~firefly_memory.codec.DOCUMENT` says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

from firefly_memory import clock
from firefly_memory.archive_items import CONVERSATION, DIALOGUE, ENTRY, MESSAGE, TURN, Counts, Item, Placed
from firefly_memory.codec import DOCUMENT, DecodeError
from firefly_memory.colours import finish
from firefly_memory.conversation_export import checked_summarized, turn_as_json, turn_from_json
from firefly_memory.conversation_flows import Condition, ConversationFlows, Rules
from firefly_memory.dialogue_archive import (
    DialogueWriter,
    Replaceable,
    dialogues_of,
    if_unfinished,
    messages_of,
)
from firefly_memory.entries import MemoryEntry, MemoryScope
from firefly_memory.errors import CorruptDataError, FireflyMemoryError, InvalidEntryError, NotSupportedError
from firefly_memory.names import original_name, stored_name, stored_text
from firefly_memory.protocols import Capability, MemoryStore, StoreView
from firefly_memory.stores.custom import adapt
from firefly_memory.tokens import TokenEstimator
from firefly_memory.turns import ConversationInfo, ConversationTurn

FORMAT = "firefly-memory-archive/1"

_PAGE = 500
_MOST_TOKENS = 2**53

Progress = Callable[[Counts], None]
"""Called again and again while an export or import is under way, with what it has done so far."""


def export_jsonl(
    store: MemoryStore,
    file: IO[str],
    *,
    raw_messages: bool = True,
    dialogues: bool = True,
    progress: Progress | None = None,
) -> Counts:
    """Write all live entries and all conversations of ``store`` to ``file``, and return how many.

    With ``raw_messages=False`` turns are written without their messages. What is saved meanwhile may or may not be in
    the file. Of a store without ``Capability.LISTING``, only the conversations are written. Those of pydantic-ai's
    ``ConversationStore``, which are all messages, are left out with ``raw_messages=False`` or ``dialogues=False``.
    """
    counts = Counts()
    for line in _at_once(_lines(adapt(store).blocking, counts, raw_messages, dialogues)):
        file.write(line)
        _report(progress, counts)
    return counts


async def async_export_jsonl(
    store: MemoryStore,
    file: IO[str],
    *,
    raw_messages: bool = True,
    dialogues: bool = True,
    progress: Progress | None = None,
) -> Counts:
    counts = Counts()
    async for line in _lines(adapt(store).suspending, counts, raw_messages, dialogues):
        file.write(line)
        _report(progress, counts)
    return counts


def import_jsonl(
    store: MemoryStore, file: Iterable[str], *, dialogues: bool = True, progress: Progress | None = None
) -> Counts:
    """Save what :func:`export_jsonl` wrote, and return how much.

    Importing the same again changes nothing, so an import that broke off is simply started again. An entry takes the
    place of the one with its id; a conversation that has other turns already is a ``TurnConflictError``, and one of
    pydantic-ai that is another one already a ``ConflictError``. A file that is damaged or ends too early is a
    ``CorruptDataError`` that names the line; what came before it has been saved. Conversations of pydantic-ai are a
    ``NotSupportedError`` in a store that cannot keep them, unless ``dialogues=False`` leaves them out.
    """
    return finish(_import(adapt(store).blocking, file, dialogues, progress))


async def async_import_jsonl(
    store: MemoryStore, file: Iterable[str], *, dialogues: bool = True, progress: Progress | None = None
) -> Counts:
    return await _import(adapt(store).suspending, file, dialogues, progress)


async_export_jsonl.__doc__ = export_jsonl.__doc__
async_import_jsonl.__doc__ = import_jsonl.__doc__


def _report(progress: Progress | None, counts: Counts) -> None:
    if progress is not None:
        progress(counts)


def _at_once(lines: AsyncIterator[str]) -> Iterator[str]:
    """An asynchronous iterator that never suspends, as an ordinary one."""

    async def following() -> str | None:
        return await anext(lines, None)

    while (line := finish(following())) is not None:
        yield line


async def _lines(view: StoreView, counts: Counts, raw_messages: bool, dialogues: bool) -> AsyncIterator[str]:
    def line(kind: str, item: Item) -> str:
        counts.add(kind)
        return _line({kind: item})

    yield _line({"format": FORMAT, "created_at": clock.now().isoformat(), "raw_messages": raw_messages})
    if Capability.LISTING in view.capabilities:
        async for _, entry in entries_of(view):
            yield line(ENTRY, entry)
    async for _, conversation in conversations_of(view):
        yield line(CONVERSATION, conversation)
        async for _, turn in turns_of(view, conversation, raw_messages=raw_messages):
            yield line(TURN, turn)
    if raw_messages and dialogues:
        given: set[str] = set()
        async for _, dialogue in dialogues_of(view.dialogues):
            yield line(DIALOGUE, dialogue)
            async for _, message in messages_of(view.dialogues, dialogue, given, given):
                yield line(MESSAGE, message)
    yield _line({"end": counts.as_dict()})


async def entries_of(view: StoreView) -> Placed:
    """All live entries."""
    async for namespace in _namespaces(view):
        after: str | None = None
        while True:
            page = await view.load_page(namespace, _PAGE, after)
            for entry in page:
                place = (stored_text(namespace), entry.created_at, stored_text(entry.entry_id))
                yield place, {"namespace": namespace, **_entry_as_json(entry)}
            after = page.next
            if after is None:
                break


async def conversations_of(view: StoreView) -> Placed:
    """All conversations. These are listed newest first: their places shrink."""
    flows = _Flows(view)
    async for conversation in _conversations(flows):
        name = conversation.conversation_id
        summary = await flows.get_summary(name)  # which may stand for turns that are nowhere any more
        yield (
            (conversation.created_at, stored_text(name)),
            {
                "conversation_id": name,
                "created_at": conversation.created_at.isoformat(),
                "summary": summary,
                # What was dropped is nowhere: a copy begins with what comes after it.
                "summarized_turns": conversation.summarized_turns - conversation.dropped_turns,
                **({"dropped_turns": conversation.dropped_turns} if conversation.dropped_turns else {}),
            },
        )


async def turns_of(view: StoreView, conversation: Item, *, raw_messages: bool = True) -> Placed:
    """All turns of a conversation, counted from 0."""
    name = conversation["conversation_id"]
    async for turn, key in _Flows(view).keyed_turns(name):
        item = {"conversation_id": name, **turn_as_json(turn, raw_messages=raw_messages)}
        item["turn_id"] -= conversation.get("dropped_turns", 0)
        yield item["turn_id"], item if key is None else {**item, "idempotency_key": key}


async def _namespaces(view: StoreView) -> AsyncIterator[str]:
    after: str | None = None
    conversations = view.conversations.namespaces
    while page := await view.namespaces(limit=_PAGE, after=after):
        for namespace in page:
            if conversations is None or not namespace.startswith(conversations):
                yield namespace
        after = page[-1]


async def _conversations(flows: ConversationFlows) -> AsyncIterator[ConversationInfo]:
    after: str | None = None
    while True:
        page = await flows.list_conversations(_PAGE, after)
        for conversation in page:
            yield conversation
        after = page.next
        if after is None:
            return


async def _import(view: StoreView, file: Iterable[str], dialogues: bool, progress: Progress | None) -> Counts:
    counts = Counts()
    reader = _LineReader(view, counts, dialogues)
    number = 0
    try:
        for number, line in enumerate(file, 1):
            try:
                async with reader.whole_dialogues():
                    await reader.take_line(number, json.loads(line))
            except (AttributeError, DecodeError, KeyError, RecursionError, TypeError, ValueError) as exc:
                if isinstance(exc, FireflyMemoryError) and not isinstance(exc, ValueError):
                    raise
                place = f"line {number} of the archive"
                raise CorruptDataError("import", place, f"{type(exc).__name__}: {exc}") from exc
            except NotSupportedError as exc:
                raise NotSupportedError(f"line {number} of the archive: {exc}") from exc
            _report(progress, counts)
    except UnicodeDecodeError as exc:
        raise CorruptDataError("import", f"the archive after line {number}", f"it is not UTF-8: {exc}") from exc
    if not reader.ended:
        raise CorruptDataError("import", f"the archive after line {number}", "it ends too early")
    return counts


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
        self._dialogues = DialogueWriter(view.dialogues, replaceable)

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
        namespace = item.pop("namespace")
        conversations = self._view.conversations.namespaces
        if conversations is not None and namespace.startswith(conversations):
            reason = f"{namespace!r} is where this kind of store keeps a conversation; entries cannot be saved there"
            raise InvalidEntryError("namespace", reason)
        if namespace != self._namespace or len(self._batch) == _PAGE:
            await self._save_batch()
        self._namespace = namespace
        self._batch.append(_entry_from_json(item))

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
            await self._view.conversations.create(stored_name("conversation_id", name), created_at)
        self._conversation, self._turns = item, 0

    async def _take_turn(self, item: Item, there: bool) -> None:
        conversation = self._conversation
        if conversation is None or item["conversation_id"] != conversation["conversation_id"]:
            raise ValueError("it is of another conversation than the lines before")
        if not there:
            turn = turn_from_json(item, self._turns, "turn")
            condition = Condition(turn_id=self._turns, idempotency_key=item.get("idempotency_key"))
            flows = _Flows(self._view, None if turn.raw_messages is None else item.get("token_estimate"))
            await flows.add_turn(item["conversation_id"], turn, condition, summarize=False)
        self._turns += 1

    async def _finish_conversation(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None and conversation["summary"] is not None:
            turns = checked_summarized(conversation, "conversation", self._turns)
            flows = _Flows(self._view)
            await flows.replace_summary(conversation["conversation_id"], conversation["summary"], turns)


class _LineReader(Reader):
    """Between the first line and the last."""

    def __init__(self, view: StoreView, counts: Counts, dialogues: bool) -> None:
        super().__init__(view, counts)
        self._left_out = () if dialogues else (DIALOGUE, MESSAGE)
        self._lines = Counts()
        self.ended = False

    async def take_line(self, number: int, line: dict[str, Any]) -> None:
        if self.ended:
            raise ValueError("it comes after the end")
        if number == 1:
            if line.get("format") != FORMAT:
                raise ValueError(f"the format is {line.get('format')!r}, not {FORMAT}")
            return
        ((kind, item),) = line.items()
        if kind != "end":
            if kind not in self._left_out:
                await self.take(kind, item)
            self._lines.add(kind)
            return
        await self.finish()
        if Counts(**item) != self._lines:
            raise ValueError("lines are missing")
        self.ended = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted(TokenEstimator):
    """For a turn whose tokens have been counted before, perhaps by an estimator of somebody's own."""

    tokens: int

    def estimate_turn(self, user_prompt: str, assistant_response: str, messages: Sequence[Any] = ()) -> int:
        return self.tokens


class _Flows(ConversationFlows):
    """The conversations of a store, for turns that have ``tokens``, if these are known."""

    def __init__(self, view: StoreView, tokens: int | None = None) -> None:
        if tokens is not None and tokens > _MOST_TOKENS:
            raise ValueError("token_estimate is larger than any count of tokens")
        estimator = TokenEstimator() if tokens is None else _Counted(tokens=tokens)
        super().__init__(view.conversations, Rules(1, 0, estimator), None)

    async def keyed_turns(self, conversation_id: str) -> AsyncIterator[tuple[ConversationTurn, str | None]]:
        """All turns, with their idempotency keys."""
        name, after = stored_name("conversation_id", conversation_id), -1
        while page := await self._log.turns(name, after, _PAGE):
            for stored in page:
                key = stored.idempotency_key
                yield self._turn(name, stored), None if key is None else original_name(key)
            after = page[-1].turn_id


def _line(item: dict[str, Any]) -> str:
    try:
        return json.dumps(item) + "\n"
    except ValueError as exc:  # Python's limit for the digits of an integer
        raise InvalidEntryError("the archive", f"cannot hold a value; `firefly-memory copy` can ({exc})") from exc


def _entry_as_json(entry: MemoryEntry) -> dict[str, Any]:
    return {
        "entry_id": entry.entry_id,
        "scope": entry.scope.value,
        "key": entry.key,
        "content": DOCUMENT.encode(entry.content),
        "metadata": DOCUMENT.encode(entry.metadata),
        "created_at": entry.created_at.isoformat(),
        "expires_at": None if entry.expires_at is None else entry.expires_at.isoformat(),
        "importance": entry.importance,
    }


def _entry_from_json(item: dict[str, Any]) -> MemoryEntry:
    content, metadata = DOCUMENT.decode(item.pop("content")), DOCUMENT.decode(item.pop("metadata"))
    return MemoryEntry(content=content, metadata=metadata, scope=MemoryScope(item.pop("scope")), **item)
