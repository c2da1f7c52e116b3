"""A run repeated with its id, as durable engines do it, is one turn, and sends its prompt once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory import ConversationMemory, EntryStore, MemoryManager, SQLiteStore
from firefly_memory.agents import Memory
from firefly_memory.agents.turn_recorder import OnConflict
from tests.support.scripted_model import Scripted, stored

pytestmark = pytest.mark.thorough


def agent_of(manager: MemoryManager, scripted: Scripted, on_conflict: OnConflict = "append") -> Agent[None, str]:
    agent = Agent(scripted.model, capabilities=[Memory(manager, on_conflict=on_conflict)])

    @agent.tool_plain
    def look() -> str:
        return "seen"

    return agent


async def test_a_repeated_run_is_one_turn_and_sends_its_prompt_once(manager: MemoryManager) -> None:
    await agent_of(manager, Scripted("a")).run("before", conversation_id="c")
    for answer in ("the answer", "the answer", "other words"):
        scripted = Scripted({"look": {}}, answer)
        result = await agent_of(manager, scripted).run("which?", conversation_id="c", run_id="r")
        assert result.output == answer
        assert scripted.texts == [["before", "a", "which?"], ["before", "a", "which?", "seen"]]
    assert stored(manager) == [("before", "a"), ("which?", "the answer")]


@pytest.mark.parametrize("on_conflict", ["append", "reject"])
async def test_a_repeated_run_is_one_turn_although_others_added_turns(on_conflict: OnConflict) -> None:
    manager = MemoryManager()
    await agent_of(manager, Scripted("one")).run("which?", conversation_id="c", run_id="r")
    await agent_of(manager, Scripted("two")).run("and?", conversation_id="c")
    scripted = Scripted("another")
    await agent_of(manager, scripted, on_conflict).run("which?", conversation_id="c", run_id="r")
    assert stored(manager) == [("which?", "one"), ("and?", "two")]
    assert scripted.texts == [["which?"]], "what others said since was not known then"


async def test_the_window_of_a_repeated_run_has_the_same_size() -> None:
    manager = MemoryManager(max_conversation_tokens=120)
    for number in range(6):
        await agent_of(manager, Scripted("word " * 10)).run(f"{number}", conversation_id="c")
    texts = []
    for _ in range(2):
        scripted = Scripted("word " * 30)
        await agent_of(manager, scripted).run("which?", conversation_id="c", run_id="r")
        texts += scripted.texts
    assert texts[0] == texts[1]
    assert len(texts[0]) > 3


@pytest.mark.parametrize("step", [RuntimeError("503"), {"look": {}}])
async def test_repeating_an_interrupted_run_adds_the_missing_messages(step: Any, manager: MemoryManager) -> None:
    steps = [step] if isinstance(step, dict) else []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="503"):
            scripted = Scripted(*steps, RuntimeError("503"))
            await agent_of(manager, scripted).run("which?", conversation_id="c", run_id="r")
    before = len(manager.conversation.get_turns("c"))
    for _ in range(2):
        scripted = Scripted(*steps, "red")
        await agent_of(manager, scripted).run("which?", conversation_id="c", run_id="r")
        assert scripted.texts[0] == ["which?"]
    assert before == 1 or steps, "the calls of a response that is made again have other ids"
    assert stored(manager) == [("which?", ""), *[("", "")] * (before - 1), ("", "red")]
    prompts = [part for part in said(manager) if part.part_kind == "user-prompt"]
    assert [part.content for part in prompts] == ["which?"]


async def test_an_interrupted_repetition_of_a_finished_run_adds_nothing(manager: MemoryManager) -> None:
    await agent_of(manager, Scripted({"look": {}}, "red")).run("which?", conversation_id="c", run_id="r")
    with pytest.raises(RuntimeError, match="503"):
        scripted = Scripted({"look": {}}, RuntimeError("503"))
        await agent_of(manager, scripted).run("which?", conversation_id="c", run_id="r")
    assert stored(manager) == [("which?", "red")]


def said(manager: MemoryManager) -> list[Any]:
    turns = manager.conversation.get_turns("c")
    return [part for turn in turns for message in turn.raw_messages for part in message.parts]


async def test_a_failed_run_that_is_repeated_after_other_turns_adds_a_turn(manager: MemoryManager) -> None:
    with pytest.raises(RuntimeError, match="503"):
        await agent_of(manager, Scripted(RuntimeError("503"))).run("which?", conversation_id="c", run_id="r")
    await agent_of(manager, Scripted("two")).run("and?", conversation_id="c")
    await agent_of(manager, Scripted("one")).run("which?", conversation_id="c", run_id="r")
    assert stored(manager) == [("which?", ""), ("and?", "two"), ("which?", "one")]


async def test_another_prompt_with_a_used_run_id_is_another_run(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    for prompt in ("one", "two"):
        scripted = Scripted(f"to {prompt}")
        await agent_of(manager, scripted).run(prompt, conversation_id="c", run_id="r")
    assert stored(manager) == [("one", "to one"), ("two", "to two")]
    assert scripted.texts == [["one", "to one", "two"]]


# A durable engine


def work(directory: Path, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.durable_worker", f"sqlite:///{directory}/memory.db", how]
    environment = {**os.environ, "DBOS_SYSTEM": f"sqlite:///{directory}/dbos.db"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("how", ["dies after the run", "dies in a tool"])
def test_a_recovered_dbos_workflow_is_one_turn(how: str, tmp_path: Path) -> None:
    died = work(tmp_path, how)
    assert died.returncode == 9, died.stderr
    recovered = work(tmp_path, "recovers")
    assert recovered.returncode == 0, recovered.stderr
    output, asked = json.loads(recovered.stdout.splitlines()[-1])
    assert output == "it is red"
    assert asked == ([] if how == "dies after the run" else [3]), "what was answered is not asked again"
    with SQLiteStore(tmp_path / "memory.db") as store:
        turns = ConversationMemory(store=store).get_turns("c")
    assert [(turn.user_prompt, turn.assistant_response) for turn in turns] == [("which mode?", "it is red")]
    kinds = [part.part_kind for message in turns[0].raw_messages for part in message.parts]
    assert kinds == ["user-prompt", "tool-call", "tool-return", "text"]
