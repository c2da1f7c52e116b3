"""The plans of the strategies, applied to stored turns: what :mod:`firefly_memory.conversations.policy` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from firefly_memory.conversations.policy import Live, Sizes
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.messages.interactions import CountMessage, is_system
from firefly_memory.strategies.planning import FlushPlan, KeepPlan, Triggers
from firefly_memory.tokens.estimator import TokenEstimator

_ROLES = ("user", "assistant")


class Messages(NamedTuple):
    """The messages of turns, one after the other."""

    messages: list[Any]
    of_turn: list[int]
    """For each message, the place of its turn."""

    def first_of(self, place: int) -> int:
        """The index of the first message of a turn, or of the turns after it."""
        return next((index for index, turn in enumerate(self.of_turn) if turn >= place), len(self.messages))


def messages_of(turns: Sequence[ConversationTurn]) -> Messages:
    """The messages of ``turns``. The texts of a turn without messages are messages as well."""
    found = Messages([], [])
    for place, turn in enumerate(turns):
        for message in turn.raw_messages or _texts(turn):
            found.messages.append(message)
            found.of_turn.append(place)
    return found


def _texts(turn: ConversationTurn) -> list[dict[str, str]]:
    texts = zip(_ROLES, (turn.user_prompt, turn.assistant_response), strict=True)
    return [{"role": role, "content": text} for role, text in texts if text]


def count_as_stored(
    turns: Sequence[ConversationTurn], given: Messages, estimator: TokenEstimator, *, each: bool
) -> CountMessage:
    """Counts messages as they were counted when their turns were stored.

    The last message of a turn that belongs to an interaction has the estimate of the whole turn: a plan that keeps the
    end of a turn has counted all of it. With ``each``, for conditions on messages, the estimate is divided among the
    messages by what each is estimated at now, which takes longer.
    """
    tokens: dict[int, int] = {}
    left = [turn.token_estimate for turn in turns]
    counted = [not is_system(message) for message in given.messages]
    last = {place: number for number, place in enumerate(given.of_turn) if counted[number]}
    for number, (message, place) in enumerate(zip(given.messages, given.of_turn, strict=True)):
        part = left[place]
        if number != last.get(place):
            part = min(part, estimator.estimate_turn("", "", (message,))) if each else 0
        tokens[id(message)] = max(part, tokens.get(id(message), 0))  # an object such as "" may be in several turns
        left[place] -= part

    def count(message: Any) -> int:
        known = tokens.get(id(message))  # a copy without some of its tool calls is a message of its own
        return estimator.estimate_turn("", "", (message,)) if known is None else known

    return count


def may_be_due(triggers: Triggers, sizes: Sizes) -> bool:
    """Whether a trigger may fire. Conditions only lower what counts, so without enough turns nothing has to be read."""
    if triggers.success_of or triggers.error_of:
        return True
    if triggers.input_tokens > 0 and (sizes.input_tokens is None or sizes.input_tokens > triggers.input_tokens):
        return True
    return 0 < triggers.interactions <= sizes.turns or 0 < triggers.interaction_tokens <= sizes.tokens


class Planning(NamedTuple):
    """The arguments of a long-term plan for the turns of a window."""

    given: Messages
    count: CountMessage
    input_tokens: int
    since: int


def planning_of(live: Live, *, with_conditions: bool) -> Planning:
    """What a strategy plans with."""
    turns = live.turns
    given = messages_of(turns)
    after = next((place for place, turn in enumerate(turns) if turn.turn_id >= live.since), len(turns))
    newest = turns[-1].input_tokens if turns and live.are_all else None
    count = count_as_stored(turns, given, live.estimator, each=with_conditions)
    return Planning(given, count, newest or 0, given.first_of(after))


def turns_that_leave(plan: FlushPlan, given: Messages, turns: Sequence[ConversationTurn]) -> int:
    """How many of the oldest turns leave: all before the turn with the oldest message that stays."""
    if not plan.is_due:
        return 0
    return min((given.of_turn[place] for place in plan.kept), default=len(turns))


def kept_turns(
    plan: KeepPlan, given: Messages, turns: Sequence[ConversationTurn], estimator: TokenEstimator
) -> list[ConversationTurn]:
    """The turns with the messages that a plan keeps, without turns that have none left."""
    kept: dict[int, list[Any]] = {}
    changed: set[int] = set()
    for place, message in zip(plan.places, plan.messages, strict=True):
        number = given.of_turn[place]
        kept.setdefault(number, []).append(message)
        if message is not given.messages[place]:
            changed.add(number)
    found = []
    for number, turn in enumerate(turns):
        own, before = kept.get(number, []), turn.raw_messages or _texts(turn)
        if own and len(own) == len(before) and number not in changed:
            found.append(turn)
        elif own:
            found.append(_shortened(turn, own, estimator))
    return found


def _shortened(turn: ConversationTurn, messages: list[Any], estimator: TokenEstimator) -> ConversationTurn:
    """The turn with these of its messages, or copies of them."""
    if turn.raw_messages:
        tokens = estimator.estimate_turn(turn.user_prompt, turn.assistant_response, messages)
        return replace(turn, raw_messages=messages, token_estimate=min(tokens, turn.token_estimate))
    texts = {message["role"]: message["content"] for message in messages}
    prompt, response = (texts.get(role, "") for role in _ROLES)
    tokens = min(estimator.estimate_turn(prompt, response, ()), turn.token_estimate)
    return replace(turn, user_prompt=prompt, assistant_response=response, token_estimate=tokens)
