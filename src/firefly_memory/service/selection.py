"""Selections: which rows are asked for, by the fields that a resource declares."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firefly_memory.clock import instant_of
from firefly_memory.entries.entry import in_utc
from firefly_memory.errors import InvalidEntryError
from firefly_memory.looking import Field, Resource, Row, Type
from firefly_memory.reprs import shown

_ASKED = re.compile(r"(?P<name>\w+)(?P<operator>~|>=|<)?", re.ASCII)

OPERATORS = {"": "is", "~": "contains", ">=": "is at least", "<": "is less than"}
"""What may follow the name of a field, and what it means."""

_OPERATORS_OF = {
    Type.TEXT: ("", "~"),
    Type.NUMBER: ("", ">=", "<"),
    Type.INSTANT: ("", ">=", "<"),
    Type.JSON: ("~",),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """What one field has to be."""

    field: Field
    operator: str
    value: Any

    def holds(self, row: Row) -> bool:
        """Whether the row is wanted."""
        value = row[self.field.name]
        if value is None or self.value is None:
            return self.operator == "" and value is self.value
        if self.operator == "~":
            text = value if self.field.type is Type.TEXT else json.dumps(value, ensure_ascii=False)
            return str(self.value).casefold() in text.casefold()
        value = instant_of(value) if self.field.type is Type.INSTANT else value
        compare: Callable[[Any, Any], bool] = _COMPARE[self.operator]
        return compare(value, self.value)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "": lambda value, wanted: bool(value == wanted),
    ">=": lambda value, wanted: bool(value >= wanted),
    "<": lambda value, wanted: bool(value < wanted),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that somebody wants."""

    indexed: Mapping[str, Any]
    """Values of fields: the store finds the rows by them."""
    conditions: tuple[Condition, ...]
    """What has to hold as well: it is looked at when a row was read."""

    def holds(self, row: Row) -> bool:
        return all(condition.holds(row) for condition in self.conditions)


def selection(resource: Resource, where: Mapping[str, Any]) -> Selection:
    """``where``, checked; ``InvalidEntryError`` names what is wrong with it."""
    if not isinstance(where, Mapping):
        raise InvalidEntryError("where", f"must be a mapping of fields to values, not {type(where).__name__}")
    conditions = [_condition(resource, asked, value) for asked, value in where.items()]
    exact = {each.field.name: each.value for each in conditions if each.operator == "" and each.value is not None}
    best = next((names for names in resource.indexed if exact.keys() >= set(names)), ())
    served = {name: exact[name] for name in best}
    rest = tuple(each for each in conditions if each.operator or each.field.name not in served)
    return Selection(served, rest)


def _condition(resource: Resource, asked: str, value: Any) -> Condition:
    found = _ASKED.fullmatch(asked) if isinstance(asked, str) else None
    field = None if found is None else resource.field(found["name"])
    if found is None or field is None or not field.is_filter:
        names = ", ".join(each.name for each in resource.fields if each.is_filter)
        raise InvalidEntryError("where", f"{resource.kind} cannot be selected by {shown(asked)}; there are {names}")
    operator = found["operator"] or ""
    if operator not in _OPERATORS_OF[field.type]:
        ways = " or ".join(f"{field.name}{each}" for each in _OPERATORS_OF[field.type])
        raise InvalidEntryError("where", f"{field.name} is {field.type.value}; ask for {ways}, not {shown(asked)}")
    return Condition(field, operator, _value(field, operator, value))


def _value(field: Field, operator: str, value: Any) -> Any:
    try:
        if value is None and operator == "":
            return None
        if field.type is Type.NUMBER:
            return _number(value)
        if field.type is Type.INSTANT:
            return _instant(value)
    except ValueError as exc:
        raise InvalidEntryError(f"where[{field.name!r}]", str(exc)) from exc
    if not isinstance(value, str):
        raise InvalidEntryError(f"where[{field.name!r}]", f"must be text, not {type(value).__name__}")
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        return int(value) if re.fullmatch(r"-?\d{1,18}", value, re.ASCII) else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"must be a number, not {shown(value)}") from None


def _instant(value: Any) -> datetime:
    try:
        moment = instant_of(value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            return in_utc(moment)
    except ValueError:
        pass
    raise ValueError(f"must be an instant with a time zone, such as 2026-05-17T00:00:00+00:00, not {shown(value)}")
