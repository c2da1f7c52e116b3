"""Agents of pydantic-ai with a memory, as a user's type checker sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_type

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext

from firefly_memory import MemoryManager
from firefly_memory.agents import FireflyAgent, Memory


@dataclass
class Deps:
    user_id: str


class Answer(BaseModel):
    text: str


manager = MemoryManager()

plain = FireflyAgent(name="assistant", model="openai:gpt-5.2", memory=manager)
structured = FireflyAgent(name="assistant", model="openai:gpt-5.2", memory=manager, deps_type=Deps, output_type=Answer)
assert_type(structured, FireflyAgent[Deps, Answer])
only_output = FireflyAgent(name="assistant", memory=manager, output_type=Answer)
only_deps = FireflyAgent(name="assistant", memory=manager, deps_type=Deps)
several: FireflyAgent[object, int | str] = FireflyAgent(name="assistant", memory=manager, output_type=[int, str])

assert_type(plain.run_sync("hello").output, str)
assert_type(only_output.run_sync("hello").output, Answer)
assert_type(only_deps.run_sync("hello", deps=Deps("ada")).output, str)
assert_type(several.run_sync("hello").output, int | str)
assert_type(structured.run_sync("hello", deps=Deps("ada")).output, Answer)
assert_type(plain.memory, MemoryManager | None)
assert_type(structured.agent, Agent[Deps, Answer])


async def run() -> None:
    result = await structured.run("hello", deps=Deps("ada"), conversation_id="1")
    assert_type(result.output, Answer)
    async with plain.run_stream("hello") as stream:
        assert_type(await stream.get_output(), str)


structured.run_sync("hello", deps="ada")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


@structured.tool
def age(ctx: RunContext[Deps], name: str) -> int:
    assert_type(ctx.deps, Deps)
    return len(name)


@structured.tool_plain
def today(year: int) -> str:
    return str(year)


@structured.instructions
def instructions(ctx: RunContext[Deps]) -> str:
    return ctx.deps.user_id


@structured.system_prompt
def system_prompt() -> str:
    return "Be brief."


@structured.output_validator
def validator(ctx: RunContext[Deps], output: Answer) -> Answer:
    if not output.text:
        raise ModelRetry("say something")
    return output


today(2030)
assert_type(instructions, Callable[[RunContext[Deps]], str | None])
today("2030")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@structured.tool  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def of_other_deps(ctx: RunContext[int]) -> int:
    return ctx.deps


FireflyAgent(name="assistant", memmory=manager)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
FireflyAgent(name="assistant", memory="memory.db")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
plain.rum_sync("hello")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

agent = Agent("openai:gpt-5.2", deps_type=Deps, capabilities=[Memory(manager)])
assert_type(agent, Agent[Deps, str])


def owner(ctx: RunContext[Deps]) -> str:
    return ctx.deps.user_id


Memory(manager, owner=owner, working_scope=owner)
Memory(manager, owner=lambda ctx: ctx.deps.user_id)
Memory(manager, tool=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Memory(manager, on_conflict="refuse")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(plain.remembering(manager), Memory)
