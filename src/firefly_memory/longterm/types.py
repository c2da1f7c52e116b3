"""Facts and people as users see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, overload

from firefly_memory.search.hits import Hit

T = TypeVar("T")

Scope = Literal["session", "user", "agent", "global"]
"""Who sees a fact: one conversation, one person, one agent, or everybody in the space."""

SCOPES: tuple[Scope, ...] = ("session", "user", "agent", "global")
"""The most specific scope first: a lookup takes the first that has the key."""

FACT_TYPES = ("user_preference", "world_knowledge", "self_knowledge", "correction", "relationship")
"""The types that the library knows. Others are allowed."""

PREFERENCE = "user_preference"
USUAL_TYPE = "world_knowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFact:
    """Something that is known, under a key."""

    id: str
    key: str
    value: Any
    """Any JSON value."""
    fact_type: str
    scope: Scope
    session_id: str | None = None
    """The conversation, in the scope ``session``."""
    user_id: str | None = None
    """The person whose data it is: in the scope ``user``, and in others if one was named."""
    agent_id: str | None = None
    """The agent, in the scope ``agent``."""
    confidence: float = 1.0
    """From 0.0 to 1.0."""
    times_confirmed: int = 1
    times_contradicted: int = 0
    source_episode_id: str | None = None
    """The episode that the value is from."""
    access_count: int = 0
    """How often ``get_fact()`` gave it."""
    last_accessed: datetime | None = None
    valid_from: datetime
    """When it was first said that the value is this one."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FactVersion:
    """What a fact said before."""

    number: int
    """From 1 on, in the order in which values were replaced."""
    value: Any
    confidence: float
    source_episode_id: str | None
    valid_from: datetime
    superseded_at: datetime
    """When another value took its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHit(Hit):
    """A fact that was found. Its text is ``key: value``."""

    fact: MemoryFact


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUser:
    """A person whom a channel knows."""

    id: str
    canonical_id: str
    """``channel:id``, such as ``telegram:12345``. This is the ``user_id`` everywhere."""
    telegram_id: str | None = None
    email: str | None = None
    display_name: str | None = None
    preferences_cache: Mapping[str, Any] = field(default_factory=dict)
    """The person's facts of the type ``user_preference``, by key."""
    total_conversations: int = 0
    last_conversation_at: datetime | None = None
    first_seen: datetime
    merged_into_id: str | None = None
    """The ``id`` of the person whom this one was merged into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage(Sequence[T], Generic[T]):
    """Some of a list, and in ``next`` the cursor of the next page: pass it as ``after=page.next``."""

    items: tuple[T, ...]
    """What this page has."""
    next: str | None
    """``None`` on the last page."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


Facts = MemoryPage[MemoryFact]
FactHits = MemoryPage[FactHit]
History = MemoryPage[FactVersion]
Users = MemoryPage[MemoryUser]
