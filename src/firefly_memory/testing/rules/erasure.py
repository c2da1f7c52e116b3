"""C7, erasing a person."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

from firefly_memory import erasure
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.errors import ErasedError
from firefly_memory.protocols import ABSENT, Capability
from firefly_memory.testing.checks import Memory, Mode, Subject, check
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.working import WorkingMemory


def _somebody() -> str:
    return f"person {uuid4().hex}"


async def erase_in(subject: Subject, owner: str, *namespaces: str, dry_run: bool = False) -> erasure.Receipt:
    """Erase a person from the store under test, in this run's mode."""
    if subject.mode is Mode.BLOCKING:
        return erasure.erase(subject.store, owner, namespaces, dry_run=dry_run)
    return await erasure.async_erase(subject.store, owner, namespaces, dry_run=dry_run)


async def readmit_in(subject: Subject, owner: str) -> bool:
    """Readmit a person there."""
    if subject.mode is Mode.BLOCKING:
        return erasure.readmit(subject.store, owner)
    return await erasure.async_readmit(subject.store, owner)


def _facts(subject: Subject, **scope: str) -> Memory:
    facts = subject.memory(WorkingMemory, **scope)
    subject.exactly(facts.namespace)
    return facts


async def _rows(receipt: erasure.Receipt) -> dict[str, int]:
    return {kind: rows for kind, rows in receipt.rows.items() if rows}


async def _with_data_of(subject: Subject, owner: str) -> list[str]:
    """Conversations with turns and a fact, an empty one, and a fact in the person's own scope."""
    memory = subject.memory(ConversationMemory)
    ids = [subject.conversation(f"{name} of {owner}") for name in ("first", "second", "empty")]
    for conversation in ids[:2]:
        for number in range(3):
            await memory.add_turn(conversation, f"question {number}", "answer", owner=owner)
    await memory.new_conversation(ids[2], owner=owner)
    await _facts(subject, conversation_id=ids[0]).set("city", "Paris")
    await _facts(subject, scope_id=owner).set("city", "Lyon")
    return ids


@check("C7")
async def everything_of_an_erased_person_is_deleted_and_nothing_of_others(subject: Subject) -> None:
    memory, ann, bob = subject.memory(ConversationMemory), _somebody(), _somebody()
    of_ann, of_bob = await _with_data_of(subject, ann), await _with_data_of(subject, bob)
    named, other = subject.namespace("notes of ann"), subject.namespace("notes")
    await subject.saved(named, "one", "two")
    await subject.saved(other, "three")
    everything = {"conversations": 3, "turns": 6, "working-facts": 2, "entries": 2}
    counted = await erase_in(subject, ann, named, dry_run=True)
    assert counted.is_dry_run
    assert len(await memory.get_turns(of_ann[0])) == 3, "a dry run deletes nothing"
    await memory.add_turn(of_ann[0], "p", "a", owner=ann)  # and refuses nothing
    receipt = await erase_in(subject, ann, named)
    assert await _rows(counted) == everything
    assert await _rows(receipt) == {**everything, "turns": 7}
    assert list(await memory.list_conversations(owner=ann)) == []
    for conversation in of_ann:
        assert await memory.get_turns(conversation) == []
    assert await _facts(subject, conversation_id=of_ann[0]).to_dict() == {}
    assert await _facts(subject, scope_id=ann).to_dict() == {}
    assert await subject.contents(named) == []
    assert await subject.contents(other) == ["three"]
    assert len(await memory.list_conversations(owner=bob)) == 3
    assert len(await memory.get_turns(of_bob[0])) == 3
    assert await _facts(subject, conversation_id=of_bob[0]).to_dict() == {"city": "Paris"}
    assert await _facts(subject, scope_id=bob).to_dict() == {"city": "Lyon"}
    assert await _rows(await erase_in(subject, ann)) == {}
    await readmit_in(subject, ann)


@check("C7")
async def what_is_written_of_an_erased_person_is_refused(subject: Subject) -> None:
    ann, bob = _somebody(), _somebody()
    memory = subject.memory(ConversationMemory)
    first, *_ = await _with_data_of(subject, ann)
    await memory.add_turn(subject.conversation("bob's"), "p", "a", owner=bob)
    await erase_in(subject, ann)
    new = subject.conversation("new")
    for call in (
        memory.add_turn(first, "p", "a"),
        memory.add_turn(first, "p", "a", owner=ann),
        memory.add_turn(first, "p", "a", owner=bob),
        memory.add_turn(first, "p", "a", idempotency_key="k"),
        memory.add_turn(first, "p", "a", expected_turns=0),
        memory.add_turn(new, "p", "a", owner=ann),
        memory.new_conversation(first),
        memory.new_conversation(new, owner=ann),
        memory.fork_conversation(subject.conversation("bob's"), first),
    ):
        error = await subject.refuses(ErasedError, call)
        assert ann not in str(error), "the error names nobody"
        assert first not in str(error), "the error names nothing"
    for conversation in (first, new):
        await subject.refuses(ErasedError, memory.get_window(conversation, owner=ann))
    await subject.refuses(ErasedError, memory.get_window(first, owner=bob))
    assert (await memory.get_window(new, owner=bob)).total_turns == 0
    for facts in (_facts(subject, conversation_id=first), _facts(subject, scope_id=ann)):
        await subject.refuses(ErasedError, facts.set("city", "Nice"))
        await subject.refuses(ErasedError, facts.increment("visits"))
        await subject.refuses(ErasedError, facts.compare_and_set("city", ABSENT, "Nice"))
        assert await facts.to_dict() == {}
    assert list(await memory.list_conversations(owner=ann)) == []
    assert await memory.get_turns(first) == await memory.get_turns(new) == []
    await memory.add_turn(new, "p", "a", owner=bob)
    await _facts(subject, scope_id=bob).set("city", "Nice")
    await readmit_in(subject, ann)


@check("C7", Capability.SHARED)
async def a_store_that_remembers_the_conversation_is_refused_as_well(subject: Subject) -> None:
    ann, memory = _somebody(), subject.memory(ConversationMemory)
    another = Memory(ConversationMemory(store=subject.another_store()), subject.mode)
    first, second, empty = await _with_data_of(subject, ann)
    for conversation in (first, second, empty):
        await another.get_window(conversation)  # it may remember where the conversation ends
    await another.add_turn(second, "p", "a", owner=ann)
    await erase_in(subject, ann)
    for conversation in (first, second, empty):
        await subject.refuses(ErasedError, another.add_turn(conversation, "p", "a"))
        await subject.refuses(ErasedError, another.add_turn(conversation, "p", "a", owner=ann))
        assert await memory.get_turns(conversation) == []
    await readmit_in(subject, ann)


@check("C7")
async def a_refused_turn_does_not_disturb_the_turns_of_others(subject: Subject) -> None:
    memory, ann = subject.memory(ConversationMemory), _somebody()
    erased, kept = subject.conversation("erased"), subject.conversation("kept")
    await memory.add_turn(erased, "p", "a", owner=ann)
    await erase_in(subject, ann)

    async def append(conversation: str) -> Any:
        try:
            return await memory.add_turn(conversation, "p", "a")
        except ErasedError:
            return None

    appended = await at_once(
        subject, [partial(append, conversation) for _ in range(8) for conversation in (erased, kept)]
    )
    assert appended[::2] == [None] * 8
    assert sorted(turn.turn_id for turn in appended[1::2]) == list(range(8))
    assert await memory.get_turns(erased) == []
    await readmit_in(subject, ann)


@check("C7")
async def a_person_who_is_readmitted_begins_with_nothing(subject: Subject) -> None:
    memory, ann = subject.memory(ConversationMemory), _somebody()
    first, *_ = await _with_data_of(subject, ann)
    assert not await readmit_in(subject, ann)
    await erase_in(subject, ann)
    assert await readmit_in(subject, ann)
    assert await memory.get_turns(first) == []
    assert (await memory.add_turn(first, "p", "a", owner=ann)).turn_id == 0
    await _facts(subject, scope_id=ann).set("city", "Nice")
    await _facts(subject, conversation_id=first).set("city", "Nice")
    assert not await readmit_in(subject, ann)
