"""A person is erased while an agent runs for them: the run ends with a clear error, and nothing of it is stored."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory import ErasedError, MemoryManager, erasure
from firefly_memory.agents import Memory
from firefly_memory.stores.base import EntryStore
from tests.support.scripted_model import Scripted


@pytest.mark.parametrize("on_conflict", ["append", "reject", "branch"])
@pytest.mark.parametrize("named", [True, False], ids=["with an owner", "without an owner"])
async def test_a_run_that_was_going_on_ends_with_an_error_that_has_its_result(
    store: EntryStore, on_conflict: Any, named: bool
) -> None:
    manager = MemoryManager(store=store)
    agent: Any = Agent(capabilities=[Memory(manager, owner="ann" if named else None, on_conflict=on_conflict)])

    @agent.tool_plain  # type: ignore[untyped-decorator]
    async def wait() -> str:
        await erasure.async_erase(store, "ann")
        return "done"

    await manager.conversation.async_add_turn("of ann", "my secret", "noted", owner="ann")
    try:
        with pytest.raises(ErasedError, match="belongs to a person whose data was erased") as refused:
            await agent.run("go on", model=Scripted({"wait": {}}, "end").model, conversation_id="of ann")
        assert refused.value.result.output == "end"
        assert list(await manager.conversation.async_list_conversations()) == []
        assert await erasure.async_find_text(store, "go on") == {}
    finally:
        await erasure.async_readmit(store, "ann")


async def test_a_new_run_of_an_erased_person_asks_no_model_and_stores_nothing(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    agent = Agent(capabilities=[Memory(manager, owner="ann", on_conflict="branch")])
    await erasure.async_erase(store, "ann")
    try:
        for conversation in ("new", "of somebody"):
            scripted = Scripted("hi")
            with pytest.raises(ErasedError):
                await agent.run("hello", model=scripted.model, conversation_id=conversation)
            assert scripted.asked == [], "what an erased person says goes to no model"
        assert list(await manager.conversation.async_list_conversations()) == []
    finally:
        await erasure.async_readmit(store, "ann")


async def test_a_fact_that_a_model_writes_of_an_erased_conversation_is_refused(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    agent: Any = Agent(capabilities=[Memory(manager, owner="ann", tools=True)])

    @agent.tool_plain  # type: ignore[untyped-decorator]
    async def wait() -> str:
        await erasure.async_erase(store, "ann")
        return "done"

    await manager.conversation.async_add_turn("of ann", "my secret", "noted", owner="ann")
    steps = Scripted({"wait": {}}, {"remember": {"key": "city", "value": "Paris"}}, "end")
    try:
        with pytest.raises(ErasedError):
            await agent.run("go on", model=steps.model, conversation_id="of ann")
        assert await erasure.async_find_text(store, "Paris") == {}
    finally:
        await erasure.async_readmit(store, "ann")
