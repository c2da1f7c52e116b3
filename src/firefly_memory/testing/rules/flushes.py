"""C8, flushes: how turns leave the window, and come back into it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

from firefly_memory import erasure
from firefly_memory.conversations.log import CONVERSATION_LOG, Flush, Flushed, Head, StoredTurn
from firefly_memory.identifiers import new_entry_id, stored_name, stored_text
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Mode, Subject, check
from firefly_memory.testing.rules.concurrency import at_once

NOW = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)
MINUTE = timedelta(minutes=1)
_UNUSUAL = "\x00 summary \ud800 é"


class Flushes:
    """One conversation, asked without strategies."""

    def __init__(self, subject: Subject, name: str = "flushed") -> None:
        self.log: Any = subject.view.log(CONVERSATION_LOG)
        self.original = subject.conversation(name)
        self.name = stored_name("conversation_id", self.original)

    async def append(self, count: int = 1, key: str | None = None, owner: str | None = None) -> None:
        for _ in range(count):
            texts = "prompt", "answer", "[1]", "json", self.log.form.encode({}, "metadata"), key, new_entry_id()
            draft = StoredTurn(-1, 10, *texts, NOW, input_tokens=2**40)
            assert await self.log.append(self.name, draft, None, owner) is not None

    async def flush(
        self, turns: int, summary: str | None = "summary", *, drops: bool = False, marks: str | None = None
    ) -> Flush:
        """Take the first ``turns`` turns out of the window."""
        head = await self.head()
        flush, after = flush_of(head, turns, summary, drops=drops, marks=marks)
        assert await self.log.claim(self.name, flush.flush_id, head.evicted_turns, NOW, NOW + MINUTE)
        assert await self.log.flush(self.name, flush, after)
        return flush

    async def head(self) -> Head:
        head: Head | None = await self.log.head(self.name)
        assert head is not None
        return head

    async def window(self) -> list[int]:
        """The numbers of the turns in the window, which says the same of the conversation as its head."""
        head, turns = await self.log.window(self.name, 10_000)
        assert head == await self.head()
        return [turn.turn_id for turn in turns]

    async def turns(self) -> list[int]:
        return [turn.turn_id for turn in await self.log.turns(self.name, -1, None)]

    async def chain(self) -> list[Flush]:
        """The flushes in force, the newest first."""
        found: list[Flush] = []
        flush_id = (await self.head()).flush_id
        while flush_id is not None:
            flush = await self.log.find_flush(self.name, flush_id)
            assert flush is not None
            found.append(flush._replace(created_at=self.log.read_instant(flush.created_at)))
            flush_id = flush.previous
        return found


def flush_of(
    head: Head, turns: int, summary: str | None, *, drops: bool = False, marks: str | None = None
) -> tuple[Flush, Flushed]:
    before = head.evicted_turns, head.evicted_tokens, head.summary
    flush = Flush(new_entry_id(), head.flush_id, "check", turns, *before, NOW)
    text = None if summary is None else stored_text(summary)
    return flush, Flushed(turns, 10 * turns, text, turns if drops else head.dropped_turns, marks)


def state_of(head: Head) -> tuple[Any, ...]:
    return head.evicted_turns, head.evicted_tokens, head.summary, head.flush_id


@check("C8")
async def a_flush_changes_turns_summary_and_marks_at_once(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(6)
    head = await one.head()
    assert (head.flush_id, head.marks, head.dropped_turns) == (None, None, 0)
    first = await one.flush(4, _UNUSUAL, marks='{"0": 6}')
    head = await one.head()
    assert state_of(head) == (4, 40, stored_text(_UNUSUAL), first.flush_id)
    assert (head.turns, head.tokens, head.marks, head.dropped_turns) == (6, 60, '{"0": 6}', 0)
    assert await one.window() == [4, 5]
    assert await one.turns() == [0, 1, 2, 3, 4, 5]
    await one.append()
    second = await one.flush(6, None)
    assert state_of(await one.head()) == (6, 60, None, second.flush_id)
    assert (await one.head()).marks is None
    assert await one.window() == [6]
    assert await one.chain() == [second, first]
    assert second.summary_before == stored_text(_UNUSUAL)
    assert [turn.input_tokens for turn in await one.log.turns(one.name, 5, 1)] == [2**40]


@check("C8")
async def appended_turns_tell_the_turns_and_tokens_of_the_window(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(3)
    await one.flush(2)
    draft = StoredTurn(-1, 10, "p", "a", None, None, one.log.form.encode({}, "metadata"), None, new_entry_id(), NOW)
    appended = await one.log.append(one.name, draft, 3)
    assert (appended.turns, appended.tokens, appended.live_turns, appended.live_tokens) == (4, 40, 2, 20)
    (turn,) = await one.log.turns(one.name, 2, None)
    assert turn.input_tokens is None


@check("C8")
async def turns_that_are_appended_at_once_keep_their_input_tokens(subject: Subject) -> None:
    one = Flushes(subject)
    metadata = one.log.form.encode({}, "metadata")

    async def append(number: int) -> None:
        texts = f"{number}", "answer", None, None, metadata, None, new_entry_id()
        draft = StoredTurn(-1, 10, *texts, NOW, input_tokens=number if number % 3 else None)
        assert await one.log.append(one.name, draft, None) is not None

    await at_once(subject, [partial(append, number) for number in range(24)])
    found = {turn.user_prompt: turn.input_tokens for turn in await one.log.turns(one.name, -1, None)}
    assert found == {f"{number}": number if number % 3 else None for number in range(24)}


@check("C8")
async def of_writers_who_flush_at_once_one_does(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(4)
    head = await one.head()

    async def flush(turns: int) -> bool:
        flush, after = flush_of(head, turns, f"{turns} turns")
        if not await one.log.claim(one.name, flush.flush_id, 0, NOW, NOW + MINUTE):
            return False
        done: bool = await one.log.flush(one.name, flush, after)
        return done

    done = await at_once(subject, [partial(flush, turns) for turns in (1, 2, 3) * 3])
    assert done.count(True) == 1
    (flushed,) = await one.chain()
    assert (await one.head()).summary == f"{flushed.turns} turns"
    assert await one.window() == list(range(flushed.turns, 4))


@check("C8")
async def a_flush_without_its_claim_changes_nothing(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(4)
    head = await one.head()
    late, after = flush_of(head, 2, "late", drops=True)
    assert not await one.log.flush(one.name, late, after), "never claimed"
    assert await one.log.claim(one.name, late.flush_id, 0, NOW, NOW + MINUTE)
    other = new_entry_id()
    assert not await one.log.claim(one.name, other, 0, NOW, NOW + MINUTE)
    later = NOW + MINUTE * 2
    assert await one.log.claim(one.name, other, 0, later, later + MINUTE)
    assert not await one.log.flush(one.name, late, after), "claimed by another since"
    await one.log.release(one.name, other)
    assert not await one.log.flush(one.name, late, after), "the claim was released"
    assert await one.head() == head
    assert await one.turns() == [0, 1, 2, 3]
    flush = await one.flush(2)
    assert not await one.log.flush(one.name, flush, after), "done already"
    assert await one.chain() == [flush]
    assert not await one.log.flush(stored_name("conversation_id", subject.conversation("none")), late, after)


@check("C8")
async def a_turn_that_is_appended_during_a_flush_stays_in_the_window(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(3)
    flush, after = flush_of(await one.head(), 3, "all of them", drops=True)
    assert await one.log.claim(one.name, flush.flush_id, 0, NOW, NOW + MINUTE)
    await one.append(2)
    assert await one.log.flush(one.name, flush, after)
    assert await one.window() == await one.turns() == [3, 4]
    head = await one.head()
    assert (head.turns, head.tokens, head.live_turns, head.live_tokens) == (5, 50, 2, 20)


@check("C8")
async def restoring_gives_the_window_back_what_was_there_before(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(3)
    states = [await one.head()]
    flushes = []
    for number in range(1, 5):
        flushes.append(await one.flush(2 * number, None if number == 3 else f"summary {number}", marks=f"{number}"))
        await one.append(2)
        states.append(await one.head())
    newest = flushes[-1].flush_id
    assert not await one.log.restore(one.name, flushes[0].flush_id, flushes[0]), "not the newest"
    assert not await one.log.restore(one.name, new_entry_id(), flushes[2])
    assert await one.log.restore(one.name, newest, flushes[2]), "two at once"
    head = await one.head()
    assert state_of(head) == state_of(states[2])
    assert (head.turns, head.marks) == (11, "4"), "the turns of today, and the marks"
    assert await one.window() == [4, 5, 6, 7, 8, 9, 10]
    assert await one.chain() == [flushes[1], flushes[0]]
    assert not await one.log.restore(one.name, newest, flushes[2]), "once is enough"
    again = await one.flush(7, "again")
    assert await one.chain() == [again, flushes[1], flushes[0]]
    assert await one.log.restore(one.name, again.flush_id, flushes[0])
    assert state_of(await one.head()) == (0, 0, None, None)
    assert await one.window() == await one.turns() == list(range(11))
    assert await one.chain() == []
    nowhere = stored_name("conversation_id", subject.conversation("none"))
    assert not await one.log.restore(nowhere, newest, flushes[0])
    assert await one.log.find_flush(nowhere, newest) is None
    assert await one.log.find_flush(one.name, new_entry_id()) is None


@check("C8")
async def restoring_ends_a_flush_that_is_under_way(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(4)
    first = await one.flush(2)
    late, after = flush_of(await one.head(), 3, "late")
    assert await one.log.claim(one.name, late.flush_id, 2, NOW, NOW + MINUTE)
    assert await one.log.restore(one.name, first.flush_id, first)
    assert not await one.log.flush(one.name, late, after)
    assert await one.window() == [0, 1, 2, 3]
    await one.flush(1)


@check("C8")
async def the_window_of_another_store_has_what_was_flushed_and_restored_here(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(6)
    other: Any = subject.another().log(CONVERSATION_LOG)
    if await other.head(one.name) is None:
        return  # it keeps its conversations in the memory of one store

    async def seen() -> list[int]:
        return [turn.turn_id for turn in (await other.window(one.name, 10_000))[1]]

    flush = await one.flush(4)
    assert await seen() == [4, 5]
    assert await one.log.restore(one.name, flush.flush_id, flush)
    assert await seen() == [0, 1, 2, 3, 4, 5]
    await one.append()
    await one.flush(5, None, drops=True)
    assert await seen() == [5, 6]


@check("C8")
async def a_conversation_that_is_made_again_has_no_flush_of_before(subject: Subject) -> None:
    one = Flushes(subject)
    await one.append(4)
    flushes = [await one.flush(2, "before", marks="{}", drops=True), await one.flush(3, "before")]
    late, after = flush_of(await one.head(), 4, "late")
    assert await one.log.claim(one.name, late.flush_id, 3, NOW, NOW + MINUTE)
    await one.log.delete(one.name)
    for flush in flushes:
        assert await one.log.find_flush(one.name, flush.flush_id) is None
    await one.append(4)
    assert not await one.log.flush(one.name, late, after)
    assert not await one.log.restore(one.name, flushes[1].flush_id, flushes[1])
    head = await one.head()
    assert (state_of(head), head.marks, head.dropped_turns) == ((0, 0, None, None), None, 0)
    for flush in (*flushes, late):
        assert await one.log.find_flush(one.name, flush.flush_id) is None
    assert await one.window() == [0, 1, 2, 3]


@check("C8", Capability.LISTING)
async def nothing_of_a_flush_is_left_of_an_erased_person(subject: Subject) -> None:
    one, ann, secret = Flushes(subject), f"person {uuid4().hex}", f"secret {uuid4().hex}"
    await one.append(4, owner=ann)
    await one.flush(2, secret)
    await one.flush(3, f"{secret} again")
    assert await _found(subject, secret) != {}
    if subject.mode is Mode.BLOCKING:
        erasure.erase(subject.store, ann)
        erasure.readmit(subject.store, ann)
    else:
        await erasure.async_erase(subject.store, ann)
        await erasure.async_readmit(subject.store, ann)
    assert await _found(subject, secret) == {}


async def _found(subject: Subject, text: str) -> dict[str, int]:
    if subject.mode is Mode.BLOCKING:
        return erasure.find_text(subject.store, text)
    return await erasure.async_find_text(subject.store, text)
