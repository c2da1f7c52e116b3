"""C8, turns that a flush drops, and flushes of forks."""

from __future__ import annotations

from uuid import uuid4

from firefly_memory.errors import TurnsDroppedError
from firefly_memory.identifiers import stored_name
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.rules.flushes import NOW, Flushes, state_of


@check("C8")
async def dropped_turns_are_nowhere_and_their_keys_are_free(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(1, "first")
    await one.append(2)
    await one.append(1, "fourth")
    await one.append(2)
    kept = await one.flush(2)
    await one.flush(5, None, drops=True)
    assert await one.window() == await one.turns() == [5]
    assert [turn.turn_id for turn in await one.log.turns(one.name, 1, 3)] == [5]
    assert await one.log.turns(one.name, 1, 0) in ([], ())
    for key in ("first", "fourth"):
        assert await one.log.find(one.name, key) is None
    head = await one.head()
    assert (head.turns, head.tokens, head.dropped_turns, head.live_tokens) == (6, 60, 5, 10)
    assert not await one.log.restore(one.name, head.flush_id, kept), "its turns are gone"
    assert await one.head() == head
    await one.append(1, "first")
    await one.append(1, "fourth")
    assert await one.turns() == [5, 6, 7]
    found = await one.log.find(one.name, "fourth")
    assert found.turn_id == 7
    ended = await one.flush(6)
    assert await one.log.restore(one.name, ended.flush_id, ended), "nothing was dropped since"
    assert await one.window() == [5, 6, 7]


@check("C8")
async def all_turns_of_a_conversation_can_be_dropped(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(2)
    await one.append(1, "newest")
    before = await one.head()
    await one.flush(3, None, drops=True)
    head = await one.head()
    assert (head.turns, head.tokens, head.dropped_turns, head.live_turns, head.live_tokens) == (3, 30, 3, 0, 0)
    assert one.log.read_instant(head.updated_at) == one.log.read_instant(before.updated_at)
    assert await one.window() == await one.turns() == []
    assert await one.log.find(one.name, "newest") is None
    fork = subject.conversation("fork of nothing")
    assert await one.log.fork(one.name, stored_name("conversation_id", fork), None, NOW)
    await one.append(1, "newest")
    assert await one.window() == await one.turns() == [3]
    assert (await one.head()).tokens == 40
    copy = Flushes(subject, "fork of nothing")
    assert await copy.window() == []
    await copy.append()
    assert await copy.turns() == [3]
    await one.append()
    await one.flush(5, None, drops=True)
    await one.append()
    assert await one.window() == await one.turns() == [5]


async def _forked(one: Flushes, subject: Subject, turns: int | None) -> Flushes:
    fork = Flushes(subject, f"fork {uuid4().hex}")
    assert await one.log.fork(one.name, fork.name, turns, NOW)
    return fork


@check("C8")
async def a_fork_has_the_flushes_of_its_turns(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(6)
    flushes = [await one.flush(2, "two"), await one.flush(4, "four", marks='{"0": 6}')]
    for turns in (None, 6, 4):
        fork = await _forked(one, subject, turns)
        assert state_of(await fork.head()) == state_of(await one.head())
        assert (await fork.head()).marks == '{"0": 6}'
        assert await fork.chain() == flushes[::-1]
        assert await fork.log.restore(fork.name, flushes[1].flush_id, flushes[1])
        assert await fork.window() == list(range(2, turns or 6))
        await fork.append()
        await fork.flush(3, "its own way")
    assert await one.chain() == flushes[::-1]
    fork = await _forked(one, subject, 3)
    assert state_of(await fork.head()) == (0, 0, None, None)
    assert (await fork.head()).marks is None
    assert await fork.log.find_flush(fork.name, flushes[0].flush_id) is None
    assert await fork.window() == [0, 1, 2]


@check("C8")
async def a_fork_that_needs_dropped_turns_is_refused(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(6)
    dropping = await one.flush(3, None, drops=True)
    await one.append(2)
    await one.flush(5)
    for turns in (1, 3, 4):
        name = subject.conversation(f"refused {turns}")
        call = one.log.fork(one.name, stored_name("conversation_id", name), turns, NOW)
        await subject.refuses(TurnsDroppedError, call)
        assert await one.log.head(stored_name("conversation_id", name)) is None
    for given, count in ((None, 8), (7, 7), (5, 5)):
        fork = await _forked(one, subject, given)
        head = await fork.head()
        assert (head.turns, head.tokens, head.dropped_turns) == (count, count * 10, 3)
        assert await fork.turns() == list(range(3, count))
        assert await fork.window() == list(range(5, count))
        assert (await fork.chain())[-1] == dropping
        await fork.append(1, "key")
        assert (await fork.turns())[-1] == count
    empty = await _forked(one, subject, 0)
    head = await empty.head()
    assert (head.turns, head.tokens, head.dropped_turns, head.evicted_turns) == (0, 0, 0, 0)
