"""Where the summaries of conversations are searched."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from firefly_memory.strategies.base import Configuration


class KnowledgeBase(Configuration):
    """A collection that takes the summaries of a conversation, and how an agent finds them there."""

    collection_id: Annotated[str, Field(min_length=1)]
    """The collection of a ``KnowledgeStore``."""
    search_mode: Literal["always", "tool"] = "always"
    """``always`` searches for every prompt of the user. ``tool`` gives the agent a tool for it."""
    top_k: Annotated[int, Field(ge=1)] = 3
    """How many chunks are found at most."""
    shared: bool = False
    """Whether a search sees the chunks of all owners. By default it sees those of the same owner or conversation."""


KnowledgeBases = KnowledgeBase
"""Another name of :class:`KnowledgeBase`."""
