"""From one store to another, of any two kinds: what is missing is copied, and then both are compared, value by value.

Both stores list their contents in the same order, so a copy walks through the two side by side, in constant memory.
That is how it knows what is there already, and how a copy that broke off goes on when it is started again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from firefly_memory import clock
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.agent_history.log import HistoryLog as DialogueLog
from firefly_memory.codec import DOCUMENT
from firefly_memory.concurrency.sync_bridge import finish
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.errors import ConflictError, NotSupportedError
from firefly_memory.facets import log_if_there
from firefly_memory.protocols import Capability, MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.transfer.agent_history import (
    CANNOT_BE_KEPT,
    dialogue_from_json,
    dialogues_of,
    has_dialogues,
    if_earlier_in,
    messages_of,
    name_of,
)
from firefly_memory.transfer.archive import conversations_of, entries_of, turns_of
from firefly_memory.transfer.items import CONVERSATION, DIALOGUE, ENTRY, MESSAGE, TURN, Counts, Item, Placed
from firefly_memory.transfer.reader import Reader

Progress = Callable[[str, Counts], None]
"""Called again and again with what is being done, and how far it is."""

Pair = tuple[str, Item | None, Item | None]
"""A kind of item, and what each side has in one place."""


@dataclass(slots=True)
class Side:
    """What one store has, when both were compared."""

    counts: Counts = field(default_factory=Counts)
    _digest: Any = field(default_factory=hashlib.sha256, repr=False)

    @property
    def checksum(self) -> str:
        """SHA-256 over all values, in the form and order that all stores have in common."""
        digest: str = self._digest.hexdigest()
        return digest

    def add(self, kind: str, item: Item) -> None:
        self.counts.add(kind)
        self._digest.update(f"{kind} {_canonical(kind, item)}\n".encode())


@dataclass(slots=True)
class Copy:
    """What a copy did, and what came of it."""

    before: Counts = field(default_factory=Counts)
    """What the target had already."""
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    beyond: Counts = field(default_factory=Counts)
    """What only the target has and was told to keep; it is in no checksum."""
    difference: str | None = None
    """The first thing in which the two still differ: somebody wrote to one of them meanwhile."""

    @property
    def equal(self) -> bool:
        return self.difference is None and self.source.checksum == self.target.checksum


@dataclass(frozen=True, slots=True)
class _Sides:
    """What is read, and what is written to."""

    source: StoreView
    target: StoreView
    dialogues: bool
    """Whether pydantic-ai's conversations are looked at."""

    async def check_kinds(self) -> None:
        """Whether the target can keep whatever the source has."""
        for view in (self.source, self.target):
            if Capability.LISTING not in view.capabilities:
                raise NotSupportedError("a copy needs stores that list their entries, which one of these cannot")
        if self.dialogues and _history(self.target) is None and await has_dialogues(_history(self.source)):
            raise NotSupportedError(CANNOT_BE_KEPT)

    async def target_is_empty(self) -> bool:
        view = self.target
        if await view.namespaces(limit=1) or await view.log(CONVERSATION_LOG).page(1, None):
            return False
        return not (self.dialogues and await has_dialogues(_history(view)))

    async def pairs(self) -> AsyncIterator[Pair]:
        """All that is on either side, with what is in the same place of the other."""
        source, target = self.source, self.target
        async for mine, theirs in _side_by_side(entries_of(source), entries_of(target)):
            yield ENTRY, mine, theirs
        conversations = _side_by_side(conversations_of(source), conversations_of(target), shrinking=True)
        async for mine, theirs in conversations:
            yield CONVERSATION, mine, theirs
            async for my_turn, their_turn in _side_by_side(_turns(source, mine), _turns(target, theirs)):
                yield TURN, my_turn, their_turn
        if self.dialogues:
            async for pair in _pairs_of_dialogues(_history(source), _history(target)):
                yield pair


def copy_store(
    source: MemoryStore,
    target: MemoryStore,
    *,
    merge: bool = False,
    dialogues: bool = True,
    progress: Progress | None = None,
) -> Copy:
    """Copy all live entries and all conversations of ``source`` into ``target``, then compare the two.

    ``target`` may be empty or have a part of the same, as after a copy that broke off. Anything else there is a
    ``ConflictError`` before anything is written, unless ``merge`` is set: then entries take the place of those with
    their ids, and what ``source`` has nothing of stays. A conversation that has other turns is a ``TurnConflictError``.

    Those of pydantic-ai's ``ConversationStore`` are copied too, unless ``dialogues=False`` leaves them out on both
    sides; if ``target`` cannot keep them, that is a ``NotSupportedError`` before anything is written. One that is in
    ``target`` gives way to a newer state of it, and otherwise is a ``ConflictError`` if it is another one.
    """
    return finish(_copy(_Sides(adapt(source).blocking, adapt(target).blocking, dialogues), merge, progress))


async def async_copy_store(
    source: MemoryStore,
    target: MemoryStore,
    *,
    merge: bool = False,
    dialogues: bool = True,
    progress: Progress | None = None,
) -> Copy:
    return await _copy(_Sides(adapt(source).suspending, adapt(target).suspending, dialogues), merge, progress)


async_copy_store.__doc__ = copy_store.__doc__


async def _copy(sides: _Sides, merge: bool, progress: Progress | None) -> Copy:
    await sides.check_kinds()
    if not merge and not await sides.target_is_empty():
        await _check(sides, progress)
    result = Copy()
    counts = Counts()
    reader = Reader(sides.target, counts, replace=merge, replaceable=if_earlier_in(_history(sides.source)))
    async for kind, mine, theirs in sides.pairs():
        if mine is not None:
            there = theirs is not None and _canonical(kind, mine) == _canonical(kind, theirs)
            await reader.take(kind, mine, there=there)
            if there:
                result.before.add(kind)
            _report(progress, "copying", counts)
    await reader.finish()
    await _compare(sides, result, merge, progress)
    return result


async def _check(sides: _Sides, progress: Progress | None) -> None:
    """Nothing may be lost: the target has a part of what the source has, and nothing else."""
    seen = Counts()
    may_give_way, is_older = if_earlier_in(_history(sides.source)), False
    async for kind, mine, theirs in sides.pairs():
        is_part = theirs is None or _is_part(kind, mine, theirs) or _is_expired(theirs)
        if kind == DIALOGUE:  # whose messages come next
            is_older = False
            if mine is not None and theirs is not None and not is_part:
                is_older = await may_give_way(dialogue_from_json(theirs), dialogue_from_json(mine))
        if theirs is not None and not is_part and not is_older:
            state = "is not in the source" if mine is None else "is another one in the source"
            raise ConflictError(
                f"{_name(kind, theirs)} of the target {state}; nothing was copied. Copy to an empty place, or merge: "
                "entries then take the place of those with their ids, and the rest of the target stays"
            )
        seen.add(kind)
        _report(progress, "looking", seen)


def _is_part(kind: str, mine: Item | None, theirs: Item) -> bool:
    if mine is None:
        return False
    if kind == CONVERSATION and theirs["summarized_turns"] < mine["summarized_turns"]:
        return True  # the summary comes last
    return _canonical(kind, mine) == _canonical(kind, theirs)


async def _compare(sides: _Sides, result: Copy, merge: bool, progress: Progress | None) -> None:
    async for kind, mine, theirs in sides.pairs():
        if mine is None and theirs is not None and merge:
            result.beyond.add(kind)
            continue
        if (mine is None or theirs is None) and _is_expired(mine or theirs or {}):
            continue  # while it was being read
        if mine is not None:
            result.source.add(kind, mine)
        if theirs is not None:
            result.target.add(kind, theirs)
        result.difference = result.difference or _difference(kind, mine, theirs)
        _report(progress, "comparing", result.source.counts)


def _difference(kind: str, mine: Item | None, theirs: Item | None) -> str | None:
    if mine is None or theirs is None:
        return f"{_name(kind, mine or theirs or {})} is only in the {'target' if mine is None else 'source'}"
    same = _canonical(kind, mine) == _canonical(kind, theirs)
    return None if same else f"{_name(kind, mine)} is another one in the target"


def _report(progress: Progress | None, step: str, counts: Counts) -> None:
    if progress is not None:
        progress(step, counts)


def _name(kind: str, item: Item) -> str:
    match kind:
        case "entry":
            return f"entry {item['entry_id']!r} of namespace {item['namespace']!r}"
        case "conversation":
            return f"conversation {item['conversation_id']!r}"
        case "dialogue":
            return name_of(item)
        case "dialogue_entry":
            return f"message {item['entry_id']!r} of {name_of(item)}"
        case _:
            return f"turn {item['turn_id']} of conversation {item['conversation_id']!r}"


def _is_expired(item: Item) -> bool:
    until = item.get("expires_at")
    return until is not None and datetime.fromisoformat(until) <= clock.now()


def _canonical(kind: str, item: Item) -> str:
    """Equal for equal values, bit for bit, whatever store they are from."""
    if kind == TURN:  # whose values are not text yet
        values = {name: DOCUMENT.encode(item[name], name) for name in ("metadata", "raw_messages")}
        item = {**item, **values}
    if kind == CONVERSATION:
        item = {name: value for name, value in item.items() if name != "dropped_turns"}
    return json.dumps(item, sort_keys=True)


async def _pairs_of_dialogues(source: DialogueLog | None, target: DialogueLog | None) -> AsyncIterator[Pair]:
    given: set[str] = set()
    async for mine, theirs in _side_by_side(dialogues_of(source), dialogues_of(target)):
        yield DIALOGUE, mine, theirs
        meeting: set[str] = set()
        # By what the source has given on both sides, for the target may have others, which share messages with these.
        my_messages = messages_of(source, mine, given, meeting)
        their_messages = messages_of(target, theirs, given, set())
        async for my_message, their_message in _side_by_side(my_messages, their_messages):
            yield MESSAGE, my_message, their_message
        given |= meeting


async def _turns(view: StoreView, conversation: Item | None) -> Placed:
    if conversation is not None:
        async for placed in turns_of(view, conversation):
            yield placed


async def _side_by_side(
    left: Placed, right: Placed, *, shrinking: bool = False
) -> AsyncIterator[tuple[Item | None, Item | None]]:
    """Two streams by their places. The right one is always a step ahead, so that what is put there meanwhile, in the
    places that were given out, is never met."""
    mine, theirs = await anext(left, None), await anext(right, None)
    while mine is not None or theirs is not None:
        if mine is not None and theirs is not None and mine[0] == theirs[0]:
            pair = mine[1], theirs[1]
            mine, theirs = await anext(left, None), await anext(right, None)
            yield pair
        elif theirs is None or (mine is not None and (mine[0] < theirs[0]) is not shrinking):
            assert mine is not None
            yield mine[1], None
            mine = await anext(left, None)
        else:
            only_theirs = theirs[1]
            theirs = await anext(right, None)
            yield None, only_theirs


def _history(view: StoreView) -> DialogueLog | None:
    return log_if_there(view, AGENT_HISTORY_LOG)
