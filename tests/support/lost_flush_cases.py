"""Flushes and their restoration while the answers of the server get lost."""

from __future__ import annotations

from typing import Any

from firefly_memory.conversations.log import Flush, Head
from firefly_memory.identifiers import stored_text
from tests.support.flush_chains import MINUTE, flush_of
from tests.support.lost_reply_cases import Act, Meeting, Uses
from tests.support.turns import NOW, a_turn

_MINE = "mine"


async def _head(uses: Uses) -> Head:
    head = await uses.log.head(stored_text(uses.name))
    assert head is not None
    return head


async def _claimed(uses: Uses, claim: str, turns: int, *, drops: bool = False) -> tuple[Flush, Any]:
    head = await _head(uses)
    flush, after = flush_of(head, turns, 10 * turns, f"summary of {claim}", drops=drops)
    assert await uses.log.claim(stored_text(uses.name), claim, head.evicted_turns, NOW, NOW + MINUTE)
    return flush._replace(flush_id=claim), after


async def _flushed(uses: Uses, claim: str, turns: int, *, drops: bool = False) -> bool:
    return await uses.log.flush(stored_text(uses.name), *await _claimed(uses, claim, turns, drops=drops))


async def four_turns(uses: Uses) -> None:
    metadata = uses.log.form.encode({}, "metadata")
    for number in range(4):
        draft = a_turn(f"{number}")._replace(metadata=metadata)
        assert await uses.log.append(stored_text(uses.name), draft, None) is not None


async def two_flushes(uses: Uses) -> None:
    await four_turns(uses)
    assert await _flushed(uses, "first", 1)
    assert await _flushed(uses, "second", 3)


async def flush(uses: Uses) -> Any:
    return await _flushed(uses, _MINE, 2)


async def flush_and_drop(uses: Uses) -> Any:
    return await _flushed(uses, _MINE, 3, drops=True)


async def restore(uses: Uses) -> Any:
    first = await uses.log.find_flush(stored_text(uses.name), "first")
    assert first is not None
    return await uses.log.restore(stored_text(uses.name), "second", first)


async def chain(uses: Uses) -> Any:
    """The state of the conversation, without a claim that may be left."""
    head = await _head(uses)
    found: list[Any] = [head.evicted_turns, head.evicted_tokens, head.summary, head.dropped_turns]
    each = head.flush_id
    while each is not None:
        there = await uses.log.find_flush(stored_text(uses.name), each)
        assert there is not None
        found.append((each, there.turns, there.turns_before, there.summary_before))
        each = there.previous
    turns = await uses.log.turns(stored_text(uses.name), -1, None)
    return [*found, *[turn.turn_id for turn in turns]]


async def flush_further(uses: Uses) -> None:
    head = await _head(uses)
    assert await _flushed(uses, "the other's", head.evicted_turns + 1)


async def start_again(uses: Uses) -> None:
    await uses.log.delete(stored_text(uses.name))
    await four_turns(uses)


async def in_force(uses: Uses) -> Any:
    head = await _head(uses)
    return head.flush_id, head.evicted_turns


ACTS = [
    Act(flush, chain, four_turns, doubts="never"),
    Act(flush_and_drop, chain, four_turns, doubts="never"),
    Act(restore, chain, two_flushes, doubts="never"),
]

MEETINGS = [
    Meeting(flush, flush_further, in_force, ("the other's", 3), four_turns),
    Meeting(flush, start_again, in_force, (None, 0), four_turns),
    Meeting(restore, flush_further, in_force, ("the other's", 1), two_flushes),
    Meeting(restore, start_again, in_force, (None, 0), two_flushes),
]
