"""C6, whose conversation it is, and the lists of an owner."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.testing.checks import Memory, Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once

_UNUSUAL = "\x00 ann\ud800é \x10"


def _somebody() -> str:
    return f"person {uuid4().hex}"


async def _listed(memory: Memory, limit: int = 100, **options: str) -> list[str]:
    """The ids of a list, read page by page."""
    ids: list[str] = []
    after = None
    while True:
        page = await memory.list_conversations(limit, after, **options)
        ids += [each.conversation_id for each in page]
        after = page.next
        if after is None:
            return ids


async def _owner_of(memory: Memory, conversation: str, owner: str) -> str | None:
    (found,) = [each for each in await memory.list_conversations(owner=owner) if each.conversation_id == conversation]
    stated: str | None = found.owner
    return stated


@check("C6")
async def the_owner_is_set_when_the_conversation_is_made(subject: Subject) -> None:
    memory, ann = subject.memory(ConversationMemory), _somebody() + _UNUSUAL
    empty = await memory.new_conversation(subject.conversation("empty"), owner=ann)
    begun = subject.conversation("begun")
    await memory.add_turn(begun, "p", "a", owner=ann)
    nobodys = subject.conversation("nobody's")
    await memory.add_turn(nobodys, "p", "a")
    await memory.add_turn(empty, "p", "a")
    assert sorted(await _listed(memory, owner=ann)) == sorted([empty, begun])
    for conversation in (empty, begun):
        assert await _owner_of(memory, conversation, ann) == ann
        assert await memory.new_conversation(conversation, owner=ann) == conversation
        await memory.add_turn(conversation, "p", "a", owner=ann)
        assert (await memory.get_window(conversation, owner=ann)).total_turns == 2
    (info,) = [each for each in await memory.list_conversations(2**31) if each.conversation_id == nobodys]
    assert info.owner is None


@check("C6")
async def another_owner_is_refused_and_reads_and_writes_nothing(subject: Subject) -> None:
    memory, ann, bob = subject.memory(ConversationMemory), _somebody(), _somebody()
    made, nobodys = subject.conversation("made"), subject.conversation("nobody's")
    turn = await memory.add_turn(made, "p", "a", idempotency_key="k", owner=ann)
    await memory.add_turn(nobodys, "p", "a")
    empty = await memory.new_conversation(subject.conversation("empty"), owner=ann)
    for conversation in (made, nobodys, empty):
        there = await memory.get_turns(conversation)
        for call in (
            memory.new_conversation(conversation, owner=bob),
            memory.add_turn(conversation, "p", "a", owner=bob),
            memory.add_turn(conversation, "p", "a", idempotency_key="k", owner=bob),
            memory.add_turn(conversation, "p", "a", turn_id=0, owner=bob),
            memory.add_turn(conversation, "p", "a", expected_turns=len(there), owner=bob),
            memory.get_window(conversation, owner=bob),
        ):
            error = await subject.refuses(ConflictError, call)
            assert ann not in str(error), "whose it is, is no business of others"
        assert await memory.get_turns(conversation) == there
    assert await _listed(memory, owner=bob) == []
    assert await memory.add_turn(made, "p", "a", idempotency_key="k", owner=ann) == turn
    unknown = subject.conversation("unknown")
    assert (await memory.get_window(unknown, owner=bob)).total_turns == 0
    for owner in ("", "x" * 513, 7):
        for call in (
            memory.new_conversation(unknown, owner=owner),
            memory.add_turn(unknown, "p", "a", owner=owner),
            memory.get_window(unknown, owner=owner),
            memory.list_conversations(owner=owner),
        ):
            await subject.refuses(InvalidEntryError, call)
    assert await memory.get_turns(unknown) == []


@check("C6")
async def of_owners_who_begin_a_conversation_at_once_one_has_it(subject: Subject) -> None:
    memory = subject.memory(ConversationMemory)
    conversation, people = subject.conversation(), [_somebody() for _ in range(8)]

    async def begin(owner: str) -> bool:
        try:
            await memory.add_turn(conversation, owner, "a", owner=owner)
        except ConflictError:
            return False
        return True

    begun = await at_once(subject, [partial(begin, owner) for owner in people])
    assert begun.count(True) == 1
    owner = people[begun.index(True)]
    assert [turn.user_prompt for turn in await memory.get_turns(conversation)] == [owner]
    assert await _owner_of(memory, conversation, owner) == owner


@check("C6")
async def forks_and_imports_have_the_owner_and_a_deleted_conversation_has_none(subject: Subject) -> None:
    memory, ann, bob = subject.memory(ConversationMemory), _somebody(), _somebody()
    conversation = subject.conversation()
    for number in range(3):
        await memory.add_turn(conversation, f"prompt {number}", "a", owner=ann)
    forks = [await memory.fork_conversation(conversation, turns=turns) for turns in (None, 2, 0)]
    for fork in forks:
        subject.forget(fork)
        assert await _owner_of(memory, fork, ann) == ann
        await subject.refuses(ConflictError, memory.add_turn(fork, "p", "a", owner=bob))
    data = await memory.export_conversation(conversation)
    assert data["owner"] == ann
    copy = await memory.import_conversation(data, subject.conversation("copy"))
    assert await _owner_of(memory, copy, ann) == ann
    await subject.refuses(ConflictError, memory.import_conversation({**data, "owner": bob}))
    await memory.clear(conversation)
    assert conversation not in await _listed(memory, owner=ann)
    await memory.add_turn(conversation, "p", "a", owner=bob)
    assert await _listed(memory, owner=bob) == [conversation]
    assert await memory.import_conversation(data, subject.conversation("again")) in await _listed(memory, owner=ann)


@check("C6")
async def lists_are_in_the_order_of_creation_or_of_the_newest_turns(subject: Subject) -> None:
    memory, ann = subject.memory(ConversationMemory), _somebody()
    made = [subject.conversation(f"{number}") for number in range(7)]
    with stopped() as clock:
        for number, conversation in enumerate(made):
            clock.advance(hours=1)
            if number % 2:
                await memory.new_conversation(conversation, owner=ann)
            else:
                await memory.add_turn(conversation, "p", "a", owner=ann)
        for conversation in (made[3], made[0], made[3]):
            clock.advance(hours=1)
            turn = await memory.add_turn(conversation, "p", "a")
        await memory.new_conversation(subject.conversation("of another"), owner=_somebody())
    by_activity = [made[3], made[0], made[6], made[5], made[4], made[2], made[1]]
    for limit in (1, 2, 3, 6, 7, 100):
        assert await _listed(memory, limit, owner=ann) == made[::-1]
        assert await _listed(memory, limit, owner=ann, order="created") == made[::-1]
        assert await _listed(memory, limit, owner=ann, order="updated") == by_activity
        of_all = await _listed(memory, limit + 20, order="updated")
        assert [each for each in of_all if each in made] == by_activity
    (newest,) = await memory.list_conversations(1, owner=ann, order="updated")
    assert (newest.updated_at, newest.turns) == (turn.created_at, 2)
    assert newest.created_at < newest.updated_at


@check("C6")
async def a_cursor_of_one_order_is_refused_by_the_other(subject: Subject) -> None:
    memory, ann = subject.memory(ConversationMemory), _somebody()
    for number in range(3):
        await memory.new_conversation(subject.conversation(f"{number}"), owner=ann)
    for order, other in (("created", "updated"), ("updated", "created")):
        page = await memory.list_conversations(1, owner=ann, order=order)
        await subject.refuses(InvalidEntryError, memory.list_conversations(1, page.next, owner=ann, order=other))
    for unknown in ("oldest", None, 1):
        await subject.refuses(InvalidEntryError, memory.list_conversations(order=unknown))
