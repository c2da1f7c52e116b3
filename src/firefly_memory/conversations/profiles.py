"""The strategies that a memory is given, one by one or as a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from firefly_memory.conversations.attached import Attached
from firefly_memory.conversations.policy import LongTerm, ShortTerm, ThresholdPolicy
from firefly_memory.conversations.summarizers import Summarizer, at_once, awaited, in_an_event_loop
from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import shown
from firefly_memory.stores.base import EntryStore


@runtime_checkable
class Profile(Protocol):
    """The strategies of a memory in one object, such as a ``MemoryProfile``."""

    @property
    def short_term_memory_strategy(self) -> Sequence[ShortTerm]:
        """What of the history is sent."""

    @property
    def long_term_memory_strategy(self) -> Sequence[LongTerm]:
        """Which turns leave the history."""


class Strategies(NamedTuple):
    """The strategies of a memory, each list in the order in which its members are asked."""

    short_term: tuple[ShortTerm, ...]
    long_term: tuple[LongTerm, ...]

    def attached(self, store: EntryStore, summarizer: Summarizer | None, threshold: int) -> tuple[Attached, Attached]:
        """The strategies as they reach the store, from blocking code and from asynchronous code."""
        for strategy in self.long_term:
            strategy.check(store)
        blocking, suspending = self.long_term, self.long_term
        if summarizer is not None:
            blocking = (ThresholdPolicy(threshold, at_once(summarizer)),)
            suspending = (ThresholdPolicy(threshold, awaited(summarizer)),)
        # Not inside somebody's transaction, which would wait for a model, and whose failure would not be ours alone.
        flushes = not store.in_transaction
        return (
            Attached(self.short_term, blocking, store, flushes=flushes, is_blocking=True, awaited=in_an_event_loop),
            Attached(self.short_term, suspending, store, flushes=flushes),
        )


def checked_strategies(
    short_term: Sequence[ShortTerm],
    long_term: Sequence[LongTerm],
    profile: Profile | None,
    summarizer: Summarizer | None,
) -> Strategies:
    """The strategies, from either way of giving them; ``ConfigurationError`` for both, or for other objects."""
    if profile is not None:
        if short_term or long_term:
            raise ConfigurationError("profile has the strategies: pass it, or short_term and long_term, not both")
        if not isinstance(profile, Profile):
            raise ConfigurationError(f"profile must be a MemoryProfile, not {shown(profile)}")
        short_term, long_term = profile.short_term_memory_strategy, profile.long_term_memory_strategy
    if long_term and summarizer is not None:
        raise ConfigurationError("summarizer and long_term both take turns out of the window: pass one of them")
    return Strategies(_checked("short_term", short_term, ShortTerm), _checked("long_term", long_term, LongTerm))


def _is_one(strategy: Any, kind: type[Any]) -> bool:
    return isinstance(strategy, kind) and not isinstance(strategy, type)


def _checked(name: str, strategies: Any, kind: type[Any]) -> tuple[Any, ...]:
    if isinstance(strategies, Sequence) and all(_is_one(each, kind) for each in strategies):
        return tuple(strategies)
    raise ConfigurationError(f"{name} must be a list of {name.replace('_', '-')} strategies, not {shown(strategies)}")
