"""Each check of arguments and values once. Arguments raise ``ConfigurationError``, values ``InvalidEntryError``."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from sys import float_info
from typing import Any, Literal, NamedTuple

from firefly_memory.errors import ConfigurationError, InvalidEntryError, MissingDependencyError
from firefly_memory.reprs import shown

Pooler = Literal["transaction", "session"]
"""How a pooler shares the server's connections."""


def seconds(name: str, value: Any) -> float:
    """``value`` as a time-out: a finite number of seconds above 0."""
    return above_zero(name, value, "a number of seconds")


def above_zero(name: str, value: Any, kind: str = "a number") -> float:
    """``value`` as a finite number above 0."""
    if not _is_number(value) or not 0 < value <= float_info.max:
        raise ConfigurationError(f"{name} must be {kind} above 0, not {shown(value)}")
    return float(value)


def duration(name: str, value: Any) -> timedelta:
    """``value`` as a length of time above 0: a ``timedelta``, seconds, or text such as ``90d``, ``12h`` or ``30m``."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    length: timedelta | None = value if isinstance(value, timedelta) else None
    with suppress(OverflowError, ValueError):  # longer than any timedelta, or no number
        if found is not None:
            length = timedelta(**{_UNITS[found["unit"]]: int(found["number"])})
        elif _is_number(value):
            length = timedelta(seconds=value)
    if length is None or length <= timedelta():
        such = "a length of time above 0, such as 90d, 12h, 30m, a number of seconds or a timedelta"
        raise ConfigurationError(f"{name} must be {such}, not {shown(value)}")
    return length


_DURATION = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[dhms])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def at_least(minimum: int, name: str, value: Any) -> int:
    """An argument as a whole number from ``minimum`` up."""
    if not is_whole_number(value, minimum):
        raise ConfigurationError(f"{name} must be a whole number from {minimum} up, not {shown(value)}")
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """An argument as one of the two."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, not {shown(value)}")
    return value


def checked_whole_number(what: str, value: Any, minimum: int = 0) -> int:
    """A value that is to be stored or searched for, as a whole number from ``minimum`` up."""
    if not is_whole_number(value, minimum):
        raise InvalidEntryError(what, f"must be a whole number from {minimum} up, not {shown(value)}")
    return int(value)


def checked_number(what: str, value: Any) -> int | float:
    """Such a value as a number."""
    if not _is_number(value):
        raise InvalidEntryError(what, f"must be a number, not {type(value).__name__}")
    found: int | float = value
    return found


def checked_text(what: str, value: Any) -> str:
    """Such a value as text."""
    if not isinstance(value, str):
        raise InvalidEntryError(what, f"must be text, not {type(value).__name__}")
    return value


def checked_mapping(what: str, value: Any) -> dict[str, Any]:
    """Such a value as a dict."""
    if not isinstance(value, dict):
        raise InvalidEntryError(what, f"must be a dict, not {type(value).__name__}")
    return value


def is_whole_number(value: Any, minimum: int) -> bool:
    """Whether ``value`` is a whole number from ``minimum`` up; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class FileModes(NamedTuple):
    """The rights on files and directories that a store makes. Those that are there keep theirs."""

    file: int = 0o600
    directory: int = 0o700


ONLY_MINE = FileModes()
"""The rights of a new store: nobody else on the machine can read it, or hold its locks."""


def file_modes(file_mode: Any, directory_mode: Any) -> FileModes:
    """The modes, after a check: integers such as ``0o660`` that leave the owner every right."""
    return FileModes(
        _mode("file_mode", file_mode, 0o600, 0o777), _mode("directory_mode", directory_mode, 0o700, 0o7777)
    )


def _mode(name: str, value: Any, needed: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most or value & needed != needed:
        given = f"0o{value:o}" if isinstance(value, int) and value >= 0 else shown(value)
        rights = "read and write" if needed == ONLY_MINE.file else "read, write and search"
        such = f"0o{needed:o}, with at least {rights} for the owner"
        raise ConfigurationError(f"{name} must be a mode such as {such}, not {given}")
    return value


def is_installed(package: str) -> bool:
    """Whether ``package`` can be imported; it is not loaded to find out."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # it is there, and somebody keeps it from being loaded
        return False


def require_extra(feature: str, package: str, extra: str, *others: str) -> None:
    """``MissingDependencyError`` unless ``package``, which ``extra`` brings, or one of ``others`` is installed."""
    if not any(map(is_installed, (package, *others))):
        raise MissingDependencyError(feature, package, extra)


@dataclass(frozen=True, slots=True)
class ImportingExtra:
    """``MissingDependencyError`` for what cannot be imported inside the block. One object may be used many times."""

    feature: str
    package: str
    extra: str

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ImportError):
            raise MissingDependencyError(self.feature, self.package, self.extra) from error


def exactly_one(store: str, **given: Any) -> None:
    """Of two arguments that exclude each other, one has to be there."""
    first, second = given
    if (given[first] is None) == (given[second] is None):
        raise ConfigurationError(f"{store} needs either {first} or {second}")
