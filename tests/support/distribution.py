"""What Citus refuses to run on distributed tables, found in the Core constructs of statements.

The rules are those of its documentation and of the errors that Citus 13 gave. A table is distributed by one column, and
a value of that column is on one node. Nothing here asks Citus: the suite has no such cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import ARRAY, BindParameter, Case, Cast, Column, Delete, Insert, Select, Table, Text, Update
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BooleanClauseList, ColumnClause
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import CTE, Alias, Join
from sqlalchemy.sql.sqltypes import Date, DateTime, Interval, Time

_SYNTAX = {"array", "coalesce"}
_VOLATILE = {"clock_timestamp", "gen_random_uuid", "random", "set_config", "statement_timestamp", "timeofday"}

Keys = Mapping[str, str]
"""The distribution column of each distributed table."""


def refusals(statement: Any, keys: Keys) -> list[str]:
    """Why Citus would refuse a statement; nothing if it would run."""
    return sorted(set(_refusals(statement, keys)))


def _refusals(statement: Any, keys: Keys) -> Iterator[str]:
    nodes = list(visitors.iterate(statement))
    if any(isinstance(node, ColumnClause) and node.is_literal and node.name == "ctid" for node in nodes):
        yield "an address of a row, which says nothing on several nodes"
    for node in nodes:
        if isinstance(node, Insert):
            yield from _of_insert(node, keys)
        elif isinstance(node, (Update, Delete)):
            yield from _of_change(node, keys)
        elif isinstance(node, Select) and node._for_update_arg is not None and not _on_one_node(node, keys):
            yield "FOR UPDATE on several nodes"
        if isinstance(node, CTE):
            yield from _of_cte(node, keys)
    yield from _of_tables(nodes, keys)


def _of_insert(insert: Insert, keys: Keys) -> Iterator[str]:
    clause: Any = insert._post_values_clause
    changed: Mapping[Any, Any] = getattr(clause, "update_values_to_set", {})
    for value in changed.values():
        yield from (f"{what} in DO UPDATE SET" for what in _mutable(value))
    condition = getattr(clause, "update_whereclause", None)
    if condition is not None:
        yield from (f"{what} in the WHERE of ON CONFLICT" for what in _mutable(condition))
    yield from _of_written(insert, changed, keys)


def _of_change(change: Update | Delete, keys: Keys) -> Iterator[str]:
    changed: Mapping[Any, Any] = getattr(change, "_values", None) or {}
    for part in (*changed.values(), *change._where_criteria):
        for node in visitors.iterate(part):
            if isinstance(node, Case) or _is_called(node, "coalesce"):
                yield from (f"{what} in CASE or COALESCE of UPDATE or DELETE" for what in _mutable(node))
            if any(True for _ in _mutable_itself(node)) and any(isinstance(each, Column) for each in _below(node)):
                yield f"{next(_mutable_itself(node))} of a column in UPDATE or DELETE"
            if isinstance(node, FunctionElement) and node.name in _VOLATILE:
                yield f"{node.name}() in UPDATE or DELETE"
    yield from _of_written(change, changed, keys)


def _of_written(write: Any, changed: Mapping[Any, Any], keys: Keys) -> Iterator[str]:
    key = keys.get(write.table.name)
    if key in {getattr(column, "name", column) for column in changed}:
        yield f"a change of the distribution column {key}"
    for column in write._returning:
        yield from (f"{what} in RETURNING" for what in _mutable(column))


def _of_cte(cte: CTE, keys: Keys) -> Iterator[str]:
    element: Any = cte.element
    if cte.recursive:
        parts = [each for each in visitors.iterate(element) if isinstance(each, Select)]
        if not all(_on_one_node(each, keys) for each in parts):
            yield "a recursive CTE without a filter on the distribution column"
    if isinstance(element, (Insert, Update, Delete)) and not _on_one_node(element, keys):
        yield "a CTE that writes to several nodes"


def _of_tables(nodes: Iterable[Any], keys: Keys) -> Iterator[str]:
    """Tables that are read or written together have to be tied by their distribution columns, or be on one node."""
    parts = [node for node in nodes if isinstance(node, (Select, Insert, Update, Delete))]
    used = {id(each): each for part in parts for each in _distributed(part, keys)}
    if len(used) < 2:
        return
    tied = {each for part in parts for each in _tied(part, keys)}
    for part in parts:
        inserted = {id(part.table)} if isinstance(part, Insert) and _on_one_node(part, keys) else set()
        tied |= inserted
    for identity in used.keys() - tied:
        yield f"{_name(used[identity])} is used with another table, and not by its distribution column"


def _distributed(part: Any, keys: Keys) -> Iterator[Any]:
    """The distributed tables, or aliases of them, that a part of a statement reads or writes."""
    sources = part.get_final_froms() if isinstance(part, Select) else [part.table]
    for source in sources:
        for each in visitors.iterate(source) if _is_join(source) else [source]:
            if isinstance(each, (Table, Alias)) and _name(each) in keys:
                yield each


def _is_join(source: Any) -> bool:
    return isinstance(source, Join)


def _name(table: Any) -> str:
    named: Any = table.element if isinstance(table, Alias) else table
    return str(named.name)


def _conditions(part: Any) -> list[Any]:
    """What has to hold for every row of a part: its conditions, those of its joins among them."""
    found = list(getattr(part, "_where_criteria", ()))
    if isinstance(part, Select):
        joins: list[Any] = [each for each in part.get_final_froms() if _is_join(each)]
        found += [each.onclause for each in joins]
    while any(_is_and(each) for each in found):
        found = [inner for each in found for inner in (each.clauses if _is_and(each) else [each])]
    return found


def _is_and(condition: Any) -> bool:
    return isinstance(condition, BooleanClauseList) and condition.operator is operators.and_


def _equal(part: Any) -> Iterator[tuple[Any, Any]]:
    for condition in _conditions(part):
        if getattr(condition, "operator", None) is operators.eq:
            yield condition.left, condition.right
            yield condition.right, condition.left


def _is_key(column: Any, keys: Keys) -> bool:
    table = getattr(column, "table", None)
    return isinstance(table, (Table, Alias)) and keys.get(_name(table)) == column.name


def _tied(part: Any, keys: Keys) -> Iterator[int]:
    for column, other in _equal(part):
        if _is_key(column, keys) and (isinstance(other, BindParameter) or _is_key(other, keys)):
            yield id(column.table)


def _on_one_node(part: Any, keys: Keys) -> bool:
    """Whether the part names one value of a distribution column."""
    if isinstance(part, Insert):
        key = keys.get(part.table.name)
        return key is None or isinstance(_inserted(part, key), BindParameter)
    if not any(True for _ in _distributed(part, keys)):
        return True
    return any(_is_key(column, keys) and isinstance(other, BindParameter) for column, other in _equal(part))


def _inserted(insert: Insert, key: str) -> Any:
    if insert.select is None:
        return {getattr(column, "name", column): value for column, value in (insert._values or {}).items()}.get(key)
    position = list(insert._select_names or ()).index(key)
    return list(insert.select.selected_columns)[position]


def _mutable(expression: Any) -> Iterator[str]:
    """What in an expression may not be IMMUTABLE: every function counts, until a statement needs one that is."""
    for node in visitors.iterate(expression):
        yield from _mutable_itself(node)


def _mutable_itself(node: Any) -> Iterator[str]:
    if isinstance(node, Cast) and not _is_constant(node.clause) and _depends_on_settings(node):
        yield f"a cast of {_word(node.clause.type)} to {_word(node.type)}"
    if isinstance(node, FunctionElement) and node.name not in _SYNTAX:
        yield f"{node.name}()"


def _depends_on_settings(cast: Any) -> bool:
    """Texts are read and written by the session's style and zone; arrays of texts as well, says PostgreSQL."""
    before, after = cast.clause.type, cast.type
    instants = (Date, DateTime, Interval, Time)
    return isinstance(after, ARRAY) != isinstance(before, ARRAY) or (
        isinstance(before, instants) != isinstance(after, instants)
    )


def _is_constant(node: Any) -> bool:
    """A quoted constant, which PostgreSQL reads once."""
    return isinstance(node, ColumnClause) and node.is_literal and re.fullmatch(r"'[^a-z]*'", node.name) is not None


def _word(of: Any) -> str:
    return "text" if isinstance(of, Text) else type(of).__name__.lower()


def _is_called(node: Any, name: str) -> bool:
    return isinstance(node, FunctionElement) and node.name == name


def _below(node: Any) -> Iterator[Any]:
    for child in node.get_children():
        yield from visitors.iterate(child)
