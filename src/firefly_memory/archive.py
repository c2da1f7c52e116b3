"""Everything a store keeps, as JSON Lines: out in constant memory, in again as often as one likes.

The first line says what the file is, the last one how much is in it. Between them each line is an entry, a conversation
or a turn, whose conversation came before it. Values are written as :data:`~firefly_memory.codec.DOCUMENT` says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

from firefly_memory import clock
from firefly_memory.codec import DOCUMENT, DecodeError
from firefly_memory.colours import finish
from firefly_memory.conversation_export import checked_summarized, turn_as_json, turn_from_json
from firefly_memory.conversation_flows import Condition, ConversationFlows, Rules
from firefly_memory.entries import MemoryEntry, MemoryScope
from firefly_memory.errors import CorruptDataError, FireflyMemoryError
from firefly_memory.names import stored_name
from firefly_memory.protocols import Capability, MemoryStore, StoreView
from firefly_memory.stores.custom import adapt
from firefly_memory.tokens import TokenEstimator
from firefly_memory.turns import ConversationInfo

FORMAT = "firefly-memory-archive/1"

_PAGE = 500


@dataclass(slots=True)
class Counts:
    """How much an export wrote or an import read."""

    entries: int = 0
    conversations: int = 0
    turns: int = 0

    @property
    def total(self) -> int:
        return self.entries + self.conversations + self.turns


Progress = Callable[[Counts], None]
"""Called again and again while an export or import is under way, with what it has done so far."""


def export_jsonl(
    store: MemoryStore, file: IO[str], *, raw_messages: bool = True, progress: Progress | None = None
) -> Counts:
    """Write all live entries and all conversations of ``store`` to ``file``, and return how many.

    With ``raw_messages=False`` turns are written without their messages. What is saved meanwhile may or may not be in
    the file. Of a store without ``Capability.LISTING``, only the conversations are written.
    """
    counts = Counts()
    for line in _at_once(_lines(adapt(store).blocking, counts, raw_messages=raw_messages)):
        file.write(line)
        _report(progress, counts)
    return counts


async def async_export_jsonl(
    store: MemoryStore, file: IO[str], *, raw_messages: bool = True, progress: Progress | None = None
) -> Counts:
    counts = Counts()
    async for line in _lines(adapt(store).suspending, counts, raw_messages=raw_messages):
        file.write(line)
        _report(progress, counts)
    return counts


def import_jsonl(store: MemoryStore, file: Iterable[str], *, progress: Progress | None = None) -> Counts:
    """Save what :func:`export_jsonl` wrote, and return how much.

    Importing the same again changes nothing, so an import that broke off is simply started again. An entry takes the
    place of the one with its id; a conversation that has other turns already is a ``TurnConflictError``. A file that is
    damaged or ends too early is a ``CorruptDataError`` that names the line; what came before it has been saved.
    """
    return finish(_import(adapt(store).blocking, file, progress))


async def async_import_jsonl(store: MemoryStore, file: Iterable[str], *, progress: Progress | None = None) -> Counts:
    return await _import(adapt(store).suspending, file, progress)


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


async def _lines(view: StoreView, counts: Counts, *, raw_messages: bool) -> AsyncIterator[str]:
    yield _line({"format": FORMAT, "created_at": clock.now().isoformat(), "raw_messages": raw_messages})
    if Capability.LISTING in view.capabilities:
        async for namespace in _namespaces(view):
            after: str | None = None
            while True:
                page = await view.load_page(namespace, _PAGE, after)
                for entry in page:
                    counts.entries += 1
                    yield _line({"entry": {"namespace": namespace, **_entry_as_json(entry)}})
                after = page.next
                if after is None:
                    break
    flows = _flows(view)
    async for conversation in _conversations(flows):
        counts.conversations += 1
        name = conversation.conversation_id
        summary = await flows.get_summary(name) if conversation.summarized_turns else None
        yield _line(
            {
                "conversation": {
                    "conversation_id": name,
                    "created_at": conversation.created_at.isoformat(),
                    "summary": summary,
                    "summarized_turns": conversation.summarized_turns,
                }
            }
        )
        async for turn in flows.iterate_turns(name):
            counts.turns += 1
            yield _line({"turn": {"conversation_id": name, **turn_as_json(turn, raw_messages=raw_messages)}})
    yield _line({"end": {"entries": counts.entries, "conversations": counts.conversations, "turns": counts.turns}})


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


async def _import(view: StoreView, file: Iterable[str], progress: Progress | None) -> Counts:
    counts = Counts()
    reader = _Reader(view, counts)
    number = 0
    try:
        for number, line in enumerate(file, 1):
            try:
                await reader.take(number, json.loads(line))
            except (AttributeError, DecodeError, KeyError, RecursionError, TypeError, ValueError) as exc:
                if isinstance(exc, FireflyMemoryError) and not isinstance(exc, ValueError):
                    raise
                place = f"line {number} of the archive"
                raise CorruptDataError("import", place, f"{type(exc).__name__}: {exc}") from exc
            _report(progress, counts)
    except UnicodeDecodeError as exc:
        raise CorruptDataError("import", f"the archive after line {number}", f"it is not UTF-8: {exc}") from exc
    if not reader.ended:
        raise CorruptDataError("import", f"the archive after line {number}", "it ends too early")
    return counts


class _Reader:
    """Saves line after line; entries in batches."""

    def __init__(self, view: StoreView, counts: Counts) -> None:
        self._view = view
        self._flows = _flows(view)
        self._counts = counts
        self._namespace = ""
        self._batch: list[MemoryEntry] = []
        self._conversation: dict[str, Any] | None = None
        self._turns = 0
        self.ended = False

    async def take(self, number: int, line: dict[str, Any]) -> None:
        if self.ended:
            raise ValueError("it comes after the end")
        if number == 1:
            if line.get("format") != FORMAT:
                raise ValueError(f"the format is {line.get('format')!r}, not {FORMAT}")
            return
        ((kind, item),) = line.items()
        if kind == "entry":
            await self._take_entry(item)
            return
        await self._save_batch()
        match kind:
            case "conversation":
                await self._take_conversation(item)
            case "turn":
                await self._take_turn(item)
            case "end":
                await self._finish_conversation()
                if item != {name: getattr(self._counts, name) for name in Counts.__slots__}:
                    raise ValueError("lines are missing")
                self.ended = True
            case _:
                raise ValueError(f"there are no lines of the kind {kind!r}")

    async def _take_entry(self, item: dict[str, Any]) -> None:
        namespace = item.pop("namespace")
        if namespace != self._namespace or len(self._batch) == _PAGE:
            await self._save_batch()
        self._namespace = namespace
        self._batch.append(_entry_from_json(item))
        self._counts.entries += 1

    async def _save_batch(self) -> None:
        if self._batch:
            if Capability.ATOMIC_BATCHES in self._view.capabilities:
                await self._view.save_many(self._namespace, self._batch)
            else:
                for entry in self._batch:
                    await self._view.save(self._namespace, entry)
            self._batch = []

    async def _take_conversation(self, item: dict[str, Any]) -> None:
        await self._finish_conversation()
        name = item["conversation_id"]
        created_at = datetime.fromisoformat(item["created_at"]).astimezone(UTC)
        await self._view.conversations.create(stored_name("conversation_id", name), created_at)
        self._conversation, self._turns = item, 0
        self._counts.conversations += 1

    async def _take_turn(self, item: dict[str, Any]) -> None:
        conversation = self._conversation
        if conversation is None or item["conversation_id"] != conversation["conversation_id"]:
            raise ValueError("it is of another conversation than the lines before")
        turn = turn_from_json(item, self._turns, "turn")
        await self._flows.add_turn(item["conversation_id"], turn, Condition(turn_id=self._turns), summarize=False)
        self._turns += 1
        self._counts.turns += 1

    async def _finish_conversation(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None and conversation["summary"] is not None:
            turns = checked_summarized(conversation, "conversation", self._turns)
            await self._flows.replace_summary(conversation["conversation_id"], conversation["summary"], turns)


def _flows(view: StoreView) -> ConversationFlows:
    return ConversationFlows(view.conversations, Rules(1, 0, TokenEstimator()), None)


def _line(item: dict[str, Any]) -> str:
    return json.dumps(item) + "\n"


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
