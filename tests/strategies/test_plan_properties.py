"""What is true of every plan, for any conversation."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from firefly_memory.messages.shapes import role_of
from firefly_memory.strategies import MemoryMaxTokensStrategy, NeuralyzerStrategy, interactions_of
from tests.support.shaped_messages import SHAPES, Shape, texts, unpaired

CONDITIONS = [
    "message.role != 'tool'",
    "message.role == 'user'",
    "message.role in ['assistant', 'tool']",
    "message.name != 'f'",
    "message.status != 'error'",
    "not message.tool_calls",
    "message.content and '3' not in message.content",
]


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Messages of one library: calls have one result each, in their interaction or later, or none yet."""
    shape: Shape = SHAPES[draw(st.sampled_from(list(SHAPES)))]
    messages: list[Any] = []
    waiting: list[tuple[str, str]] = []
    kinds = draw(st.lists(st.sampled_from(["user", "assistant", "calls", "tool", "tool", "system"]), max_size=25))
    for number, kind in enumerate(kinds):
        match kind:
            case "user":
                messages.append(shape.user(f"user {number}"))
            case "assistant":
                messages.append(shape.assistant(f"answer {number}"))
            case "system":
                messages.append(shape.system(f"system {number}"))
            case "calls":
                names = draw(st.lists(st.sampled_from(["f", "g"]), min_size=1, max_size=3))
                calls = [(f"call {number}.{n}", name) for n, name in enumerate(names)]
                messages.append(shape.assistant(draw(st.sampled_from([None, f"look {number}"])), calls))
                waiting += calls
            case _ if waiting:
                call_id, name = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
                messages.append(shape.tool(call_id, name, f"result {number}", is_error=draw(st.booleans())))
    return messages


def count(message: Any) -> int:
    """The length of the texts, and one for the message."""
    return 1 + sum(map(len, texts([message])))


def is_system(message: Any) -> bool:
    return role_of(message) == "system"


conditions = st.lists(st.sampled_from(CONDITIONS), max_size=2)


@given(conversations(), st.integers(-1, 200), conditions)
def test_a_short_term_plan(messages: list[Any], budget: int, expressions: list[str]) -> None:
    strategy = MemoryMaxTokensStrategy(memory_max_tokens=budget, conditions=expressions)
    before = deepcopy(messages)
    plan = strategy.plan(messages, count)
    assert messages == before, "nothing that is given changes"
    assert plan == strategy.plan(messages, count), "the plan is the same each time"

    waiting = unpaired(messages)
    assert unpaired(plan.messages) <= waiting, "no tool call is parted from its result"
    others = [message for message in plan.messages if not is_system(message)]
    assert sum(map(count, others)) == plan.tokens <= max(0, budget), "the budget is never exceeded"
    assert list(plan.places) == sorted(set(plan.places)), "the order is kept"
    assert len(plan.places) == len(plan.messages)
    assert [m for m in plan.messages if is_system(m)] == [m for m in messages if is_system(m)], "system messages stay"
    kept = dict(zip(plan.places, plan.messages, strict=True))
    for place, message in kept.items():
        assert texts([message]) == texts([messages[place]]), "each message stands for that at its place"
        assert expressions or message is messages[place]


@given(conversations(), st.integers(-1, 200))
def test_a_short_term_plan_without_conditions(messages: list[Any], budget: int) -> None:
    strategy = MemoryMaxTokensStrategy(memory_max_tokens=budget)
    once = strategy.apply(messages, count)
    assert strategy.apply(once, count) == once, "applied again it changes nothing"
    plan = strategy.plan(messages, count)
    kept = [each for each in interactions_of(messages, count) if set(each.places) <= set(plan.places)]
    others = [place for place in plan.places if not is_system(messages[place])]
    assert others == [place for each in kept for place in each.places], "interactions are kept whole"
    newest = interactions_of(messages, count)
    assert kept == newest[len(newest) - len(kept) :], "the newest ones"


@given(conversations(), st.integers(0, 5), st.integers(1, 5))
def test_a_long_term_plan(messages: list[Any], keep: int, threshold: int) -> None:
    strategy = NeuralyzerStrategy(interaction_threshold_qty=threshold, interaction_keep=keep)
    before = deepcopy(messages)
    plan = strategy.plan(messages)
    left = strategy.apply(messages)
    assert messages == before
    assert plan == strategy.plan(messages)
    assert sorted((*plan.old, *plan.kept, *plan.system)) == list(range(len(messages))), "each message has one fate"
    assert [*plan.old, *plan.kept] == sorted((*plan.old, *plan.kept)), "the oldest leave"
    assert plan.is_due == bool(plan.old)
    assert len(interactions_of(left, count)) >= min(keep, len(interactions_of(messages, count)))
    assert left == [message for place, message in enumerate(messages) if place not in plan.old]
    calls_of_old = unpaired(messages[place] for place in plan.old)
    assert calls_of_old <= unpaired(messages), "no tool call is parted from its result"
    assert strategy.apply(left) == left, "applied again it changes nothing"
