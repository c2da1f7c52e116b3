"""C1, appending, and C2, retries and comparing."""

from __future__ import annotations

from functools import partial
from typing import Any

from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import InvalidEntryError, StaleConversationError, TurnConflictError
from firefly_memory.testing.checks import Memory, Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.values import VALUES, same


def ids(turns: list[ConversationTurn]) -> list[int]:
    return [turn.turn_id for turn in turns]


def prompts(turns: list[ConversationTurn]) -> list[str]:
    return [turn.user_prompt for turn in turns]


async def filled(subject: Subject, turns: int, **options: Any) -> tuple[Memory, str]:
    """A conversation of turns that have one message each, and cost about the same."""
    memory = subject.memory(ConversationMemory, **options)
    conversation = subject.conversation()
    for number in range(turns):
        message = {"role": "user", "content": f"message {number:03}"}
        await memory.add_turn(conversation, f"prompt {number}", f"answer {number}", [message])
    return memory, conversation


@check("C1")
async def turns_are_numbered_without_gaps_and_come_back_as_they_were(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation = subject.conversation()
    assert await memory.get_turns(conversation) == []
    added = []
    for number in range(5):
        texts = f"prompt \x00\ud800 {number}", f"answer é\x10 {number}"
        messages = [{"role": "user", "content": texts[0]}, "any value", None, 2**70]
        added.append(await memory.add_turn(conversation, *texts, messages, metadata={"n": number, "~str": "\x00"}))
    found = await memory.get_turns(conversation)
    assert ids(found) == [0, 1, 2, 3, 4]
    assert found == added
    assert found[3].raw_messages[0]["content"] == "prompt \x00\ud800 3"
    assert await memory.get_total_tokens(conversation) == sum(turn.token_estimate for turn in found)


@check("C1")
async def every_value_comes_back_the_same_in_messages_and_metadata(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation = subject.conversation()
    for value in VALUES:
        await memory.add_turn(conversation, "p", "a", [value], metadata={"value": value})
    for value, turn in zip(VALUES, await memory.get_turns(conversation), strict=True):
        assert same(turn.raw_messages, [value])
        assert same(turn.metadata, {"value": value})


@check("C1")
async def turns_are_read_page_by_page(subject: Subject) -> None:
    memory, conversation = await filled(subject, 7)
    assert ids(await memory.get_turns(conversation, 3)) == [0, 1, 2]
    assert ids(await memory.get_turns(conversation, 3, 2)) == [3, 4, 5]
    assert ids(await memory.get_turns(conversation, None, 5)) == [6]
    assert await memory.get_turns(conversation, 3, 6) == []
    assert await memory.get_turns(conversation, 0) == []
    assert ids(await memory.get_turns(conversation, 2**70, 3)) == [4, 5, 6]
    assert (await memory.get_window(conversation, 10**30)).turns == tuple(range(7))
    assert conversation in [each.conversation_id for each in await memory.list_conversations(2**63)]
    await subject.refuses(StaleConversationError, memory.add_turn(conversation, "p", "a", turn_id=2**70))
    for arguments in ((-1,), (None, -2), (True,), ("3",)):
        await subject.refuses(InvalidEntryError, memory.get_turns(conversation, *arguments))


@check("C1")
async def a_clock_that_jumps_back_changes_no_order(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation = subject.conversation()
    with stopped() as clock:
        for number in range(6):
            clock.advance(hours=-5 if number % 2 else 1)
            await memory.add_turn(conversation, f"prompt {number}", "")
        assert prompts(await memory.get_turns(conversation)) == [f"prompt {number}" for number in range(6)]
        assert (await memory.get_window(conversation)).turns == tuple(range(6))


@check("C1")
async def writers_at_once_lose_no_turn_and_leave_no_gap(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation = subject.conversation()

    async def add(number: int) -> int:
        turn: ConversationTurn = await memory.add_turn(conversation, f"prompt {number}", "answer")
        return turn.turn_id

    given = await at_once(subject, [partial(add, number) for number in range(40)])
    turns = await memory.get_turns(conversation)
    assert sorted(given) == ids(turns) == list(range(40))
    assert sorted(prompts(turns)) == sorted(f"prompt {number}" for number in range(40))
    assert [turns[turn_id].user_prompt for turn_id in given] == [f"prompt {number}" for number in range(40)]
    assert await memory.get_total_tokens(conversation) == sum(turn.token_estimate for turn in turns)


@check("C1")
async def what_is_no_turn_is_refused_and_nothing_is_stored(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation = subject.conversation()
    for arguments, options in (
        ((None, "a"), {}),
        (("p", 3), {}),
        (("p", "a", [object()]), {}),
        (("p", "a", [float("nan")]), {}),
        (("p", "a", "text"), {}),
        (("p", "a", {"role": "user"}), {}),
        (("p", "a", iter(["m"])), {}),
        (("p", "a", 5), {}),
        (("p", "a"), {"metadata": {"x": object()}}),
        (("p", "a"), {"metadata": [1]}),
        (("p", "a"), {"idempotency_key": ""}),
        (("p", "a"), {"turn_id": -1}),
        (("p", "a"), {"turn_id": 2, "expected_turns": 1}),
    ):
        await subject.refuses(InvalidEntryError, memory.add_turn(conversation, *arguments, **options))
    for name in ("", "x" * 513, 7):
        await subject.refuses(InvalidEntryError, memory.add_turn(name, "p", "a"))
    assert await memory.get_turns(conversation) == []
    assert not [each for each in (await memory.list_conversations()) if each.conversation_id == conversation]


@check("C2")
async def a_retry_returns_what_the_first_try_stored(subject: Subject) -> None:
    memory, conversation = await filled(subject, 2)
    metadata = {"k": 1, "in": {"~str": "an escape of ours, as a value"}}
    first = await memory.add_turn(conversation, "p", "a", ["m"], metadata=metadata, idempotency_key="run 1")
    assert first.turn_id == 2
    await memory.add_turn(conversation, "next", "a")
    again = await memory.add_turn(conversation, "p", "a", ["m"], metadata=metadata, idempotency_key="run 1")
    assert again == first
    by_number = await memory.add_turn(conversation, "p", "a", ["m"], metadata=metadata, turn_id=2)
    assert by_number == first
    assert (await memory.add_turn(conversation, "new", "a", turn_id=4)).turn_id == 4
    assert ids(await memory.get_turns(conversation)) == [0, 1, 2, 3, 4]


@check("C2")
async def a_retry_with_other_content_is_a_conflict(subject: Subject) -> None:
    memory, conversation = await filled(subject, 1)
    await memory.add_turn(conversation, "p", "a", idempotency_key="run 1")
    for arguments in (("p", "b"), ("q", "a"), ("p", "a", ["m"])):
        await subject.refuses(TurnConflictError, memory.add_turn(conversation, *arguments, idempotency_key="run 1"))
        await subject.refuses(TurnConflictError, memory.add_turn(conversation, *arguments, turn_id=1))
    assert ids(await memory.get_turns(conversation)) == [0, 1]
    other = subject.conversation("other")
    assert (await memory.add_turn(other, "q", "b", idempotency_key="run 1")).turn_id == 0


@check("C2")
async def retries_at_once_store_one_turn(subject: Subject) -> None:
    memory, conversation = await filled(subject, 1)

    async def add() -> ConversationTurn:
        turn: ConversationTurn = await memory.add_turn(conversation, "p", "a", idempotency_key="one")
        return turn

    given = await at_once(subject, [add] * 12)
    assert {turn.turn_id for turn in given} == {1}
    assert ids(await memory.get_turns(conversation)) == [0, 1]


@check("C2")
async def a_turn_whose_author_had_not_seen_the_newest_is_refused(subject: Subject) -> None:
    memory, conversation = await filled(subject, 3)
    for options in ({"expected_turns": 2}, {"expected_turns": 9}, {"turn_id": 9}):
        error = await subject.refuses(StaleConversationError, memory.add_turn(conversation, "p", "a", **options))
        assert error.turns == 3
    unknown = subject.conversation("unknown")
    error = await subject.refuses(StaleConversationError, memory.add_turn(unknown, "p", "a", expected_turns=1))
    assert error.turns == 0
    assert (await memory.add_turn(unknown, "p", "a", expected_turns=0)).turn_id == 0
    assert (await memory.add_turn(conversation, "p", "a", expected_turns=3)).turn_id == 3
    retried = await memory.add_turn(conversation, "k", "a", expected_turns=4, idempotency_key="k")
    assert await memory.add_turn(conversation, "k", "a", expected_turns=4, idempotency_key="k") == retried


@check("C2")
async def of_writers_that_expect_the_same_one_succeeds(subject: Subject) -> None:
    memory, conversation = await filled(subject, 1)

    async def add(number: int) -> bool:
        try:
            await memory.add_turn(conversation, f"prompt {number}", "", expected_turns=1)
        except StaleConversationError:
            return False
        return True

    results = await at_once(subject, [partial(add, number) for number in range(12)])
    assert results.count(True) == 1
    turns = await memory.get_turns(conversation)
    assert prompts(turns)[1:] == [f"prompt {results.index(True)}"]
