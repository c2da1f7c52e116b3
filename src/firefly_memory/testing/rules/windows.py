"""C3, the window, and C4, the summary."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import UnknownConversationError
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.conversations import filled, ids

CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "call 1", "function": {"name": "f"}}]}
RESULT = {"role": "tool", "tool_call_id": "call 1", "content": "42"}


@check("C3")
async def the_history_is_the_newest_whole_turns_that_fit_the_budget(subject: Subject) -> None:
    memory, conversation = await filled(subject, 9)
    turns = await memory.get_turns(conversation)
    costs = [turn.token_estimate for turn in turns]
    for count in range(10):
        for budget in {sum(costs[9 - count :]), sum(costs[9 - count :]) + 1} - {0}:
            window = await memory.get_window(conversation, budget)
            assert window.turns == tuple(range(9 - count, 9))
            assert window.messages == [message for turn in turns[9 - count :] for message in turn.raw_messages]
            assert window.messages == await memory.get_message_history(conversation, budget)
            assert window.tokens == sum(costs[9 - count :]) <= window.budget == budget
            assert bool(window.left_out) == (count < 9)
    assert (await memory.get_window(conversation, 0)).messages == []


@check("C3")
async def an_unknown_conversation_is_empty(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation = subject.conversation("unknown")
    assert await memory.get_message_history(conversation) == []
    assert await memory.get_turns(conversation) == []
    assert await memory.get_summary(conversation) is None
    assert await memory.get_total_tokens(conversation) == 0
    await memory.clear(conversation)
    await subject.refuses(UnknownConversationError, memory.export_conversation(conversation))


@check("C3")
async def a_turn_larger_than_the_budget_is_left_out_and_said_so(subject: Subject) -> None:
    memory, conversation = await filled(subject, 2, max_tokens=60)
    await memory.add_turn(conversation, "p", "a", [{"role": "user", "content": "word " * 500}])
    window = await memory.get_window(conversation)
    assert (window.messages, window.turns, window.tokens) == ([], (), 0)
    assert "turn 3" in window.left_out[0]
    await memory.add_turn(conversation, "p", "a", [{"role": "user", "content": "short"}])
    assert await memory.get_message_history(conversation) == [{"role": "user", "content": "short"}]


@check("C3")
async def a_call_and_its_result_in_two_turns_stay_together(subject: Subject) -> None:
    memory, conversation = await filled(subject, 1)
    await memory.add_turn(conversation, "do it", "", [{"role": "user", "content": "word " * 50}, CALL])
    await memory.add_turn(conversation, "", "done", [RESULT, {"role": "assistant", "content": "done"}])
    await memory.add_turn(conversation, "thanks", "", [{"role": "user", "content": "thanks"}])
    costs = [turn.token_estimate for turn in await memory.get_turns(conversation)]
    window = await memory.get_window(conversation, sum(costs[2:]))
    assert window.turns == (3,)
    assert any("calls which are not in the window" in reason for reason in window.left_out)
    assert (await memory.get_window(conversation, sum(costs[1:]))).turns == (1, 2, 3)


@check("C4")
async def the_oldest_turns_are_evicted_into_the_summary(subject: Subject) -> None:
    seen: list[list[ConversationTurn]] = []

    def summarize(turns: list[ConversationTurn]) -> str:
        seen.append(turns)
        return "; ".join(turn.assistant_response for turn in turns)

    memory, conversation = await filled(subject, 30, summarize_threshold=100, summarizer=summarize)
    assert len(seen) > 1
    summarized = [turn.turn_id for turns in seen for turn in turns if not turn.is_summary]
    assert summarized == list(range(len(summarized))), "each turn once, in order"
    assert not seen[0][0].is_summary
    for earlier, turns in pairwise(seen):
        assert turns[0].is_summary
        assert turns[0].assistant_response == "; ".join(turn.assistant_response for turn in earlier)
    summary = await memory.get_summary(conversation)
    assert summary == "; ".join(f"answer {number}" for number in summarized)
    window = await memory.get_window(conversation)
    assert window.turns == tuple(range(len(summarized), 30))
    assert summary in window.messages[0]["content"]
    assert window.messages[0]["role"] == "system"
    assert ids(await memory.get_turns(conversation)) == list(range(30)), "evicted turns stay stored"


@check("C4")
async def a_summary_may_be_left_for_later(subject: Subject) -> None:
    found: list[int] = []

    def summarize(turns: list[ConversationTurn]) -> str:
        found.append(len(turns))
        return f"{len(turns)} turns"

    async def left() -> bool:
        turn: ConversationTurn = await memory.add_turn(conversation, "prompt " * 8, "answer", summarize=False)
        return turn.summary_is_due

    memory = subject.memory(ConversationMemory, summarize_threshold=100, summarizer=summarize)
    worker = subject.memory(ConversationMemory, summarize_threshold=100, summarizer=summarize)
    conversation = subject.conversation()
    while not await left():
        assert await memory.get_total_tokens(conversation) <= 100
    assert await left(), "as long as nobody makes it"
    assert found == []
    await worker.summarize(conversation)
    assert len(found) == 1
    await memory.summarize(conversation)
    assert len(found) == 1, "it is made already"
    assert not await left()
    plain = subject.memory(ConversationMemory, summarize_threshold=100)
    assert not (await plain.add_turn(conversation, "prompt " * 100, "answer", summarize=False)).summary_is_due
    await plain.summarize(conversation)
    assert await left()


@check("C4")
async def writers_at_once_summarize_each_turn_once(subject: Subject) -> None:
    seen: list[int] = []

    def summarize(turns: list[ConversationTurn]) -> str:
        seen.extend(turn.turn_id for turn in turns if not turn.is_summary)
        return " ".join(turn.assistant_response for turn in turns)

    memory = subject.memory(ConversationMemory, summarize_threshold=60, summarizer=summarize)
    conversation = subject.conversation()

    async def add(number: int) -> None:
        await memory.add_turn(conversation, f"prompt {number}", f"answer-{number}")

    await at_once(subject, [partial(add, number) for number in range(30)])
    await add(30)
    turns = await memory.get_turns(conversation)
    assert ids(turns) == list(range(31))
    assert seen == list(range(len(seen)))
    assert (await memory.get_summary(conversation) or "").split() == [
        turn.assistant_response for turn in turns[: len(seen)]
    ]


@check("C4")
async def a_summarizer_that_fails_loses_nothing_and_fails_no_turn(subject: Subject) -> None:
    answers: list[Any] = [RuntimeError("no model"), "", None, StopIteration(), "at last"]

    def summarize(_: list[ConversationTurn]) -> Any:
        answer = answers.pop(0) if answers else "more"
        if isinstance(answer, Exception):
            raise answer
        return answer

    with subject.quiet():
        memory, conversation = await filled(subject, 5, summarize_threshold=1, summarizer=summarize)
    assert await memory.get_summary(conversation) is None
    assert ids(await memory.get_turns(conversation)) == [0, 1, 2, 3, 4]
    await memory.add_turn(conversation, "p", "a", [{"role": "user", "content": "one more"}])
    assert await memory.get_summary(conversation) == "at last"
    assert (await memory.get_window(conversation)).turns == (5,)


@check("C4")
async def a_summarizer_may_be_asynchronous_and_look_into_the_memory(subject: Subject) -> None:
    found: list[int] = []

    async def summarize(turns: list[ConversationTurn]) -> str:
        found.append(len(await memory.get_turns(conversation)))
        return f"{len(turns)} turns"

    memory = subject.memory(ConversationMemory, summarize_threshold=1, summarizer=summarize)
    conversation = subject.conversation()
    await memory.add_turn(conversation, "p", "a")
    await memory.add_turn(conversation, "p", "a")
    assert await memory.get_summary(conversation) == "1 turns"
    assert found == [2]


@check("C4")
async def a_call_that_waits_for_its_result_is_not_evicted(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory, summarize_threshold=90, summarizer=lambda turns: f"{len(turns)} turns")
    conversation = subject.conversation()
    await memory.add_turn(conversation, "do it", "", [{"role": "user", "content": "do it"}, CALL])
    for number in range(6):
        await memory.add_turn(
            conversation, f"meanwhile {number}", "", [{"role": "user", "content": "meanwhile, a word"}]
        )
    await memory.add_turn(conversation, "", "done", [RESULT, {"role": "assistant", "content": "done"}])
    window = await memory.get_window(conversation)
    assert CALL in window.messages
    assert RESULT in window.messages
    assert window.turns == tuple(range(8))


@check("C4")
async def a_result_whose_call_is_gone_takes_nothing_else_along(subject: Subject) -> None:
    memory, conversation = await filled(subject, 2)
    await memory.add_turn(conversation, "", "", [RESULT])
    await memory.add_turn(conversation, "p", "", [{"role": "user", "content": "p"}])
    assert (await memory.get_window(conversation)).turns == (0, 1, 3)


@check("C3")
async def a_result_without_a_call_costs_only_itself(subject: Subject) -> None:
    memory, conversation = await filled(subject, 2)
    answer = {"role": "assistant", "content": "the code is 42"}
    await memory.add_turn(conversation, "which code?", "the code is 42", [RESULT, answer])
    window = await memory.get_window(conversation)
    assert window.turns == (0, 1, 2)
    assert window.messages[-1] == answer
    assert RESULT not in window.messages


@check("C4")
async def a_call_that_the_newest_turn_answers_is_not_evicted(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory, summarize_threshold=50, summarizer=lambda turns: f"{len(turns)} turns")
    conversation = subject.conversation()
    await memory.add_turn(conversation, "before", "", [{"role": "user", "content": "before"}])
    await memory.add_turn(conversation, "do it", "", [{"role": "user", "content": "do it " * 20}, CALL])
    await memory.add_turn(conversation, "", "", [RESULT, {"role": "assistant", "content": "done " * 200}])
    window = await memory.get_window(conversation)
    assert CALL in window.messages
    assert RESULT in window.messages
    assert window.turns[-2:] == (1, 2)


@check("C4")
async def a_long_summary_goes_before_older_turns(subject: Subject) -> None:
    summary = "word " * 120
    memory, conversation = await filled(subject, 12, summarize_threshold=40, summarizer=lambda _: summary)
    window = await memory.get_window(conversation, 170)
    assert summary in window.messages[0]["content"]
    assert window.turns
    assert window.turns[-1] == 11
    assert window.tokens <= 170
    narrow = await memory.get_window(conversation, 60)
    assert narrow.turns
    assert all("word word" not in message["content"] for message in narrow.messages)
    assert any("the summary" in reason for reason in narrow.left_out)


@check("C4")
async def a_summarizer_is_not_given_everything_at_once(subject: Subject) -> None:
    memory, conversation = await filled(subject, 1)
    for _ in range(40):
        await memory.add_turn(conversation, "p", "a", [{"role": "user", "content": "word " * 1_000}])
    given: list[int] = []

    def summarize(turns: list[ConversationTurn]) -> str:
        given.append(sum(turn.token_estimate for turn in turns if not turn.is_summary))
        return "summary"

    other = subject.memory(ConversationMemory, summarize_threshold=40, summarizer=summarize)
    for number in range(6):
        await other.add_turn(conversation, f"p{number}", "", [{"role": "user", "content": "p"}])
    assert len(given) > 1
    assert max(given) < 20_000


@check("C4")
async def a_claim_made_while_a_clock_was_ahead_does_not_last(subject: Subject) -> None:
    memory, conversation = await filled(subject, 1, summarize_threshold=1, summarizer=lambda _: "summary")
    log = subject.view.log(CONVERSATION_LOG)
    with stopped() as clock:
        ahead = clock.now() + timedelta(days=1000)
        assert await log.claim(conversation, "of a clock that was ahead", 0, ahead, ahead + timedelta(minutes=10))
    await memory.add_turn(conversation, "p", "a")
    assert await memory.get_summary(conversation) == "summary"
