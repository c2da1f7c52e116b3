"""Agent history, the conversations of pydantic-ai, on its way from one store to another.

Conversations come by id, each with its messages after it, parents first. A message that several of them share comes
once, with the first of these. Histories meet at messages that have several holders, so it is enough to remember those,
and to go up from each end of a conversation until one of them has come before: memory grows with the forks, not with
the messages.

A conversation of many messages is written in steps. Until the last step its revision says so: a later writer goes on
with it, and it holds what has been written.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime

from firefly_memory.agent_history.log import (
    AGENT_HISTORY_LOG,
    CircleDetector,
    HistoryEntry,
    HistoryLog,
    HistoryRecord,
    in_line,
)
from firefly_memory.errors import ConflictError, CorruptDataError, InvalidEntryError
from firefly_memory.identifiers import (
    new_entry_id,
    original_name,
    original_or_none,
    stored_name,
    stored_or_none,
    stored_text,
)
from firefly_memory.messages.authority import without_system_parts
from firefly_memory.messages.pydantic_ai import compact
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing
from firefly_memory.protocols import StoreView

_PAGE = 500
_UNFINISHED = "copying:"


class _Shared:
    """The messages at which histories meet, as far as a walk has come. Both walks of a copy look at the same ones: the
    target may have other conversations, which share messages with these."""

    def __init__(self) -> None:
        self.before: set[str] = set()
        """Those of earlier conversations."""
        self.now: set[str] = set()
        """Those of the conversation that is being read."""
        self._conversation_id: str | None = None

    def begin(self, conversation_id: str) -> None:
        """The messages of this conversation are read next, on either side."""
        if conversation_id != self._conversation_id:
            self._conversation_id = conversation_id
            self.before |= self.now
            self.now = set()


async def conversations_of(walk: Walk, _: None) -> Placed:
    """All conversations."""
    log, after = walk.view.log(AGENT_HISTORY_LOG), ""
    while page := await log.page(_PAGE, after):
        for conversation in page:
            yield conversation.conversation_id, _conversation_as_json(conversation)
        after = page[-1].conversation_id


async def messages_of(walk: Walk, item: Item) -> Placed:
    """The messages of a conversation, but for those that came with an earlier one or, if they belong to several
    branches, with an earlier branch."""
    log = walk.view.log(AGENT_HISTORY_LOG)
    shared: _Shared = (walk.source or walk).remembered.setdefault("agent_history", _Shared())
    shared.begin(item["conversation_id"])
    met = shared.now if walk.source is None else set()
    conversation, number = conversation_from_json(item), 0
    for end in _ends(conversation):
        try:
            async for page in _pages(log, end, lambda each: each in shared.before or each in met):
                met.update(await log.shared([entry.entry_id for entry in page]))
                for entry in page:
                    yield number, _entry_as_json(item["conversation_id"], entry)
                    number += 1
        except KeyError as exc:
            missing = exc.args[0]
            if end != conversation.head_id and missing == original_name(end):
                continue  # nobody has looked whether the end of a branch is there
            if await log.record(conversation.conversation_id) != conversation:
                raise ConflictError(f"{name_of(item)} was changed while it was read; start again") from exc
            raise CorruptDataError("read_history", name_of(item), f"its message {missing!r} is missing") from exc


def name_of(item: Item) -> str:
    return f"pydantic-ai's conversation {item['conversation_id']!r}"


async def _pages(log: HistoryLog, end: str, was_given: Callable[[str], bool]) -> AsyncIterator[list[HistoryEntry]]:
    """The entries up to ``end``, oldest first, from where they were given before. Only the ends of pages are kept on
    the way up, and the pages read again on the way down."""

    async def page_up_from(entry_id: str) -> list[HistoryEntry]:
        page = in_line(await log.history(entry_id, _PAGE), entry_id, _PAGE)
        first = max((place for place, entry in enumerate(page, 1) if was_given(entry.entry_id)), default=0)
        return page[first:]

    circle = CircleDetector(end)
    ends: list[str] = []
    page: list[HistoryEntry] = []
    above: str | None = end
    while above is not None and not was_given(above):
        page = await page_up_from(above)
        for entry in reversed(page):
            circle.pass_by(entry.entry_id)
        ends.append(above)
        above = page[0].parent_id
    if page:
        yield page
    for entry_id in reversed(ends[:-1]):
        yield await page_up_from(entry_id)


async def _may_replace(source: StoreView | None, mine: HistoryRecord, theirs: HistoryRecord) -> bool:
    """Whether the target's state of a conversation is unfinished, or older and the source has all its messages."""
    if theirs.revision.startswith(_UNFINISHED):
        return True
    if source is None or theirs.updated_at > mine.updated_at:
        return False
    return len(await source.log(AGENT_HISTORY_LOG).entries(list(theirs.ends))) == len(theirs.ends)


async def _item_may_replace(source: StoreView, mine: Item, theirs: Item) -> bool:
    return await _may_replace(source, conversation_from_json(mine), conversation_from_json(theirs))


def _checked_message(item: Item, untrusted: bool) -> tuple[Item, int]:
    """A message stays in its place, perhaps with nothing in it: others name it as their parent."""
    message = json.loads(item["message"])
    if not isinstance(message, dict):
        raise ValueError("its message is no object of JSON")
    return ({**item, "message": compact(without_system_parts(message))} if untrusted else item), 0


MESSAGE = Kind(
    name="dialogue_entry",
    version=1,
    since=None,
    plural="messages",
    noun="messages",
    read=messages_of,
    selected_by="conversation_id",
    describe=lambda item: f"message {item['entry_id']!r} of {name_of(item)}",
    from_archive=_checked_message,
)

CONVERSATION = Kind(
    name="dialogue",
    version=1,
    since=None,
    plural="agent_conversations",
    plural_in_archives="dialogues",
    noun="conversations of pydantic-ai",
    read=conversations_of,
    selected_by="conversation_id",
    describe=name_of,
    may_replace=_item_may_replace,
    within=(MESSAGE,),
)

KINDS = (CONVERSATION,)


class AgentHistoryWriter:
    """Writes conversations, each followed by its messages. A conversation that is there already must be the same."""

    def __init__(self, view: StoreView, writing: Writing) -> None:
        self._log = view.log(AGENT_HISTORY_LOG)
        self._source = writing.source
        self._item: Item = {"conversation_id": None}
        self._conversation: HistoryRecord | None = None  # that is being written
        self._there: HistoryRecord | None = None
        self._began_anew = False  # nothing was there of it
        self._entries: dict[str, HistoryEntry] = {}
        self._held: dict[str, None] = {}  # in the order of writing: the ends that would otherwise be let go

    async def take(self, kind: str, item: Item, *, there: bool = False) -> None:
        await (self._begin if kind == CONVERSATION.name else self._add_message)(item)

    async def _begin(self, item: Item) -> None:
        await self.finish()
        conversation = conversation_from_json(item)
        there = await self._log.record(conversation.conversation_id)
        self._item = item
        if there == conversation:
            return
        if there is not None and not await _may_replace(self._source, conversation, there):
            raise ConflictError(f"{name_of(item)} is another one in the target; delete one of the two")
        self._conversation, self._there, self._began_anew = conversation, there, there is None
        self._held = {} if there is None else dict.fromkeys(_ends(there))

    async def _add_message(self, item: Item) -> None:
        """A message of the conversation that was begun. The one that it comes after has to be there."""
        if item["conversation_id"] != self._item["conversation_id"]:
            raise ValueError("it is of another conversation than the lines before")
        entry = _entry_from_json(item)
        if self._conversation is not None:
            if len(self._entries) == _PAGE:
                await self.flush()
            await self._check_place(entry)
            self._entries[entry.entry_id] = entry

    async def _check_place(self, entry: HistoryEntry) -> None:
        if entry.entry_id in self._entries:
            raise InvalidEntryError("entry_id", f"message {original_name(entry.entry_id)!r} comes twice")
        parent_id = entry.parent_id
        if parent_id is None or parent_id in self._entries:
            return
        if parent_id == entry.entry_id or not await self._log.entries([parent_id]):
            problem = f"message {original_name(parent_id)!r} is missing: it has to come before those that follow it"
            raise InvalidEntryError("parent_id", problem)

    async def abandon(self) -> None:
        """Take back what was written of an unfinished conversation, unless a part of it was there before."""
        conversation, self._conversation, self._entries = self._conversation, None, {}
        if conversation is not None and self._there is not None and self._began_anew:
            await self._log.delete(conversation.conversation_id, self._there.revision)

    async def finish(self) -> None:
        """Write what is still to be written."""
        if self._conversation is not None:
            await self._write(self._conversation, await self._new_ones(self._conversation.head_id))
            self._conversation = None

    async def flush(self) -> None:
        """Write what was taken so far, and that it is not all."""
        conversation = self._conversation
        new = [] if conversation is None else await self._new_ones()
        if conversation is not None and new:
            *branches, head_id = self._held
            revision = f"{_UNFINISHED}{new_entry_id()}"  # another one for each step, as for any other write
            unfinished = conversation._replace(revision=revision, head_id=head_id, branches=branches)
            unfinished = unfinished._replace(deferred_tool_requests=None)  # which belong to the whole history
            await self._write(unfinished, new)
            self._there = unfinished

    async def _write(self, conversation: HistoryRecord, new: list[HistoryEntry]) -> None:
        expected = None if self._there is None else self._there.revision
        if not await self._log.write(conversation, new, expected):
            raise ConflictError(f"{name_of(self._item)} was changed in the target meanwhile; start again")

    async def _new_ones(self, head_id: str | None = None) -> list[HistoryEntry]:
        """The entries taken that are not there yet. The head has to be there."""
        taken, self._entries = self._entries, {}
        wanted = list(dict.fromkeys([*taken, *([] if head_id is None else [head_id])]))
        there = {entry.entry_id: entry for entry in await self._log.entries(wanted)} if wanted else {}
        if head_id is not None and head_id not in there and head_id not in taken:
            problem = f"its message {original_name(head_id)!r} is missing"
            raise CorruptDataError("write_record", name_of(self._item), problem)
        entries = taken.values()
        new = [entry for entry in entries if entry.entry_id not in there]
        for entry in entries:
            if there.get(entry.entry_id, entry) != entry:
                message = f"message {original_name(entry.entry_id)!r} of {name_of(self._item)}"
                raise ConflictError(f"{message} is another one in the target")
        for entry in new:
            if entry.parent_id is not None:
                self._held.pop(entry.parent_id, None)
            self._held[entry.entry_id] = None
        return new


def _ends(conversation: HistoryRecord) -> Iterable[str]:
    """The ends of branches, and the head last."""
    ends = dict.fromkeys(conversation.branches)
    if conversation.head_id is not None:
        ends.pop(conversation.head_id, None)
        ends[conversation.head_id] = None
    return ends


def _conversation_as_json(conversation: HistoryRecord) -> Item:
    return {
        "conversation_id": original_name(conversation.conversation_id),
        "revision": original_name(conversation.revision),
        "head_id": original_or_none(conversation.head_id),
        "scope": original_or_none(conversation.scope),
        "forked_from": original_or_none(conversation.forked_from),
        "forked_at": original_or_none(conversation.forked_at),
        "branches": [original_name(entry_id) for entry_id in conversation.branches],
        "usage": conversation.usage,
        "deferred_tool_requests": conversation.deferred_tool_requests,
        "updated_at": conversation.updated_at.isoformat(),
        "format_version": conversation.format_version,
    }


def conversation_from_json(item: Item) -> HistoryRecord:
    deferred = item["deferred_tool_requests"]
    return HistoryRecord(
        conversation_id=stored_name("conversation_id", item["conversation_id"]),
        revision=stored_text(item["revision"]),
        head_id=stored_or_none(item["head_id"]),
        scope=stored_or_none(item["scope"]),
        forked_from=stored_or_none(item["forked_from"]),
        forked_at=stored_or_none(item["forked_at"]),
        branches=[stored_text(entry_id) for entry_id in item["branches"]],
        usage=str.__str__(item["usage"]),
        deferred_tool_requests=None if deferred is None else str.__str__(deferred),
        updated_at=datetime.fromisoformat(item["updated_at"]).astimezone(UTC),
        format_version=int(item["format_version"]),
    )


def _entry_as_json(conversation_id: str, entry: HistoryEntry) -> Item:
    return {
        "conversation_id": conversation_id,
        "entry_id": original_name(entry.entry_id),
        "parent_id": original_or_none(entry.parent_id),
        "kind": entry.kind,
        "message": entry.message,
    }


def _entry_from_json(item: Item) -> HistoryEntry:
    return HistoryEntry(
        entry_id=stored_name("entry_id", item["entry_id"]),
        parent_id=stored_or_none(item["parent_id"]),
        kind=str.__str__(item["kind"]),
        message=str.__str__(item["message"]),  # of anything else a TypeError
    )
