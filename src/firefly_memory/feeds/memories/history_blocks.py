"""How the blocks of a history are read and put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from firefly_memory.feeds.items import Message
from firefly_memory.feeds.memories.budget import Block, Budget, Listed

ReadBlock = Callable[[int | None], Awaitable[Block]]
"""Reads the newest messages of a block, so many or all, oldest first."""

_FIRST_LIMIT = 16


async def read_history(blocks: Sequence[ReadBlock], budget: Budget | None) -> list[Listed]:
    """The messages of all blocks, one block after the other; each message once, in the first block that has it."""
    if budget is not None and budget.max_tokens == 0:
        return []
    read = without_repeated([await _read(each, budget, len(blocks)) for each in blocks])
    kept = read if budget is None else budget.fitting(read)
    return [listed for block in kept for listed in block]


async def _read(block: ReadBlock, budget: Budget | None, blocks: int) -> Block:
    """A block, of so many, with a budget only as much of it as is needed."""
    if budget is None:
        return await block(None)
    limit = _FIRST_LIMIT
    while True:
        found = await block(limit)
        if len(found) != limit or budget.is_filled_by_half_of(found, blocks):  # a user's store may not know limits
            return found
        limit *= 2


def without_repeated(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without the messages that an earlier one has. Of two equal messages without a number, one is the
    repetition of one, and two are those of two."""
    listed_before = _Messages()
    kept: list[Block] = []
    for block in blocks:
        left = listed_before.copy()
        new = [listed for listed in reversed(block) if not left.take(listed)][::-1]
        listed_before.add(new)
        kept.append(new)
    return kept


class _Messages:
    """Messages, each as often as it was added."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        self._similar: defaultdict[Any, list[Message]] = defaultdict(list)

    def copy(self) -> _Messages:
        copy = _Messages()
        copy._numbers |= self._numbers
        for similar, messages in self._similar.items():
            copy._similar[similar] = [*messages]
        return copy

    def add(self, block: Block) -> None:
        for listed in block:
            if listed.number is None:
                self._similar[_similar(listed.message)].append(listed.message)
            else:
                self._numbers.add(listed.number)

    def take(self, listed: Listed) -> bool:
        """Remove a message if it is there; whether it was."""
        if listed.number is not None:
            return listed.number in self._numbers
        similar = self._similar.get(_similar(listed.message), [])
        place = next((at for at, each in enumerate(similar) if _are_equal(each, listed.message)), None)
        if place is None:
            return False
        del similar[place]
        return True


_DEEPEST = 6


def _similar(value: Any, depth: int = 0) -> Any:
    """Something hashable that is the same for equal values, and seldom for different ones."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return float.__float__(value) if isinstance(value, float) else int.__int__(value)
    if isinstance(value, dict):
        items = [(key, _similar(item, depth + 1)) for key, item in value.items()] if depth < _DEEPEST else ()
        return (len(value), frozenset(items))
    if isinstance(value, (list, tuple)):
        return (len(value), *(_similar(item, depth + 1) for item in value)) if depth < _DEEPEST else len(value)
    return None


def _are_equal(one: Message, other: Message) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - the values of a user's store decide what comparing them raises
        return False
