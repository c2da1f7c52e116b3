"""Conditions: expressions over one message, such as ``message.role != 'tool'``, evaluated by simpleeval.

A condition comes from a configuration, and may be hostile. Its form is checked when the configuration is loaded. It
may have comparisons, ``and``, ``or``, ``not``, arithmetic, literals, subscripts, the fields of ``message``, and a few
functions and methods of text. Nothing in it may grow: no powers, no formatting, no comprehensions, no repeated text.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from firefly_memory.errors import ConditionError
from firefly_memory.strategies.message_view import FIELDS, MessageView, ToolNames
from firefly_memory.validation import ImportingExtra

if TYPE_CHECKING:
    from simpleeval import EvalWithCompoundTypes

_EVALUATING = ImportingExtra("a condition of a memory strategy", "simpleeval", "strategies")

_LONGEST = 4_000
"""The most characters of a condition."""

_DEEPEST = 40
"""The most levels of a condition's syntax tree."""

_METHODS = {"startswith", "endswith", "lower", "upper", "casefold", "strip", "get"}
"""The methods that may be called: those of text whose results are not longer, and ``get`` of a dict."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (int, float, str, list, tuple, dict, set)},
    "len": len,
}

_MOMENT = {"year", "month", "day", "hour", "minute", "second"}

_OPERATORS = (
    *(ast.And, ast.Or, ast.Not, ast.UAdd, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot),
)

_ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Name, ast.Load, ast.Constant),
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Call),
    *_OPERATORS,
)

Passes = Callable[[Any], bool]
"""Says whether a message passes all conditions."""


def checked(expression: str) -> str:
    """``expression``, if it is a condition; otherwise ``ValueError`` with a sentence that says what is wrong."""
    _parsed(expression)
    return expression


Condition = Annotated[str, AfterValidator(checked)]
"""An expression over ``message``. Its syntax is checked when the configuration is loaded."""


def passing(expressions: Sequence[str], tool_names: ToolNames = dict) -> Passes | None:
    """The function that says whether a message passes all of ``expressions``; ``None`` if there are none.

    It raises a ``ConditionError`` if an expression cannot be evaluated for a message.
    """
    if not expressions:
        return None
    trees = [(expression, _parsed(expression)) for expression in expressions]
    evaluator = _evaluator()

    def passes(message: Any) -> bool:
        evaluator.names = {"message": MessageView(message, tool_names)}
        return all(_truth(evaluator, expression, tree) for expression, tree in trees)

    return passes


def _truth(evaluator: EvalWithCompoundTypes, expression: str, tree: ast.AST) -> bool:
    try:
        return bool(evaluator.eval(expression, tree))
    except Exception as exc:
        raise ConditionError(expression, f"{type(exc).__name__}: {exc}") from exc


@lru_cache(maxsize=256)
def _parsed(expression: str) -> ast.expr:
    """The syntax tree of a condition; ``ValueError`` if it is none."""
    with _EVALUATING:
        import simpleeval  # noqa: F401 - so that a missing package is found when the configuration is loaded
    if not expression.strip():
        raise ValueError("a condition must not be empty")
    if len(expression) > _LONGEST:
        raise ValueError(f"a condition must not have more than {_LONGEST} characters; this one has {len(expression)}")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as exc:
        raise ValueError(f"the condition {_start(expression)} is not an expression: {exc.msg}") from exc
    except (ValueError, RecursionError, MemoryError) as exc:  # a null character, or too many levels
        raise ValueError(f"the condition {_start(expression)} cannot be read: {exc}") from exc
    if problem := _problem(tree):
        raise ValueError(f"the condition {_start(expression)} is refused: {problem}")
    return tree.body


def _start(expression: str) -> str:
    shown = expression[:100]
    return repr(shown if shown == expression else f"{shown}…")


def _problem(tree: ast.AST) -> str | None:
    """What a condition must not have."""
    level: list[ast.AST] = [tree]
    called: set[int] = set()
    for _ in range(_DEEPEST):
        for node in level:
            if isinstance(node, ast.Attribute) and node.attr in _METHODS and id(node) not in called:
                return f"{node.attr!r} is a method: call it, as in '{node.attr}(…)'"
            if problem := _problem_of(node):
                return problem
        called = {id(node.func) for node in level if isinstance(node, ast.Call)}
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return f"it has more than {_DEEPEST} levels" if level else None


def _problem_of(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) if name != "message" and name not in _FUNCTIONS:
            return f"{name!r} is not known; a condition knows only 'message'"
        case ast.Attribute(value=ast.Name(id="message"), attr=name) if name not in FIELDS:
            return f"a message has no {name!r}; it has: {', '.join(sorted(FIELDS))}"
        case ast.Attribute(attr=name) if name not in FIELDS | _METHODS | _MOMENT:
            return f"the attribute {name!r} may not be used"
        case ast.Call(func=ast.Name(id=name)) if name not in _FUNCTIONS:
            return f"the function {name!r} may not be called; allowed are: {', '.join(_FUNCTIONS)}"
        case ast.Call(func=ast.Attribute(attr=name)) if name not in _METHODS:
            return f"the method {name!r} may not be called; allowed are: {', '.join(sorted(_METHODS))}"
        case ast.Call(func=func) if not isinstance(func, (ast.Name, ast.Attribute)):
            return "only a function or a method may be called"
        case ast.Dict(keys=keys) if None in keys:
            return "'**' may not be used"
    if isinstance(node, (*_ALLOWED, ast.keyword)):
        return None
    return f"{type(node).__name__} may not be used"


# Evaluation


def _evaluator() -> EvalWithCompoundTypes:
    from simpleeval import EvalWithCompoundTypes

    evaluator = EvalWithCompoundTypes(operators=_operators(), functions=dict(_FUNCTIONS), allowed_attrs=_attributes())
    evaluator.functions = dict(_FUNCTIONS)
    for kind in (ast.ListComp, ast.GeneratorExp, ast.DictComp):
        evaluator.nodes.pop(kind, None)
    return evaluator


@cache
def _attributes() -> dict[type, set[str]]:
    from datetime import date, datetime

    return {MessageView: FIELDS, str: _METHODS - {"get"}, dict: {"get"}, datetime: _MOMENT, date: _MOMENT}


@cache
def _operators() -> dict[type[ast.AST], Callable[..., Any]]:
    """simpleeval's operators, the arithmetic for numbers only: nothing else may grow."""
    from simpleeval import DEFAULT_OPERATORS

    numeric = {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    }
    known = {kind: function for kind, function in DEFAULT_OPERATORS.items() if kind in _OPERATORS}
    return known | {kind: _of_numbers(function) for kind, function in numeric.items()}


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def checked(left: Any, right: Any) -> Any:
        for value in (left, right):
            if not isinstance(value, (int, float)):
                raise TypeError(f"arithmetic is for numbers, not for {type(value).__name__}")
        return function(left, right)

    return checked
