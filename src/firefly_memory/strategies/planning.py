"""What the strategies decide, as pure functions: no I/O, no change of a message, and the same plan each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from firefly_memory.messages.interactions import CountMessage, Grouped, counted, group
from firefly_memory.messages.parts import get, result_of
from firefly_memory.messages.shapes import as_dict, tool_parts
from firefly_memory.strategies.conditions import passing
from firefly_memory.strategies.filtering import Filtered, names_of_calls, system_of
from firefly_memory.tokens.estimator import TokenEstimator


@dataclass(frozen=True, slots=True, repr=False)
class KeepPlan:
    """What a short-term strategy sends of a list of messages. Show it in a log with ``str(plan)``."""

    messages: tuple[Any, ...]
    """The messages to send, in order. A message may be a copy without some of its tool calls."""
    places: tuple[int, ...]
    """For each of ``messages``, its index in the list that was given."""
    tokens: int
    """The tokens of the interactions that are kept. Messages of the system are not counted."""
    why: str
    """Why the plan ends where it does."""
    left_out: tuple[str, ...] = ()
    """What is left out, in words."""

    def __repr__(self) -> str:
        return f"KeepPlan({self})"

    def __str__(self) -> str:
        return "; ".join([f"{len(self.messages)} messages kept, {self.tokens} tokens: {self.why}", *self.left_out])


@dataclass(frozen=True, slots=True, repr=False)
class FlushPlan:
    """Which messages leave a conversation, and why. Show it in a log with ``str(plan)``."""

    is_due: bool
    """Whether a trigger fired, and there is a message that leaves."""
    why: str
    """The triggers that fired, or why nothing happens."""
    old: tuple[int, ...]
    """The places of the messages that leave. If nothing is due, there are none."""
    kept: tuple[int, ...]
    """The places of the messages that stay."""
    system: tuple[int, ...] = ()
    """The places of the messages of the system, which stay and belong to no interaction."""
    interactions: int = 0
    """How many interactions leave."""

    def __repr__(self) -> str:
        return f"FlushPlan({self})"

    def __str__(self) -> str:
        if not self.is_due:
            return f"nothing to do: {self.why}"
        return f"{self.interactions} interactions ({len(self.old)} messages) leave, {len(self.kept)} stay: {self.why}"


def default_count() -> CountMessage:
    """Counts a message as the estimator does, without the instructions of a request: only the newest are sent."""
    estimator = TokenEstimator()
    return lambda message: estimator.estimate_turn("", "", (message,))


# Short term


def keep_within(
    messages: Sequence[Any], max_tokens: int, conditions: Sequence[str] = (), count: CountMessage | None = None
) -> KeepPlan:
    """The newest whole interactions that have at most ``max_tokens`` tokens; none if that is 0 or less.

    Messages that fail a condition are left out first. The walk ends at the first interaction that does not fit.
    Interactions with a call and its result stay together. Messages of the system are always kept, and not counted.
    """
    grouped = group(messages)
    names = cache(lambda: names_of_calls(grouped))
    filtered = Filtered(grouped, passing(conditions, names) if max_tokens > 0 else None)
    first, tokens = _walk_back(filtered, max_tokens, count or default_count())
    kept = dict(pair for number in range(first, len(grouped.groups)) for pair in filtered.group(number))
    system = system_of(grouped, (place for places, _ in grouped.groups for place in places if place not in kept))
    places = tuple(sorted({*kept, *system}))
    return KeepPlan(
        messages=tuple(kept[place] if place in kept else system[place] for place in places),
        places=places,
        tokens=tokens,
        why=_why_it_ends(first, len(grouped.groups), max_tokens),
        left_out=_left_out(first, filtered),
    )


def _walk_back(filtered: Filtered, max_tokens: int, count: CountMessage) -> tuple[int, int]:
    """The first interaction that is kept, and the tokens from there on."""
    number = best = len(filtered.grouped.groups)
    tokens = best_tokens = 0
    if max_tokens <= 0:
        return best, 0
    inside = _inside(filtered.ties(), best)
    while number:
        left = filtered.group(number - 1)
        tokens += sum(counted(count, message) for _, message in left)
        if tokens > max_tokens:
            break
        number -= 1
        if not inside[number]:
            best, best_tokens = number, tokens
    return best, best_tokens


def _inside(ties: list[tuple[int, int]], number: int) -> list[bool]:
    """For each interaction, whether a cut before it would part a call from its result."""
    changes = [0] * (number + 2)
    for call, result in ties:
        changes[call + 1] += 1
        changes[result + 1] -= 1
    return [depth > 0 for depth in accumulate(changes)]


def _why_it_ends(first: int, number: int, max_tokens: int) -> str:
    if max_tokens <= 0:
        return f"a budget of {max_tokens} includes nothing"
    if first == 0:
        return f"everything fits the budget of {max_tokens} tokens"
    if first == number:
        return f"not even the newest interaction fits the budget of {max_tokens} tokens"
    return f"with the next older interaction, the budget of {max_tokens} tokens is exceeded"


def _left_out(first: int, filtered: Filtered) -> tuple[str, ...]:
    reasons = []
    if first:
        reasons.append(f"{first} of {len(filtered.grouped.groups)} interactions are left out")
    if filtered.changed():
        reasons.append(f"{filtered.changed()} messages are left out or shortened by conditions")
    return tuple(reasons)


# Long term


class Triggers(NamedTuple):
    """When a long-term strategy runs. A number of 0 or less is off."""

    input_tokens: int
    interactions: int
    interaction_tokens: int
    conditions: Sequence[str]
    success_of: Sequence[str]
    error_of: Sequence[str]


def plan_flush(
    grouped: Grouped, triggers: Triggers, keep: int, *, count: CountMessage | None, input_tokens: int | None, since: int
) -> FlushPlan:
    """All but the last ``keep`` interactions leave if one of ``triggers`` fires.

    Interactions with a call and its result stay together. The newest interaction stays while one of its calls waits
    for its result.
    """
    fired = [*_size_triggers(grouped, triggers, count, input_tokens), *_tool_triggers(grouped, triggers, since)]
    cut = _cut(grouped, keep) if fired else 0
    old = tuple(place for places, _ in grouped.groups[:cut] for place in places)
    kept = tuple(place for places, _ in grouped.groups[cut:] for place in places)
    why = "; ".join(fired) or "no trigger fired"
    if fired and not old:
        why = f"{why}, but no interaction is old enough to leave"
    return FlushPlan(bool(old), why, old, kept, tuple(grouped.system), cut)


def _size_triggers(
    grouped: Grouped, triggers: Triggers, count: CountMessage | None, input_tokens: int | None
) -> list[str]:
    fired = []
    if 0 < triggers.input_tokens < (input_tokens or 0):
        fired.append(f"the last prompt had {input_tokens} tokens, more than {triggers.input_tokens}")
    if triggers.interactions > 0 or triggers.interaction_tokens > 0:
        number, tokens = _sizes(grouped, triggers, count)
        if 0 < triggers.interactions <= number:
            fired.append(f"{number} interactions, at least {triggers.interactions}")
        if 0 < triggers.interaction_tokens <= tokens:
            fired.append(f"{tokens} tokens, at least {triggers.interaction_tokens}")
    return fired


def _sizes(grouped: Grouped, triggers: Triggers, count: CountMessage | None) -> tuple[int, int]:
    """The interactions that count, and the tokens of their messages that pass the conditions."""
    passes = passing(triggers.conditions, cache(lambda: names_of_calls(grouped)))
    count = (count or default_count()) if triggers.interaction_tokens > 0 else (lambda _: 0)
    number = tokens = 0
    for places, _ in grouped.groups:
        messages = [grouped.messages[place] for place in places]
        passing_ones = messages if passes is None else list(filter(passes, messages))
        number += bool(passing_ones)
        tokens += sum(counted(count, message) for message in passing_ones)
    return number, tokens


def _tool_triggers(grouped: Grouped, triggers: Triggers, since: int) -> list[str]:
    if not (triggers.success_of or triggers.error_of):
        return []
    results = [
        result_of(part, call_id)
        for part, call_id, is_call in tool_parts(map(as_dict, grouped.messages[since:]))
        if not is_call and get(part, "outcome") != "interrupted"  # pydantic-ai's word for: there was no result
    ]
    names = names_of_calls(grouped) if any(result.name is None for result in results) else {}
    used = {(result.name or names.get(result.id or ""), result.is_error) for result in results}
    wanted = [*((name, False) for name in triggers.success_of), *((name, True) for name in triggers.error_of)]
    return [
        f"the tool {name!r} {'failed' if is_error else 'succeeded'}"
        for name, is_error in wanted
        if (name, is_error) in used
    ]


def _cut(grouped: Grouped, keep: int) -> int:
    """How many interactions leave: all but the last ``keep``, and fewer if a call would be parted from its result."""
    cut = max(0, len(grouped.groups) - keep)
    if cut == len(grouped.groups) and cut and _waits(grouped):
        cut -= 1
    inside = _inside(grouped.ties(), len(grouped.groups))
    while cut and inside[cut]:
        cut -= 1
    return cut


def _waits(grouped: Grouped) -> bool:
    """Whether a call of the newest interaction has no result yet."""
    start = grouped.groups[-1].places[0]
    return any(len(use.at) == 1 and use.at[0][0] >= start for use in reversed(grouped.uses))
