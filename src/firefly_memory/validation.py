"""Checks that several constructors share."""

from __future__ import annotations

from importlib.util import find_spec
from sys import float_info
from typing import Any, Literal, NamedTuple

from firefly_memory.errors import ConfigurationError, MissingDependencyError
from firefly_memory.reprs import shown

Pooler = Literal["transaction", "session"]
"""How a pooler shares the server's connections."""


def seconds(name: str, value: Any) -> float:
    """``value`` as a time-out: a finite number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= float_info.max:
        raise ConfigurationError(f"{name} must be a number of seconds above 0, not {shown(value)}")
    return float(value)


def at_least(minimum: int, name: str, value: Any) -> int:
    """``value`` as a whole number from ``minimum`` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ConfigurationError(f"{name} must be a whole number from {minimum} up, not {shown(value)}")
    return value


class Modes(NamedTuple):
    """The rights on files and directories that a store makes. Those that are there keep theirs."""

    file: int = 0o600
    directory: int = 0o700


ONLY_MINE = Modes()
"""The rights of a new store: nobody else on the machine can read it, or hold its locks."""


def modes(file_mode: Any, directory_mode: Any) -> Modes:
    """Both as numbers such as ``0o660``; the owner needs his rights."""
    return Modes(_mode("file_mode", file_mode, 0o600, 0o777), _mode("directory_mode", directory_mode, 0o700, 0o7777))


def _mode(name: str, value: Any, needed: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most or value & needed != needed:
        given = f"0o{value:o}" if isinstance(value, int) and value >= 0 else shown(value)
        rights = "read and write" if needed == ONLY_MINE.file else "read, write and search"
        such = f"0o{needed:o}, with at least {rights} for the owner"
        raise ConfigurationError(f"{name} must be a mode such as {such}, not {given}")
    return value


_MODULES = {"pydantic-ai-slim": "pydantic_ai"}
"""What is imported of a package that is called otherwise."""


def is_installed(package: str) -> bool:
    """Whether ``package`` can be imported; it is not loaded to find out."""
    try:
        return find_spec(package) is not None
    except ValueError:  # what sys.modules has under that name is not a module that was found
        return False


def require_extra(feature: str, package: str, extra: str) -> None:
    """``MissingDependencyError`` if ``feature`` needs a package that is not installed: ``extra`` brings it."""
    if not is_installed(_MODULES.get(package, package)):
        raise MissingDependencyError(feature, package, extra)


def exactly_one(store: str, **given: Any) -> None:
    """Of two arguments that exclude each other, one has to be there."""
    first, second = given
    if (given[first] is None) == (given[second] is None):
        raise ConfigurationError(f"{store} needs either {first} or {second}")
