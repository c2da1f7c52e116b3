"""C5, conversations listed, deleted, exported and imported."""

from __future__ import annotations

import json
from typing import Any

from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.errors import InvalidEntryError, TurnConflictError
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.conversations import filled, ids


@check("C5")
async def conversations_are_listed_newest_first_page_by_page(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    names = [subject.conversation(f"conversation {number}") for number in range(5)]
    with stopped() as clock:
        for number, name in enumerate(names):
            clock.advance(seconds=1)
            assert await memory.new_conversation(name) == name
            for _ in range(number):
                await memory.add_turn(name, "p", "a")
    await memory.new_conversation(names[2])
    found = []
    after = None
    while True:
        page = await memory.list_conversations(2, after)
        found += [each for each in page if each.conversation_id in names]
        after = page.next
        if after is None:
            break
        nothing = await memory.list_conversations(0, after)
        assert (list(nothing), nothing.next) == ([], after)
    assert [each.conversation_id for each in found] == names[::-1]
    assert [each.turns for each in found] == [4, 3, 2, 1, 0]
    ids_of_all = await subject.ids_of_conversations(memory)
    assert [name for name in ids_of_all if name in names] == names
    generated = await memory.new_conversation()
    subject.forget(generated)
    assert generated in await subject.ids_of_conversations(memory)
    for arguments in ((-1,), (2, "nonsense"), (2, "2020-01-01T00:00:00/x")):
        await subject.refuses(InvalidEntryError, memory.list_conversations(*arguments))


@check("C5")
async def a_deleted_conversation_starts_again_from_nothing(subject: Subject) -> None:
    memory, conversation = await filled(subject, 3, summarize_threshold=1, summarizer=lambda _: "summary")
    other = subject.conversation("other")
    await memory.add_turn(other, "p", "a")
    await memory.clear(conversation)
    assert await memory.get_turns(conversation) == []
    assert await memory.get_summary(conversation) is None
    assert conversation not in await subject.ids_of_conversations(memory)
    assert (await memory.add_turn(conversation, "p", "a", expected_turns=0)).turn_id == 0
    assert ids(await memory.get_turns(other)) == [0]


@check("C5")
async def an_export_is_json_and_comes_back(subject: Subject) -> None:
    memory, conversation = await filled(subject, 6, summarize_threshold=30, summarizer=lambda _: "the summary")
    await memory.add_turn(conversation, "p", "a", metadata={"when": "2020-01-01", "nested": {"\x00": [1]}})
    for raw_messages in (False, True):
        data = await memory.export_conversation(conversation, raw_messages=raw_messages)
        assert json.loads(json.dumps(data)) == data
        assert (data["conversation_id"], data["summary"]) == (conversation, "the summary")
        assert data["total_tokens"] == await memory.get_total_tokens(conversation)
        name = subject.conversation(f"copy {raw_messages}")
        assert await memory.import_conversation(data, name) == name
        turns, copies = await memory.get_turns(conversation), await memory.get_turns(name)
        assert [turn.user_prompt for turn in copies] == [turn.user_prompt for turn in turns]
        assert [turn.metadata for turn in copies] == [turn.metadata for turn in turns]
        assert len(copies) == len(turns)
        assert [turn.created_at for turn in copies] == [turn.created_at for turn in turns]
        window = await memory.get_window(name)
        assert window.summary == "the summary"
        assert window.turns == (await memory.get_window(conversation)).turns
        assert window.tokens <= window.budget
        assert len(window.messages) > 1, "texts are replayed where messages are missing"
        if raw_messages:
            assert copies == turns
        for again in (data, await memory.export_conversation(name, raw_messages=raw_messages)):
            assert await memory.import_conversation(again, name) == name
            assert await memory.get_turns(name) == copies
        if raw_messages:
            assert await memory.import_conversation(await memory.export_conversation(conversation)) == conversation
            assert await memory.get_turns(conversation) == turns, "also of one without messages, where they are"
    taken = subject.conversation("taken")
    await memory.add_turn(taken, "something else", "")
    await subject.refuses(TurnConflictError, memory.import_conversation(data, taken))


@check("C5")
async def a_malformed_export_is_refused_with_its_path(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    good = {"turn_id": 0, "user_prompt": "p", "assistant_response": "a"}
    for turns, path in (
        ("turns", "turns"),
        ([1], "['turns'][0]"),
        ([{**good, "turn_id": 1}], "turn_id"),
        ([{**good, "user_prompt": None}], "user_prompt"),
        ([{"turn_id": 0, "user_prompt": "p"}], "assistant_response"),
        ([{**good, "token_estimate": -1}], "token_estimate"),
        ([{**good, "token_estimate": True}], "token_estimate"),
        ([{**good, "metadata": []}], "metadata"),
        ([{**good, "created_at": "yesterday"}], "created_at"),
        ([{**good, "raw_messages": "m"}], "raw_messages"),
        ([{**good, "raw_messages": ["m"], "messages_format": "nonsense"}], "raw_messages"),
    ):
        name = subject.conversation(f"malformed {path}")
        refused = memory.import_conversation(
            {"conversation_id": name, "turns": turns, "summary": None, "summarized_turns": 0}
        )
        error = await subject.refuses(InvalidEntryError, refused)
        assert path in error.path or path in str(error)
        assert await memory.get_turns(name) == []
    nonsense: list[Any] = [None, [], {}, {"conversation_id": 3, "turns": []}]
    for data in nonsense:
        await subject.refuses(InvalidEntryError, memory.import_conversation(data))


@check("C5")
async def an_older_export_does_not_put_an_older_summary_back(subject: Subject) -> None:
    memory, conversation = await filled(subject, 8, summarize_threshold=60, summarizer=lambda turns: f"{len(turns)}")
    earlier = await memory.export_conversation(conversation, raw_messages=True)
    for number in range(12):
        await memory.add_turn(conversation, f"more {number}", "", [{"role": "user", "content": f"more {number}"}])
    before = await memory.get_window(conversation)
    assert await memory.import_conversation(earlier) == conversation
    assert await memory.get_window(conversation) == before


@check("C5")
async def exports_that_begin_after_evicted_turns_are_taken(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    name = subject.conversation()
    turns = [{"turn_id": 5 + number, "user_prompt": f"p{number}", "assistant_response": "a"} for number in range(3)]
    await memory.import_conversation({"conversation_id": name, "turns": turns, "summary": "what came before"})
    assert ids(await memory.get_turns(name)) == [0, 1, 2]
    window = await memory.get_window(name)
    assert (window.summary, window.turns) == ("what came before", (0, 1, 2))


@check("C5")
async def the_tokens_of_an_import_are_counted_anew(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory, max_tokens=1_000)
    name = subject.conversation()
    turn = {"turn_id": 0, "user_prompt": "word " * 5_000, "assistant_response": "", "token_estimate": 0}
    await memory.import_conversation({"conversation_id": name, "turns": [turn], "summary": None})
    assert (await memory.get_window(name)).messages == []
    broken = [{**turn, "user_prompt": "p"}, {**turn, "turn_id": 1, "metadata": {"n": float("inf")}}]
    other = subject.conversation("other")
    refused = memory.import_conversation({"conversation_id": other, "turns": broken, "summary": None})
    await subject.refuses(InvalidEntryError, refused)
    assert await memory.get_turns(other) == [], "nothing is stored before everything was looked at"
