"""Which messages of a history a prompt has, by the role of the agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.feeds.constants import (
    ACTION,
    CONVERSATION_TYPES,
    ERROR,
    GLOBAL_OBSERVATION,
    OBSERVATION,
    SYNTHESIS,
    TASK,
)
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.reprs import shown
from firefly_memory.validation import at_least, is_whole_number

Context = Mapping[str, Any] | None

_STEPS = frozenset({ACTION, OBSERVATION, ERROR, GLOBAL_OBSERVATION})
"""What a worker's prompt has after the task."""


class HistoryFilter(ABC):
    """Chooses the messages of a prompt."""

    @abstractmethod
    def filter_for_prompt(self, history: Iterable[Message], context: Context = None) -> Messages:
        """A new list with the messages that are chosen; the messages themselves are those of ``history``, in its order.

        ``context`` has facts about the run. Messages may have any keys and any ``type``, or none.
        ``ConfigurationError`` for a value of the context that cannot be used.
        """


class DefaultHistoryFilter(HistoryFilter):
    """Chooses everything."""

    def filter_for_prompt(self, history: Iterable[Message], context: Context = None) -> Messages:
        return list(history)


class OrchestratorHistoryFilter(HistoryFilter):
    """Chooses the newest ``max_conversation_turns`` messages of the conversation. ``max_conversation_turns`` in the
    context comes first. 0 chooses nothing."""

    def __init__(self, max_conversation_turns: int = 8) -> None:
        self.max_conversation_turns: int = at_least(0, "max_conversation_turns", max_conversation_turns)

    def filter_for_prompt(self, history: Iterable[Message], context: Context = None) -> Messages:
        given = _from(context, "max_conversation_turns")
        most = self.max_conversation_turns if given is None else at_least(0, "max_conversation_turns", given)
        conversation = [each for each in history if _type_of(each) in CONVERSATION_TYPES]
        return conversation[max(len(conversation) - most, 0) :]


class ManagerHistoryFilter(HistoryFilter):
    """Chooses the syntheses of the phase before: ``previous_phase_id`` in the context, else its ``phase_id`` - 1, if
    that is at least 0. Without them it chooses nothing."""

    def filter_for_prompt(self, history: Iterable[Message], context: Context = None) -> Messages:
        phase = _phase_before(context)
        if phase is None:
            return []
        return [each for each in history if _type_of(each) == SYNTHESIS and _is_of_phase(each, phase)]


class WorkerHistoryFilter(HistoryFilter):
    """Chooses what follows the last task: actions, observations, errors and observations for every agent. Without a
    task it chooses nothing."""

    def filter_for_prompt(self, history: Iterable[Message], context: Context = None) -> Messages:
        messages = list(history)
        task = max((place for place, each in enumerate(messages) if _type_of(each) == TASK), default=len(messages))
        return [each for each in messages[task + 1 :] if _type_of(each) in _STEPS]


def _type_of(message: Any) -> str | None:
    """The type of a message, if it is text: other values may not be hashable."""
    kind = message.get("type") if isinstance(message, Mapping) else None
    return kind if isinstance(kind, str) else None


def _from(context: Context, name: str) -> Any:
    if context is not None and not isinstance(context, Mapping):
        raise ConfigurationError(f"context must be a mapping or None, not {type(context).__name__}")
    return None if context is None else context.get(name)


def _phase_before(context: Context) -> str | int | None:
    previous, current = _from(context, "previous_phase_id"), _from(context, "phase_id")
    if previous is not None:
        if not isinstance(previous, (str, int)) or isinstance(previous, bool):
            raise ConfigurationError(f"previous_phase_id must be a whole number or text, not {shown(previous)}")
        return previous
    if current is None:
        return None
    if not isinstance(current, int) or isinstance(current, bool):
        raise ConfigurationError(
            f"phase_id must be a whole number, not {shown(current)}; for other ids, give previous_phase_id"
        )
    return current - 1 if is_whole_number(current, 1) else None


def _is_of_phase(message: Message, phase: str | int) -> bool:
    of = message.get("phase_id")
    return isinstance(of, (str, int, float)) and not isinstance(of, bool) and of == phase
