"""R7: names that are kept for the library."""

from __future__ import annotations

from functools import partial

from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.entries.entry import MemoryEntry, MemoryScope
from firefly_memory.entries.fact_ids import fact_id
from firefly_memory.errors import InvalidEntryError
from firefly_memory.protocols import ABSENT, Capability
from firefly_memory.testing.checks import Memory, Subject, check


async def _conversation(subject: Subject) -> tuple[Memory, str]:
    memory, name = subject.memory(ConversationMemory), subject.conversation()
    await memory.add_turn(name, "hello", "hi")
    return memory, name


@check("R7")
async def no_entry_reaches_a_namespace_of_conversations(subject: Subject) -> None:
    view = subject.view
    conversation, name = await _conversation(subject)
    entry = MemoryEntry(key="k")
    for namespace in (f"conversation:{name}", "conversation:"):
        for operation in (
            partial(view.save, namespace, entry),
            partial(view.save_if, namespace, entry, ABSENT),
            partial(view.save_many, namespace, [entry]),
            partial(view.load, namespace),
            partial(view.load_page, namespace),
            partial(view.load_by_key, namespace, "summary"),
            partial(view.delete, namespace, entry.entry_id),
            partial(view.delete_many, namespace, [entry.entry_id]),
            partial(view.clear, namespace),
            partial(view.count, namespace),
        ):
            error = await subject.refuses(InvalidEntryError, operation())
            assert error.path == "namespace"
    assert [turn.user_prompt for turn in await conversation.get_turns(name)] == ["hello"]


@check("R7", Capability.LISTING)
async def no_list_has_a_namespace_of_conversations(subject: Subject) -> None:
    await _conversation(subject)
    namespace = subject.namespace()
    await subject.view.save(namespace, MemoryEntry())
    seen: list[str] = []
    while page := await subject.view.namespaces(limit=2, after=seen[-1] if seen else None):
        seen += page
    assert namespace in seen
    assert not [each for each in seen if each.startswith("conversation:")]
    await subject.refuses(InvalidEntryError, subject.view.namespaces("conversation:"))


@check("R7")
async def the_id_of_a_fact_is_refused_for_every_other_entry(subject: Subject) -> None:
    view = subject.view
    scope = subject.exactly(f"working:{subject.namespace()}")
    own = fact_id(scope, "name")
    for namespace, key in ((scope, None), (scope, "age"), (f"{scope}2", "name"), (subject.namespace(), "name")):
        entry = MemoryEntry(entry_id=own, key=key, scope=MemoryScope.WORKING)
        for operation in (
            partial(view.save, namespace, entry),
            partial(view.save_if, namespace, entry, ABSENT),
            partial(view.save_many, namespace, [MemoryEntry(), entry]),
        ):
            error = await subject.refuses(InvalidEntryError, operation())
            assert error.path == "entry_id"
        assert await view.load(namespace) == []
    entry = MemoryEntry(entry_id=own, key="name", content="hers", scope=MemoryScope.WORKING)
    await view.save(scope, entry)
    assert await view.load(scope) == [entry]
