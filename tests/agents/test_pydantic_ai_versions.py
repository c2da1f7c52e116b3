"""The version of pydantic-ai that each feature needs, and the errors with an older version."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, AgentRunResult, RunContext

from firefly_memory import MemoryManager
from firefly_memory.agents import Memory
from firefly_memory.agents.versions import NEEDED
from tests.support.scripted_model import Scripted, stored

FOUND = version("pydantic-ai-slim")
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_extra_installs_what_the_agents_need() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert NEEDED in extras["agents"]


def test_with_an_old_pydantic_ai_the_error_names_both_versions() -> None:
    code = """
import pydantic_ai.messages as messages
del messages.repair_messages
try:
    import firefly_memory.agents
except ImportError as error:
    print(type(error).__name__, error)
"""
    words = f"MissingDependencyError firefly_memory.agents needs {NEEDED}; {FOUND} is installed; run: pip install '{NEEDED}'"
    assert printed(code) == f"{words}\n"


def test_only_the_conversation_stores_need_the_newer_pydantic_ai() -> None:
    code = """
import sys
sys.modules["pydantic_ai.conversation_store"] = None
from firefly_memory.agents import *
import firefly_memory.agents.delegation, firefly_memory.pipeline, firefly_memory.reasoning
print(Memory.__name__, FireflyAgent.__name__, firefly_memory.agents.__all__)
imports = "from firefly_memory.agents import MongoConversationStore", "import firefly_memory.agents.conversation_stores"
for each in imports:
    try:
        exec(each)
    except ImportError as error:
        print(type(error).__name__, error)
"""
    names, *errors = printed(code).splitlines()
    others = ["FireflyAgent", "LongTermMemory", "Memory", "feed_memory", "from_model_messages", "long_term_tools"]
    assert names == f"Memory FireflyAgent {[*others, 'to_model_messages']}"
    words = f"firefly_memory.agents.conversation_stores needs pydantic-ai-slim>=2.66,<3; {FOUND} is installed; run: "
    assert [error.startswith(f"MissingDependencyError {words}") for error in errors] == [True, True]


async def test_a_run_that_the_garbage_collector_closes_does_not_wait() -> None:
    """pydantic-ai before 2.64 leaves the task of ``wrap_run`` behind when a run is cancelled as it begins."""
    manager, contexts = MemoryManager(), list[RunContext[Any]]()
    agent = Agent(Scripted({"look": {}}, "fine").model)

    @agent.tool
    def look(ctx: RunContext[Any]) -> str:
        contexts.append(ctx)
        return "seen"

    async def forever() -> AgentRunResult[Any]:
        await asyncio.Event().wait()
        raise AssertionError

    await agent.run("one", conversation_id="c")
    run = Memory(manager).wrap_run(contexts[0], handler=forever)
    run.send(None)
    run.close()
    assert stored(manager) == []
