"""The changes: each makes the code of one place wrong in a way that a test should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Change:
    """The text from ``start`` to ``end``, offsets in bytes of the source, becomes ``text``."""

    line: int
    start: int
    end: int
    before: str
    text: str

    def applied_to(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{_one_line(self.before)}  ->  {_one_line(self.text)}"


def changes_of(source: bytes) -> list[Change]:
    """All changes of a module, in the order of the lines."""
    text = source.decode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Change] = []
    for node, new in _replacements(ast.parse(text)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        text_there = source[start:end].decode()
        found.append(Change(node.lineno, start, end, text_there, f"({new})" if _is_inner(node) else new))
    return sorted(found, key=lambda change: (change.start, change.end, change.text))


Replaceable = ast.expr | ast.stmt


def _replacements(tree: ast.AST) -> Iterator[tuple[Replaceable, str]]:
    """Nodes, and the code to have in their stead. What only types look at is left alone."""
    for node in _executed(tree):
        yield from _of_operator(node)
        yield from _of_statement(node)


def _of_operator(node: ast.AST) -> Iterator[tuple[Replaceable, str]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            yield node, ast.unparse(ast.Compare(left, [_COMPARISONS[type(op)]()], [right]))
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, ast.unparse(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and not _has_text(node):
            yield node, ast.unparse(ast.BinOp(left, _OPERATORS[type(op)](), right))
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(number)):
            yield node, str(number + 1)


def _of_statement(node: ast.AST) -> Iterator[tuple[Replaceable, str]]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):  # which change by their operator
                yield test, f"not ({ast.unparse(test)})"
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield node, "return None"
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield node, "pass"


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``node``, without annotations, decorators, f-strings and blocks for type checkers."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr) or _is_for_types(child):
                continue
            yield child
            yield from _executed(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _has_text(node: ast.BinOp) -> bool:
    """Whether a part is text or a list: other operators would end the program on every path."""
    parts = (node.left, node.right)
    return any(isinstance(each, ast.JoinedStr | ast.List | ast.Tuple) for each in parts) or any(
        isinstance(each, ast.Constant) and not isinstance(each.value, int | float) for each in parts
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_inner(node: Replaceable) -> bool:
    return isinstance(node, ast.expr) and not isinstance(node, ast.Constant)


def _one_line(code: str) -> str:
    return " ".join(code.split())[:100]
