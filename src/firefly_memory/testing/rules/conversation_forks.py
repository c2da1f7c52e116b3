"""C5, conversations copied into others."""

from __future__ import annotations

from firefly_memory.errors import ConflictError, InvalidEntryError, TurnConflictError, UnknownConversationError
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.conversations import filled, prompts


@check("C5")
async def a_fork_has_the_turns_and_goes_its_own_way(subject: Subject) -> None:
    memory, conversation = await filled(subject, 4)
    await memory.add_turn(conversation, "\x00\ud800", "a", [{"a": 2**70}], metadata={"~n": None}, idempotency_key="k")
    turns = await memory.get_turns(conversation)
    for count, expected in ((None, 5), (5, 5), (99, 5), (3, 3), (1, 1), (0, 0)):
        with stopped() as clock:
            clock.advance(hours=1)
            fork = await memory.fork_conversation(conversation, turns=count)
        subject.forget(fork)
        assert fork in await subject.ids_of_conversations(memory)
        assert await memory.get_turns(fork) == turns[:expected]
        assert await memory.get_total_tokens(fork) == sum(turn.token_estimate for turn in turns[:expected])
        assert (await memory.get_window(fork)).turns == tuple(range(expected))
        (info,) = [each for each in await memory.list_conversations(1000) if each.conversation_id == fork]
        assert info.created_at > turns[-1].created_at, "the newest of the list"
        assert info.updated_at == (turns[expected - 1].created_at if expected else info.created_at)
        assert (await memory.add_turn(fork, "in the fork", "a")).turn_id == expected
        assert prompts(await memory.get_turns(fork)) == [*prompts(turns[:expected]), "in the fork"]
    assert await memory.get_turns(conversation) == turns
    fork = await memory.fork_conversation(conversation, subject.conversation("fork"))
    again = await memory.add_turn(fork, "\x00\ud800", "a", [{"a": 2**70}], metadata={"~n": None}, idempotency_key="k")
    assert again.turn_id == 4
    await subject.refuses(TurnConflictError, memory.add_turn(fork, "other", "a", idempotency_key="k"))
    await memory.clear(conversation)
    assert await memory.get_turns(fork) == turns


@check("C5")
async def a_fork_has_the_summary_of_turns_that_it_has(subject: Subject) -> None:
    memory, conversation = await filled(subject, 12, summarize_threshold=40, summarizer=lambda _: "the summary")
    window = await memory.get_window(conversation)
    summarized = window.turns[0]
    assert summarized > 1
    for count in (None, summarized, summarized + 1):
        fork = await memory.fork_conversation(conversation, turns=count)
        subject.forget(fork)
        assert await memory.get_summary(fork) == "the summary"
        there = 12 if count is None else count
        assert (await memory.get_window(fork)).turns == window.turns[: there - summarized]
    fork = await memory.fork_conversation(conversation, turns=summarized - 1)
    subject.forget(fork)
    assert await memory.get_summary(fork) is None
    assert len((await memory.get_window(fork)).turns) == summarized - 1
    data = await memory.export_conversation(conversation)
    await memory.clear(conversation)
    assert await memory.import_conversation(data) == conversation


@check("C5")
async def a_fork_needs_a_conversation_and_an_id_that_is_free(subject: Subject) -> None:
    memory, conversation = await filled(subject, 2)
    taken = subject.conversation("taken")
    await memory.new_conversation(taken)
    for name in (taken, conversation):
        await subject.refuses(ConflictError, memory.fork_conversation(conversation, name))
    assert await memory.get_turns(taken) == []
    unknown = subject.conversation("unknown")
    for other in (None, subject.conversation("fork of nothing"), taken):
        await subject.refuses(UnknownConversationError, memory.fork_conversation(unknown, other))
    assert unknown not in await subject.ids_of_conversations(memory)
    for turns in (-1, True, "1"):
        await subject.refuses(InvalidEntryError, memory.fork_conversation(conversation, turns=turns))
    await subject.refuses(InvalidEntryError, memory.fork_conversation(conversation, ""))
    empty = await memory.fork_conversation(taken, subject.conversation("fork of an empty one"))
    assert await memory.get_turns(empty) == []
