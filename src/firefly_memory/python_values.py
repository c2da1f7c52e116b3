"""Python values that JSON does not have: what the codec makes of them, and which it refuses."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError


class RefusedError(Exception):
    """Carries the path of an offender outwards while the recursion unwinds."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path: list[str] = []


def normalised(value: Any) -> Any:
    """A value of a type that JSON does not have, one step closer to one that it has."""
    if isinstance(value, Enum):
        return value.value
    for kind, normalise in _NORMALISED:
        if isinstance(value, kind):
            return normalise(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise RefusedError(f"values of type {type_name(value)} cannot be stored; convert it to a JSON value first")


def normalised_key(key: Any) -> str:
    """The text that stands for a key of an object."""
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, int) or (isinstance(key, float) and isfinite(key)):
        try:
            return json.dumps(key)
        except ValueError as exc:  # Python does not print integers of more than 4,300 digits
            raise RefusedError(f"a key cannot be written as text ({exc})") from exc
    if isinstance(key, (date, time, UUID, Decimal, PurePath)):
        return str(normalised(key))
    raise RefusedError(f"keys of type {type_name(key)} cannot be stored; use text")


def type_name(value: Any) -> str:
    """The type of a value, as messages name it."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _dumped(model: BaseModel) -> Any:
    try:
        return model.model_dump(mode="json")
    except PydanticSerializationError as exc:
        raise RefusedError(f"the model {type_name(model)} cannot be written as JSON ({exc})") from exc


# First match wins: datetime is a date, and the subclasses of JSON's own types come last.
_NORMALISED: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((datetime, date, time), lambda value: value.isoformat()),
    (timedelta, lambda value: value.total_seconds()),
    ((UUID, Decimal, PurePath), str),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(value).decode("ascii")),
    (BaseModel, _dumped),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (Mapping, dict),
    ((list, tuple, deque), list),
)
