"""``LongTermMemory``: a capability of pydantic-ai that tells an agent what is known, and lets it remember more."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from firefly_memory.agents.capability import Memory
from firefly_memory.agents.fact_texts import LONGEST_TOKEN, fact_text, fitting
from firefly_memory.agents.long_term_toolset import User, check_long_term_options, long_term_tools, user_of_run
from firefly_memory.agents.run_state import ARE_DATA
from firefly_memory.errors import ConfigurationError, FireflyMemoryError
from firefly_memory.longterm.known import Known, known
from firefly_memory.longterm.places import EVERY_AGENT
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.tools import WriteScope, agent_id_of
from firefly_memory.longterm.types import MemoryFact
from firefly_memory.messages.quoted_text import fact_in_one_line, in_one_line
from firefly_memory.messages.storage import sendable
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import at_least, true_or_false

logger = logging.getLogger("firefly_memory")

PERSON = "Person:"
OWN = "Long-Term Memory of this person:"
OTHERS = "Long-Term Memory:"
NOT_ALL = "(more facts are stored)"


@dataclass
class LongTermMemory(AbstractCapability[Any]):
    """``Agent(model, capabilities=[LongTermMemory(service, user=lambda ctx: ctx.deps.user_id)])``: the agent knows what
    was remembered in other conversations.

    The instructions of a run have the person's name and facts, the agent's facts, and the global ones: those of the
    largest confidence first, and none whose confidence is below 0.5. The model gets the tools ``recall`` and
    ``remember`` for the person of the run; it cannot name another one.

    It works beside ``Memory``, which keeps conversations. Of the two, only one may have tools.
    """

    service: MemoryService
    """Where the facts are."""
    _: KW_ONLY
    id: str | None = "firefly_long_term_memory"
    """All have the same id, so that a ``LongTermMemory`` passed to a run replaces the agent's own for that run."""
    user: User | None
    """The ``user_id`` of the person, or a function of the run's context that returns it. ``None`` is nobody: such a run
    knows no facts of a person, and has no tool that writes to the scope ``"user"``."""
    agent: str = EVERY_AGENT
    """The name of the agent, if it has facts of its own: those of the scope ``agent``."""
    max_tokens: int = 1000
    """The most tokens of facts in the instructions."""
    tools: bool = True
    """Whether the model gets the tools ``recall`` and ``remember``."""
    write_scope: WriteScope = "user"
    """Who sees what ``remember`` stores: the person, in all conversations; all users of the agent; or, with
    ``"global"``, everybody."""
    _user_of_run: str | None = field(init=False, repr=False, compare=False, default=None)
    _told: str | None = field(init=False, repr=False, compare=False, default=None)
    _is_current: bool = field(init=False, repr=False, compare=False, default=False)

    def __post_init__(self) -> None:
        check_long_term_options("LongTermMemory", self.service, self.user, self.agent, self.write_scope)
        at_least(1, "max_tokens", self.max_tokens)
        true_or_false("tools", self.tools)

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Refuse several: nobody could tell whose facts a run is about."""
        raise ConfigurationError(f"an agent can use only one LongTermMemory capability; got {len(capabilities)}")

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a service is no value of a spec."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> LongTermMemory:
        """A copy with the state of one run."""
        own = copy(self)
        own._user_of_run = user_of_run(self.user, ctx)  # noqa: SLF001 - a copy of this
        own._told, own._is_current = None, False  # noqa: SLF001 - likewise
        return own

    def get_instructions(self) -> Any:
        """What is known."""
        return self._instructions

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """``recall`` and ``remember``, if ``tools`` is set."""
        if not self.tools:
            return None

        def user(ctx: RunContext[Any]) -> str | None:
            _check_other_tools(ctx)
            return self._user_of_run

        return long_term_tools(self.service, user=user, agent=self.agent, write_scope=self.write_scope)

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        """Read the facts again before the next request, if one may have been written."""
        if call.tool_name == "remember":
            self._is_current = False
        return result

    async def _instructions(self, ctx: RunContext[Any]) -> str:
        if not self._is_current:
            await self._read()
        return self._told or ""

    async def _read(self) -> None:
        try:
            found = await known(self.service, self._user_of_run, agent_id_of(self.agent))
        except FireflyMemoryError:
            if self._told is None:
                raise
            # The run goes on with the facts that it began with.
            logger.exception("the facts of a run were not read again")
        else:
            self._told = _told(found, self.max_tokens)
        self._is_current = True


def _told(found: Known, max_tokens: int) -> str:
    """What is known as text for a model. Each fact is one line, and no stored text can end its line."""
    name = [f"{PERSON} {in_one_line(found.name)}"] if found.name else []
    longest = max_tokens * LONGEST_TOKEN
    every = ((OWN, found.own), (OTHERS, found.others))
    facts = [(heading, line) for heading, of in every for line in _lines(of, longest)]
    chosen = fitting([*name, *(line for _, line in facts)], max_tokens, TokenEstimator())
    lines = [line for position, line in enumerate(name) if position in chosen]
    for heading in (OWN, OTHERS):
        of_heading = [
            line for position, (of, line) in enumerate(facts, start=len(name)) if of == heading and position in chosen
        ]
        lines += [heading, *of_heading] if of_heading else []
    is_all = found.is_all and len(facts) == len(found.own) + len(found.others)
    if not is_all or len(chosen) < len(name) + len(facts):
        lines.append(NOT_ALL)
    return sendable("\n".join([ARE_DATA, *lines])) if lines else ""


def _lines(facts: Sequence[MemoryFact], longest: int) -> list[str]:
    """Those that may fit: a long text would take long to write."""
    short = [each for each in facts if not isinstance(each.value, str) or len(each.value) <= longest]
    made = (fact_text(each.key, each.value, line=fact_in_one_line) for each in short)
    return [line for line in made if line is not None]


def _check_other_tools(ctx: RunContext[Any]) -> None:
    """``ConfigurationError`` if ``Memory`` offers tools of the same names."""
    if any(isinstance(each, Memory) and each.tools for each in ctx.capabilities.values()):
        raise ConfigurationError(
            "Memory and LongTermMemory both offer the tools remember and recall, and an agent can have them once: take "
            "Memory(tools=False), or LongTermMemory(tools=False) if the model is to write working memory"
        )
