"""The options that are passed on to pydantic-ai have types: none that pydantic-ai has is missing there."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory.agents import FireflyAgent
from firefly_memory.agents.firefly_agent import AgentOptions
from firefly_memory.agents.run_options import RunOptions, StepOptions


def parameters(function: object) -> set[str]:
    assert callable(function)
    return inspect.signature(function).parameters.keys() - {"self", "options"}


def test_the_options_of_a_firefly_agent_are_those_of_an_agent() -> None:
    assert parameters(Agent.__init__) - parameters(FireflyAgent.__init__) - AgentOptions.__annotations__.keys() == set()


def test_the_options_of_steps_are_those_of_a_run() -> None:
    given_by_the_step = {"user_prompt", "conversation_id"}
    assert parameters(Agent.run) - given_by_the_step - RunOptions.__annotations__.keys() == set()
    assert StepOptions.__annotations__.keys() >= RunOptions.__annotations__.keys() | {"conversation_id"}


def test_an_option_that_pydantic_ai_does_not_know_is_still_passed_on() -> None:
    options: Any = {"option_of_a_later_version": 1}
    with pytest.raises(TypeError, match="option_of_a_later_version"):
        FireflyAgent(name="a", model="test", **options)
