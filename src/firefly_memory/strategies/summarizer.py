"""The long-term strategy ``summarizer``: a summary takes the place of the oldest interactions."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, WithJsonSchema, model_serializer
from pydantic.json_schema import SkipJsonSchema

from firefly_memory.concurrency.sync_bridge import in_a_loop
from firefly_memory.conversations.policy import Conversation, Live, SearchMode, how_many_to_evict
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import ConfigurationError
from firefly_memory.messages.interactions import CountMessage
from firefly_memory.stores.base import EntryStore
from firefly_memory.strategies.base import LongTermMemoryStrategyBase, Threshold
from firefly_memory.strategies.chain_of_density import OnPass, chain_of_density
from firefly_memory.strategies.knowledge_base import KnowledgeBases
from firefly_memory.strategies.rest import left_by
from firefly_memory.strategies.stored_knowledge import (
    check_knowledge,
    find_summaries,
    forget_summaries,
    save_summary,
)
from firefly_memory.strategies.summary_messages import summary_message, summary_of
from firefly_memory.strategies.text_splitter import TextSplitterConfig
from firefly_memory.summarization import configured_model

_LONG = 32_000
"""The tokens of a flush: about twice as many, or twice a threshold that is higher."""

SaveChunks = Callable[[list[str]], Awaitable[object]]
"""Stores the chunks of a summary in the knowledge base."""


def _checked_model(model: Any) -> Any:
    library = sys.modules.get("pydantic_ai.models")  # a program that has a model has loaded pydantic-ai
    is_model = library is not None and isinstance(model, library.Model)
    if model is None or is_model or (isinstance(model, str) and model.strip()):
        return model
    raise ValueError("must be the name of a model, such as 'openai:gpt-4o-mini', a model of pydantic-ai, or None")


class SummarizerStrategy(LongTermMemoryStrategyBase):
    """Replaces the oldest interactions with a summary, which a model makes in ``cod_max_loops`` passes.

    If the model or the knowledge base fails, the error is raised and nothing is lost.
    """

    long_term_memory_id: Literal["summarizer"] = "summarizer"
    interaction_threshold_qty: Threshold = 20
    interaction_threshold_tokens: Threshold = 20000
    cod_max_loops: Annotated[int, Field(ge=1)] = 5
    """How many times the model is called: the first time for a summary, then to make it denser."""
    knowledge_base: KnowledgeBases | None = None
    """The collection that takes the summaries, if there is one."""
    instructions: str | None = None
    """More instructions for the model, in every pass."""
    text_splitter: TextSplitterConfig = Field(default_factory=TextSplitterConfig)
    """How a summary is split for the knowledge base."""
    model: Annotated[
        Any, AfterValidator(_checked_model), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})
    ] = None
    """The name of a model, or one of pydantic-ai's models; ``None`` stands for
    ``FIREFLY_AGENTIC_MEMORY_SUMMARY_MODEL``. Only a name is written to JSON."""
    on_pass: SkipJsonSchema[Callable[[int, int, str], object] | None] = Field(default=None, exclude=True)
    """A function that is called after each pass, with its number, how many there are, and the summary so far. Only in
    Python."""

    @model_serializer(mode="wrap")
    def _without_a_model_object(self, serialized: SerializerFunctionWrapHandler) -> dict[str, Any]:
        is_name = isinstance(self.model, str)
        fields: dict[str, Any] = serialized(self if is_name else self.model_copy(update={"model": None}))
        if not is_name:
            fields.pop("model", None)
        return fields

    def chunks(self, summary: str) -> list[str]:
        """What of ``summary`` goes into the knowledge base: nothing if there is none."""
        return [] if self.knowledge_base is None else self.text_splitter.split(summary)

    async def async_summary(
        self, messages: Sequence[Any], *, earlier: str | None = None, on_pass: OnPass | None = None
    ) -> str:
        """The summary of ``messages`` by ``cod_max_loops`` calls of the model. ``earlier`` is the summary before."""
        return await chain_of_density(
            messages,
            model=self.model or configured_model(),
            passes=self.cod_max_loops,
            instructions=self.instructions,
            earlier=earlier,
            on_pass=on_pass or self.on_pass,
        )

    def apply(
        self,
        messages: Sequence[Any],
        *,
        count: CountMessage | None = None,
        input_tokens: int | None = None,
        since: int = 0,
        save_chunks: SaveChunks | None = None,
        on_pass: OnPass | None = None,
    ) -> list[Any]:
        """The messages of the system, the summary, and the messages that are kept; if nothing is due, all messages.

        An earlier summary among ``messages`` is part of the new one. With a ``knowledge_base``, ``save_chunks`` stores
        the chunks of the summary there. ``on_pass`` is called after each pass of the model. The other arguments are
        those of :meth:`plan`. The model is asked in an event loop: :meth:`apply` blocks until that has ended.
        """
        return in_a_loop.run(
            self.async_apply(
                messages,
                count=count,
                input_tokens=input_tokens,
                since=since,
                save_chunks=save_chunks,
                on_pass=on_pass,
            )
        )

    async def async_apply(
        self,
        messages: Sequence[Any],
        *,
        count: CountMessage | None = None,
        input_tokens: int | None = None,
        since: int = 0,
        save_chunks: SaveChunks | None = None,
        on_pass: OnPass | None = None,
    ) -> list[Any]:
        """The messages of the system, the summary, and the messages that are kept; if nothing is due, all messages.

        An earlier summary among ``messages`` is part of the new one. With a ``knowledge_base``, ``save_chunks`` stores
        the chunks of the summary there. ``on_pass`` is called after each pass of the model. The other arguments are
        those of :meth:`plan`. The model is asked in an event loop: :meth:`apply` blocks until that has ended.
        """
        if self.knowledge_base is not None and save_chunks is None:
            raise ConfigurationError("with knowledge_base, save_chunks must store the chunks of the summary")
        plan = self.plan(messages, count=count, input_tokens=input_tokens, since=since)
        if not plan.is_due:
            return list(messages)
        earlier = {place: text for place in plan.system if (text := summary_of(messages[place])) is not None}
        old = [messages[place] for place in plan.old]
        summary = await self.async_summary(old, earlier="\n\n".join(earlier.values()) or None, on_pass=on_pass)
        if save_chunks is not None and (chunks := self.chunks(summary)):
            await save_chunks(chunks)
        return left_by(plan, messages, [summary_message(summary, messages)], replaced=earlier)

    # On stored conversations

    def check(self, store: EntryStore) -> None:
        """Raise an error if the store cannot have the knowledge base."""
        if self.knowledge_base is not None:
            check_knowledge(store)

    def how_many(self, live: Live) -> int:
        """How many of the oldest turns leave. Of a very long conversation only a part leaves at once, so that a model
        can read it. The next turn triggers again, if the rest is due."""
        count = super().how_many(live)
        most = 2 * max(_LONG, self.interaction_threshold_tokens, self.input_tokens_threshold)
        return how_many_to_evict(live.turns[:count], count, most, overdue=True)

    async def replacement(self, turns: list[ConversationTurn], conversation: Conversation, flush_id: str) -> str | None:
        """The summary, after it was saved in the knowledge base."""
        summary = await super().replacement(turns, conversation, flush_id)
        if self.knowledge_base is not None and summary is not None:
            await save_summary(self.knowledge_base, self.chunks(summary), conversation, flush_id)
        return summary

    @property
    def search_mode(self) -> SearchMode | None:
        """How the knowledge base is searched, if there is one."""
        return None if self.knowledge_base is None else self.knowledge_base.search_mode

    async def search(self, query: str, conversation: Conversation) -> Sequence[str]:
        """What is found in the knowledge base."""
        return [] if self.knowledge_base is None else await find_summaries(self.knowledge_base, query, conversation)

    async def forget(self, conversation: Conversation) -> None:
        """Delete the summaries of a conversation from the knowledge base."""
        if self.knowledge_base is not None:
            await forget_summaries(self.knowledge_base, conversation)
