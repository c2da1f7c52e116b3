"""Checks that several constructors share."""

from __future__ import annotations

from importlib.util import find_spec
from sys import float_info
from typing import Any, Literal

from firefly_memory.errors import ConfigurationError

Pooler = Literal["transaction", "session"]
"""How a pooler shares the server's connections."""


def seconds(name: str, value: Any) -> float:
    """``value`` as a time-out: a finite number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= float_info.max:
        raise ConfigurationError(f"{name} must be a number of seconds above 0, not {value!r}")
    return float(value)


def at_least(minimum: int, name: str, value: Any) -> int:
    """``value`` as a whole number from ``minimum`` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ConfigurationError(f"{name} must be a whole number from {minimum} up, not {value!r}")
    return value


def is_installed(package: str) -> bool:
    """Whether ``package`` can be imported; it is not loaded to find out."""
    try:
        return find_spec(package) is not None
    except ValueError:  # what sys.modules has under that name is not a module that was found
        return False


def exactly_one(store: str, **given: Any) -> None:
    """Of two arguments that exclude each other, one has to be there."""
    first, second = given
    if (given[first] is None) == (given[second] is None):
        raise ConfigurationError(f"{store} needs either {first} or {second}")
