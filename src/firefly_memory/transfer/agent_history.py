"""The conversations of pydantic-ai, which stores call dialogues, out of one store and into another.

They come by id, each with its messages after it, parents first. A message that several of them share comes once, with
the first of these. Histories meet at messages that several hold, so it is enough to remember those, and to go up from
each end of a dialogue until one of them has come before: memory grows with the forks, not with the messages.

A dialogue of many messages is written in steps. Until the last one its revision says so, whoever finds it goes on with
it, and it holds what has been written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from datetime import UTC, datetime

from firefly_memory.agent_history.log import CircleDetector, in_line
from firefly_memory.agent_history.log import HistoryEntry as DialogueEntry
from firefly_memory.agent_history.log import HistoryLog as DialogueLog
from firefly_memory.agent_history.log import HistoryRecord as Dialogue
from firefly_memory.errors import ConflictError, CorruptDataError, InvalidEntryError, NotSupportedError
from firefly_memory.identifiers import (
    new_entry_id,
    original_name,
    original_or_none,
    stored_name,
    stored_or_none,
    stored_text,
)
from firefly_memory.transfer.items import Item, Placed

CANNOT_BE_KEPT = (
    "the target cannot keep conversations of pydantic-ai; SQLiteStore, PostgreSQLStore and MongoDBStore can, and "
    "dialogues=False (--without-dialogues) leaves them out"
)

_PAGE = 500
_UNFINISHED = "copying:"

Replaceable = Callable[[Dialogue, Dialogue], Awaitable[bool]]
"""Whether the first one, which is there, may give way to the second."""


async def has_dialogues(log: DialogueLog | None) -> bool:
    return log is not None and bool(await log.page(1, ""))


async def dialogues_of(log: DialogueLog | None) -> Placed:
    """All dialogues."""
    after = ""
    while log is not None and (page := await log.page(_PAGE, after)):
        for dialogue in page:
            yield dialogue.conversation_id, _dialogue_as_json(dialogue)
        after = page[-1].conversation_id


async def messages_of(log: DialogueLog | None, item: Item | None, given: Collection[str], met: set[str]) -> Placed:
    """The messages of a dialogue, but for those at and above one that is ``given`` or ``met``, which gets those of them
    at which histories meet."""
    if log is None or item is None:
        return
    dialogue, number = dialogue_from_json(item), 0
    for end in _ends(dialogue):
        try:
            async for page in _pages(log, end, lambda each: each in given or each in met):
                met.update(await log.shared([entry.entry_id for entry in page]))
                for entry in page:
                    yield number, _entry_as_json(item["conversation_id"], entry)
                    number += 1
        except KeyError as exc:
            missing = exc.args[0]
            if end != dialogue.head_id and missing == original_name(end):
                continue  # nobody has looked whether the end of a branch is there
            if await log.record(dialogue.conversation_id) != dialogue:
                raise ConflictError(f"{name_of(item)} was changed while it was read; start again") from exc
            raise CorruptDataError("read_history", name_of(item), f"its message {missing!r} is missing") from exc


def name_of(item: Item) -> str:
    return f"pydantic-ai's conversation {item['conversation_id']!r}"


async def _pages(log: DialogueLog, end: str, was_given: Callable[[str], bool]) -> AsyncIterator[list[DialogueEntry]]:
    """The entries up to ``end``, oldest first, from where they were given before. Only the ends of pages are kept on
    the way up, and the pages read again on the way down."""

    async def page_up_from(entry_id: str) -> list[DialogueEntry]:
        page = in_line(await log.history(entry_id, _PAGE), entry_id, _PAGE)
        first = max((place for place, entry in enumerate(page, 1) if was_given(entry.entry_id)), default=0)
        return page[first:]

    circle = CircleDetector(end)
    ends: list[str] = []
    page: list[DialogueEntry] = []
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


async def if_unfinished(there: Dialogue, dialogue: Dialogue) -> bool:  # noqa: ARG001
    return there.revision.startswith(_UNFINISHED)


def if_earlier_in(source: DialogueLog | None) -> Replaceable:
    """Also if it is older and ``source`` has all its messages: then nothing of it is lost."""

    async def may_give_way(there: Dialogue, dialogue: Dialogue) -> bool:
        if await if_unfinished(there, dialogue):
            return True
        if source is None or there.updated_at > dialogue.updated_at:
            return False
        return len(await source.entries(list(there.ends))) == len(there.ends)

    return may_give_way


class DialogueWriter:
    """Writes dialogues, each followed by its messages. What is there already is passed by if it is the same."""

    def __init__(self, log: DialogueLog | None, replaceable: Replaceable = if_unfinished) -> None:
        self._target = log
        self._replaceable = replaceable
        self._item: Item = {"conversation_id": None}
        self._dialogue: Dialogue | None = None  # that is being written
        self._there: Dialogue | None = None
        self._began_anew = False  # nothing was there of it
        self._entries: dict[str, DialogueEntry] = {}
        self._held: dict[str, None] = {}  # in the order of writing: the ends that would otherwise be let go

    async def begin(self, item: Item) -> None:
        await self.finish()
        dialogue = dialogue_from_json(item)
        there = await self._log.record(dialogue.conversation_id)
        self._item = item
        if there == dialogue:
            return
        if there is not None and not await self._replaceable(there, dialogue):
            raise ConflictError(f"{name_of(item)} is another one in the target; delete one of the two")
        self._dialogue, self._there, self._began_anew = dialogue, there, there is None
        self._held = {} if there is None else dict.fromkeys(_ends(there))

    async def take(self, item: Item) -> None:
        """A message of the dialogue that was begun. The one that it comes after has to be there."""
        if item["conversation_id"] != self._item["conversation_id"]:
            raise ValueError("it is of another conversation than the lines before")
        entry = _entry_from_json(item)
        if self._dialogue is not None:
            if len(self._entries) == _PAGE:
                await self.take_a_step()
            await self._check_place(entry)
            self._entries[entry.entry_id] = entry

    async def _check_place(self, entry: DialogueEntry) -> None:
        if entry.entry_id in self._entries:
            raise InvalidEntryError("entry_id", f"message {original_name(entry.entry_id)!r} comes twice")
        parent_id = entry.parent_id
        if parent_id is None or parent_id in self._entries:
            return
        if parent_id == entry.entry_id or not await self._log.entries([parent_id]):
            problem = f"message {original_name(parent_id)!r} is missing: it has to come before those that follow it"
            raise InvalidEntryError("parent_id", problem)

    async def abandon(self) -> None:
        """Take back what was written of a dialogue that cannot be finished, unless a part of it was there before."""
        dialogue, self._dialogue, self._entries = self._dialogue, None, {}
        if dialogue is not None and self._there is not None and self._began_anew:
            await self._log.delete(dialogue.conversation_id, self._there.revision)

    async def finish(self) -> None:
        """Write what is still to be written."""
        if self._dialogue is not None:
            await self._write(self._dialogue, await self._new_ones(self._dialogue.head_id))
            self._dialogue = None

    @property
    def _log(self) -> DialogueLog:
        if self._target is None:
            raise NotSupportedError(CANNOT_BE_KEPT)
        return self._target

    async def take_a_step(self) -> None:
        """Write what was taken so far, and that it is not all."""
        dialogue = self._dialogue
        new = [] if dialogue is None else await self._new_ones()
        if dialogue is not None and new:
            *branches, head_id = self._held
            revision = f"{_UNFINISHED}{new_entry_id()}"  # another one for each step, as for any other write
            unfinished = dialogue._replace(revision=revision, head_id=head_id, branches=branches)
            unfinished = unfinished._replace(deferred_tool_requests=None)  # which belong to the whole history
            await self._write(unfinished, new)
            self._there = unfinished

    async def _write(self, dialogue: Dialogue, new: list[DialogueEntry]) -> None:
        expected = None if self._there is None else self._there.revision
        if not await self._log.write(dialogue, new, expected):
            raise ConflictError(f"{name_of(self._item)} was changed in the target meanwhile; start again")

    async def _new_ones(self, head_id: str | None = None) -> list[DialogueEntry]:
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


def _ends(dialogue: Dialogue) -> Iterable[str]:
    """The ends of branches, and the head last."""
    ends = dict.fromkeys(dialogue.branches)
    if dialogue.head_id is not None:
        ends.pop(dialogue.head_id, None)
        ends[dialogue.head_id] = None
    return ends


def _dialogue_as_json(dialogue: Dialogue) -> Item:
    return {
        "conversation_id": original_name(dialogue.conversation_id),
        "revision": original_name(dialogue.revision),
        "head_id": original_or_none(dialogue.head_id),
        "scope": original_or_none(dialogue.scope),
        "forked_from": original_or_none(dialogue.forked_from),
        "forked_at": original_or_none(dialogue.forked_at),
        "branches": [original_name(entry_id) for entry_id in dialogue.branches],
        "usage": dialogue.usage,
        "deferred_tool_requests": dialogue.deferred_tool_requests,
        "updated_at": dialogue.updated_at.isoformat(),
        "format_version": dialogue.format_version,
    }


def dialogue_from_json(item: Item) -> Dialogue:
    deferred = item["deferred_tool_requests"]
    return Dialogue(
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


def _entry_as_json(conversation_id: str, entry: DialogueEntry) -> Item:
    return {
        "conversation_id": conversation_id,
        "entry_id": original_name(entry.entry_id),
        "parent_id": original_or_none(entry.parent_id),
        "kind": entry.kind,
        "message": entry.message,
    }


def _entry_from_json(item: Item) -> DialogueEntry:
    return DialogueEntry(
        entry_id=stored_name("entry_id", item["entry_id"]),
        parent_id=stored_or_none(item["parent_id"]),
        kind=str.__str__(item["kind"]),
        message=str.__str__(item["message"]),  # of anything else a TypeError
    )
