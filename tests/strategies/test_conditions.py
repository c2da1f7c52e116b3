"""Conditions: what a message shows to them, and what of them is refused."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from firefly_memory import ConditionError
from firefly_memory.strategies import MemoryMaxTokensStrategy
from firefly_memory.strategies.conditions import checked, passing
from firefly_memory.strategies.message_view import FIELDS, MessageView
from tests.support.shaped_messages import SHAPES, Shape
from tests.support.value_strategies import json_values


def is_true(expression: str, message: Any) -> bool:
    passes = passing([checked(expression)])
    assert passes is not None
    return passes(message)


def view(message: Any) -> dict[str, Any]:
    shown = MessageView(message)
    return {name: getattr(shown, name) for name in FIELDS}


NOTHING = dict.fromkeys(FIELDS)


def test_every_message_has_every_field_and_what_it_lacks_is_none(shape: Shape) -> None:
    when = getattr(shape.user("a"), "timestamp", None) or view(shape.user("a"))["timestamp"]
    common = NOTHING | {"timestamp": when}
    assert view(shape.user("hello")) == common | {"role": "user", "content": "hello"}
    assert view(shape.system("hello")) == common | {"role": "system", "content": "hello"}
    calls = view(shape.assistant("look", [("1", "f")]))
    assert (calls["role"], calls["content"]) == ("assistant", "look")
    assert [(call["id"], call["name"]) for call in calls["tool_calls"]] == [("1", "f")]
    assert view(shape.assistant(calls=[("1", "f")]))["content"] is None
    result = view(shape.tool("1", "f", "14 degrees"))
    assert {name: result[name] for name in ("role", "content", "tool_call_id", "status", "tool_calls")} == {
        "role": "tool",
        "content": "14 degrees",
        "tool_call_id": "1",
        "status": "success",
        "tool_calls": None,
    }
    assert view(shape.tool("1", "f", is_error=True))["status"] == "error"


def test_the_name_of_a_tool_is_found_by_the_id_of_the_call(shape: Shape) -> None:
    messages = [shape.user("a"), shape.assistant("b", [("1", "f")]), shape.tool("1", "f")]
    kept = MemoryMaxTokensStrategy(conditions=["message.name != 'f'"]).apply(messages)
    assert len(kept) == 2


def test_metadata_and_timestamp_are_those_of_the_message() -> None:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    for message in (
        {"role": "user", "content": "a", "metadata": {"kind": "note"}, "timestamp": when},
        ModelRequest([UserPromptPart("a")], timestamp=when, metadata={"kind": "note"}),
        ModelResponse([TextPart("a")], timestamp=when, metadata={"kind": "note"}),
    ):
        assert is_true("message.metadata['kind'] == 'note' and message.metadata.get('other') is None", message)
        assert is_true("message.timestamp.year == 2026", message)


def test_the_content_of_a_result_is_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    for content, text in ((parts, "a\nb"), ({"n": 1}, '{"n":1}'), (7, "7"), ("\ud800", "\ud800"), (None, None)):
        assert MessageView({"role": "tool", "tool_call_id": "1", "content": content}).content == text
    assert MessageView({"role": "tool", "tool_call_id": "1", "content": {"n": "\ud800"}}).content == "{'n': '\\ud800'}"


@given(json_values)
def test_any_json_value_can_be_asked(value: Any) -> None:
    assert view(value).keys() == FIELDS
    assert is_true("message.role in ['tool', 'assistant'] or True", value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("message.role != 'tool'", True),
        ("message.role in ['tool', 'assistant']", False),
        ("message.role in ('user', 'assistant') and not message.tool_calls", True),
        ("message.role in {'user': 1}", True),
        ("message.role in {'user'}", True),
        ("'hello' in message.content", False),
        ("'hello' in message.content.lower()", True),
        ("message.content.startswith('Hello') if message.content else False", True),
        ("len(message.content) * 2 + 1 == 23", True),
        ("1 < len(message.content) < 100", True),
        ("message.content[0:5] == 'Hello'", True),
        ("message.tool_call_id is None", True),
        ("message.content", True),
        ("message.name", False),
        ("0", False),
        ("[]", False),
        ("  message.role == 'user'  ", True),
        ("(message.role\n== 'user')", True),
    ],
)
def test_the_truth_value_of_an_expression_counts(expression: str, expected: bool) -> None:
    assert is_true(expression, {"role": "user", "content": "Hello there"}) is expected
    assert is_true(expression, ModelRequest([UserPromptPart("Hello there")])) is expected


REFUSED = {
    "": "must not be empty",
    "   ": "must not be empty",
    "message.role ==": "is not an expression",
    "message.role = 'tool'": "is not an expression",
    "message.role; message.role": "is not an expression",
    "import os": "is not an expression",
    "\0": "null",
    "other": "'other' is not known",
    "message.text": "a message has no 'text'; it has: content",
    "message.__class__": "a message has no '__class__'",
    "message._message": "a message has no '_message'",
    "().__class__.__bases__[0].__subclasses__()": "may not be",
    "message.content.__class__": "the attribute '__class__' may not be used",
    "message.content.format(message)": "the method 'format' may not be called",
    "message.content.ljust(10 ** 9)": "the method 'ljust' may not be called",
    "message.content.lower": "'lower' is a method: call it",
    "message.metadata.name()": "the method 'name' may not be called",
    "message.role()": "the method 'role' may not be called",
    "(lambda: 1)()": "only a function or a method may be called",
    "message.metadata['f']()": "only a function or a method may be called",
    "__import__('os').system('true')": "may not be",
    "eval('1')": "the function 'eval' may not be called",
    "rand() > 0.5": "the function 'rand' may not be called",
    "randint(5) > 1": "the function 'randint' may not be called",
    "9 ** 9 ** 9": "Pow may not be used",
    "1 << 10000": "LShift may not be used",
    "~1": "Invert may not be used",
    "f'{message.role:>999999999}'": "JoinedStr may not be used",
    "[each for each in message.content]": "ListComp may not be used",
    "len(each for each in message.content)": "GeneratorExp may not be used",
    "{each: 1 for each in message.content}": "DictComp may not be used",
    "lambda: 1": "Lambda may not be used",
    "(role := message.role)": "NamedExpr may not be used",
    "[*message.content]": "Starred may not be used",
    "{**message.metadata}": "'**' may not be used",
    "await message": "Await may not be used",
    "1" + " + 1" * 60: "it has more than 40 levels",
    "-" * 3_900 + "1": "the condition '---",
    "(" * 300 + "1" + ")" * 300: "too many nested parentheses",
    "message.role == '" + "x" * 1_000_000 + "'": "must not have more than 4000 characters; this one has 1000018",
}


@pytest.mark.parametrize(("expression", "problem"), REFUSED.items(), ids=lambda text: text[:30])
def test_a_condition_that_is_no_condition_is_refused_when_the_configuration_is_loaded(
    expression: str, problem: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        MemoryMaxTokensStrategy(conditions=["message.role", expression])
    (error,) = caught.value.errors()
    assert error["loc"] == ("conditions", 1)
    assert problem in error["msg"]
    assert len(error["msg"]) < 5_000


FAILING = {
    "message.content + '!' == '!'": "arithmetic is for numbers, not for str",
    "message.content * 1000000000 == ''": "arithmetic is for numbers",
    "[[0] * 9] * 9": "arithmetic is for numbers",
    "'%999999999d' % 1 == ''": "arithmetic is for numbers",
    "message.content < 3": "'<' not supported",
    "message.content[100] == 'x'": "out of range",
    "'x' in message.name": "NoneType",
    "message.metadata['x']": "NoneType",
    "message.role.get('x')": "not allowed",
    "message.content.year": "not allowed",
    "1 / 0": "division by zero",
    "float(9) // 0": "ZeroDivisionError",
    "int('x')": "invalid literal",
    "len(3)": "no len()",
    "'a'.startswith()": "startswith",
}


@pytest.mark.parametrize(("expression", "problem"), FAILING.items())
def test_an_error_at_evaluation_is_raised_with_the_expression_named(expression: str, problem: str) -> None:
    with pytest.raises(ConditionError) as caught:
        is_true(expression, {"role": "user", "content": "hello"})
    assert caught.value.expression == expression
    assert repr(expression) in str(caught.value)
    assert problem in str(caught.value)
    assert caught.value.__cause__ is not None


def test_metadata_that_contains_itself_is_an_error_that_names_the_expression() -> None:
    metadata: dict[str, Any] = {}
    metadata["self"] = metadata
    with pytest.raises(ConditionError, match="recursion"):
        is_true("message.metadata == 1", {"role": "user", "metadata": metadata})


def test_a_function_in_the_metadata_cannot_be_called() -> None:
    with pytest.raises(ConditionError, match="forbidden"):
        is_true("message.metadata['f']", {"role": "user", "metadata": {"f": eval}})


def test_a_condition_changes_nothing(shape: Shape) -> None:
    message = shape.assistant("a", [("1", "f")])
    before = deepcopy(message)
    is_true("message.tool_calls[0]['name'] == 'f'", message)
    assert message == before


def test_no_conditions_need_no_package() -> None:
    assert passing([]) is None
    code = "import sys; from firefly_memory.strategies import MemoryMaxTokensStrategy as S; S(); S().plan([]); print('simpleeval' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed == "False\n"


@given(st.text(max_size=200) | st.text("message.roltn()[]'\"=<>!+-*/ \n0123456789{}:", max_size=60))
def test_any_text_is_a_condition_or_refused_with_a_sentence(text: str) -> None:
    problem = None
    try:
        is_true(text, {"role": "user", "content": "hello"})
    except ConditionError as failed:
        problem = failed.expression
    except ValueError as refused:
        problem = str(refused)
    assert problem is None or problem == text or "condition" in problem


def test_parts_of_pydantic_ai_are_read_as_one_message() -> None:
    message = ModelResponse([TextPart("a"), TextPart("b"), ToolCallPart("f", {"x": 1}, "1")])
    assert is_true("message.content == 'a\\nb' and message.tool_calls[0]['arguments']['x'] == 1", message)


def test_an_expression_is_parsed_once() -> None:
    from firefly_memory.strategies.conditions import _parsed

    checked("message.role == 'somebody'")
    parsed = _parsed.cache_info().misses
    strategy = MemoryMaxTokensStrategy(conditions=["message.role == 'somebody'"])
    for _ in range(3):
        strategy.plan([SHAPES["dicts"].user("a")] * 10)
    assert _parsed.cache_info().misses == parsed
