"""Values in, documents out, and back: the only serialiser.

Every JSON value comes back equal (rule R1), also from databases that are lossy by nature: JSONB reorders keys, refuses
U+0000 and turns ``1e22`` into an integer; BSON has no integer beyond 64 bits and keeps ``$`` for itself. What a
backend would lose is written as an *escape*, an object with one key that starts with ``~``; all the rest is written
naturally, so that SQL, ``jq`` and a human can work with it. A :class:`Form` says what a backend would lose.

==================  ==========================================================================================
``{"~str": t}``     a string, with ``\\``, U+0000 and surrogates in ``t`` written as ``\\\\`` and ``\\uXXXX``
``{"~float": t}``   a float, as ``repr`` writes it
``{"~int": t}``     an integer, in hexadecimal
``{"~dict": p}``    an object whose keys cannot be written, as pairs ``[key, value]``
``{"~json": t}``    a value nested deeper than the backend allows, as JSON text
``"~order": k``     beside an object's own keys: the order they had, where the backend does not keep it
==================  ==========================================================================================

Python values that JSON does not have are normalised on the way in, the same way for every backend:

==========================================  ==================================================================
``tuple``, ``deque``                        list
``set``, ``frozenset``                      list, sorted by the JSON text of its members
``Enum``                                    its value
``datetime``, ``date``, ``time``            ISO 8601 text
``timedelta``                               seconds, a number
``UUID``, ``Decimal``, ``PurePath``         text
``bytes``, ``bytearray``, ``memoryview``    base64 text
dataclass, pydantic model                   object (a model's own ``model_dump(mode="json")``)
other mappings                              object
keys: ``int``, ``float``, ``bool``, ``None``  as JSON writes them; ``Enum``, dates, ``UUID`` as above
==========================================  ==================================================================

NaN, infinities, integers of more than 4,300 digits (Python prints no longer ones), two keys that become one, nesting
beyond :data:`MAX_DEPTH` and any other type are refused with :class:`~firefly_memory.errors.InvalidEntryError`, which
names the path of the offender.

A number beyond all floats in stored JSON text, such as ``1e999``, was written by somebody else. It is read as an
infinity, for looking for one would take as long as reading does; to store or export the value again is refused.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass
from math import copysign, isfinite
from typing import Any

from pydantic_core import from_json, to_json

from firefly_memory.errors import CorruptDataError, InvalidEntryError
from firefly_memory.python_values import RefusedError, normalised, normalised_key, type_name

MAX_DEPTH = 500
"""Levels of nesting a value may have: what Python itself can compare, copy and print with room to spare."""

_LARGEST_INTEGER = 10**4300  # Python and the JSON parser refuse decimal integers of more than 4,300 digits
_INTEGER_TEXT_LIMIT = 10**4000  # from here on in hexadecimal, whose digits nobody counts
_MOST_HEXADECIMAL = len(hex(-_LARGEST_INTEGER))
_LARGEST_PLAIN_FLOAT = 1e16  # from here on repr() writes an exponent, and JSONB makes an integer of it

_LONGEST_PATH = 200
_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels, or contains itself"

_SURROGATES = re.compile("[\ud800-\udfff]")
_SURROGATES_OR_NUL = re.compile("[\x00\ud800-\udfff]")
_TO_ESCAPE = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


class DecodeError(ValueError):
    """A stored document is not one that this codec wrote. Stores turn it into ``CorruptDataError``."""


DAMAGE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What is raised where a stored thing is read that somebody damaged: a part is missing, of another kind, or wrong."""


def damaged(operation: str, where: str, exc: Exception) -> CorruptDataError:
    """The error for what is stored at ``where``, which could not be read because of ``exc``."""
    return CorruptDataError(operation, where, f"{type(exc).__name__}: {exc}")


@dataclass(frozen=True)
class Form:
    """How one kind of backend takes a value, and what it would lose if it were not escaped."""

    keeps_key_order: bool = True
    keeps_nul: bool = True
    keeps_every_float: bool = True
    integer_limit: int = _INTEGER_TEXT_LIMIT
    reserved_key_starts: tuple[str, ...] = ("~",)
    nul_in_keys: bool = True
    natural_depth: int = 60  # the JSON parser takes 200, and an object with escaped keys takes three

    def encode(self, value: Any, path: str = "content") -> Any:
        """``value`` as JSON text that this backend keeps exactly."""
        if type(value) is dict and not value:
            return "{}"
        return to_json(self._document(value, path)).decode()

    def decode(self, stored: Any) -> Any:
        """The value that :meth:`encode` was given."""
        if stored == "{}":
            return {}
        try:
            document = from_json(stored, allow_inf_nan=False)
        except ValueError as exc:
            raise DecodeError(str(exc)) from exc
        escapes = stored.count('"~')
        if (
            escapes == 1 and type(document) is dict and "~order" in document
        ):  # by far the most common one: nothing below it needs a look
            return _in_order(document, document.pop("~order"))
        return _restore(document) if escapes else document

    def _document(self, value: Any, path: str) -> Any:
        try:
            return self._encode(value, 0)
        except RefusedError as refused:
            where = "".join(reversed(refused.path))
            if len(where) > _LONGEST_PATH:
                where = f"{where[: _LONGEST_PATH // 2]} … {where[-_LONGEST_PATH // 2 :]}"
            raise InvalidEntryError(path + where, refused.problem) from None
        except RecursionError:
            raise InvalidEntryError(path, "is nested too deeply for the room left on Python's stack") from None

    def _encode(self, value: Any, depth: int) -> Any:  # noqa: C901, PLR0912
        # One function for all kinds: every further frame a level would halve the depth Python's stack allows.
        # Containers are always copied: what was handed over is the caller's to change (rule R2).
        kind = type(value)
        if kind is str:
            unsafe = _SURROGATES if self.keeps_nul else _SURROGATES_OR_NUL
            return {"~str": _escaped(value)} if unsafe.search(value) else value
        if value is None or kind is bool:
            return value
        if kind is int:
            if -self.integer_limit <= value < self.integer_limit:
                return value
            if not -_LARGEST_INTEGER < value < _LARGEST_INTEGER:
                raise RefusedError("is an integer of more than 4,300 digits, which Python does not print; store text")
            return {"~int": hex(value)}
        if kind is float:
            return self._float(value)
        if kind is not dict and kind is not list:
            is_set = isinstance(value, (set, frozenset))
            return self._encode(_sorted_members(value, depth) if is_set else normalised(value), depth)
        if depth >= self.natural_depth:
            if depth >= MAX_DEPTH:
                raise RefusedError(_TOO_DEEP)
            return {"~json": json.dumps(_DEEP._encode(value, depth))}
        depth += 1
        if kind is list:
            items: list[Any] = []
            try:
                for item in value:
                    items.append(self._encode(item, depth))  # noqa: PERF401 - its length says where it failed
            except RefusedError as refused:
                refused.path.append(f"[{len(items)}]")
                raise
            return items
        encoded: dict[str, Any] = {}
        key: Any = None
        try:
            for key, item in value.items():
                encoded[key if type(key) is str else normalised_key(key)] = self._encode(item, depth)
        except RefusedError as refused:
            refused.path.append(_step(key))
            raise
        if len(encoded) < len(value):
            raise RefusedError("two of its keys are the same once they are written as text")
        return self._keyed(encoded)

    def _float(self, value: float) -> Any:
        if not isfinite(value):
            raise RefusedError(f"{value!r} is not a JSON value; store None or text instead")
        if self.keeps_every_float:
            return value
        if abs(value) >= _LARGEST_PLAIN_FLOAT or (value == 0 and copysign(1, value) < 0):
            return {"~float": repr(value)}
        return value

    def _keyed(self, encoded: dict[str, Any]) -> dict[str, Any]:
        """An object whose values are encoded, with its keys and their order made safe as well."""
        for name in encoded:
            if not self._key_is_natural(name):
                return {"~dict": [[self._encode(name, 0), item] for name, item in encoded.items()]}
        if not self.keeps_key_order and len(encoded) > 1:
            names = list(encoded)
            if names != sorted(names, key=_jsonb_order):
                encoded["~order"] = names
        return encoded

    def _key_is_natural(self, key: str) -> bool:
        if key.startswith(self.reserved_key_starts):
            return False
        unsafe = _SURROGATES if self.nul_in_keys else _SURROGATES_OR_NUL
        return not unsafe.search(key)


_DEEP = Form(natural_depth=MAX_DEPTH)  # the inside of a ``~json`` escape

TEXT = Form()
"""JSON text kept as it is: memory, SQLite."""

JSONB = Form(keeps_key_order=False, keeps_nul=False, keeps_every_float=False, nul_in_keys=False)
"""JSON text for a JSONB column: PostgreSQL."""


class _Documents(Form):
    """Plain dicts, lists and scalars instead of JSON text."""

    def encode(self, value: Any, path: str = "content") -> Any:
        return self._document(value, path)

    def decode(self, stored: Any) -> Any:
        return _restore(stored)


DOCUMENT = _Documents()
"""Documents that become part of a larger JSON text: files."""

BSON = _Documents(
    integer_limit=2**63,
    reserved_key_starts=("~", "$"),
    nul_in_keys=False,
    natural_depth=30,  # MongoDB takes 100 levels in a document
)
"""Documents: MongoDB."""


class _BorrowedDocuments(_Documents):
    """Documents that are not ours alone once they are written: a copy is read."""

    def decode(self, stored: Any) -> Any:
        return _restore(deepcopy(stored))


PORTABLE = _BorrowedDocuments(
    keeps_nul=False,
    keeps_every_float=False,
    integer_limit=2**63,
    reserved_key_starts=("~", "$"),
    nul_in_keys=False,
)
"""Documents that survive whatever a backend of a user's own does with them, key order excepted."""


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _restore(document: Any) -> Any:  # noqa: C901 - see _encode
    """Undo the escapes, in place where there is nothing to undo."""
    kind = type(document)
    if kind in _SCALARS:
        return document
    if kind is dict:
        if "~order" in document:
            document = _in_order(document, document.pop("~order"))
        elif len(document) == 1:
            ((key, inner),) = document.items()
            if key[:1] == "~":
                return _unescaped(key, inner)
        for name, item in document.items():
            if type(item) not in _SCALARS:
                document[name] = _restore(item)
        return document
    if kind is list:
        for index, item in enumerate(document):
            if type(item) not in _SCALARS:
                document[index] = _restore(item)
        return document
    if isinstance(document, int):  # BSON's 64-bit integers
        return int(document)
    raise DecodeError(f"a value of type {type_name(document)} is not one this library wrote")


def _in_order(document: dict[str, Any], order: Any) -> dict[str, Any]:
    """The object with its keys in their own order."""
    try:
        ordered = {name: document[name] for name in order}
    except (KeyError, TypeError):
        ordered = {}
    # Somebody may have added or removed keys by hand: then the others keep the order as far as it goes.
    return ordered if len(ordered) == len(document) else _as_far_as_known(document, order)


def _as_far_as_known(document: dict[str, Any], order: Any) -> dict[str, Any]:
    known = order if isinstance(order, list) else ()
    return {**{name: document[name] for name in known if isinstance(name, str) and name in document}, **document}


def _unescaped(key: str, inner: Any) -> Any:
    try:
        match key:
            case "~str":
                return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", inner)
            case "~float":
                return _finite(inner)
            case "~int":
                return _integer(inner)
            case "~dict":
                return {_restored_key(name): _restore(item) for name, item in inner}
            case "~json":
                return _restore(json.loads(inner, parse_float=_finite, parse_constant=_finite))
    except (TypeError, ValueError) as exc:
        raise DecodeError(f"bad escape {key!r}: {exc}") from exc
    raise DecodeError(f"unknown escape {key!r}")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{number!r} is not a JSON value")
    return number


def _integer(digits: str) -> int:
    number = int(digits, 16) if len(digits) <= _MOST_HEXADECIMAL else _LARGEST_INTEGER
    if not -_LARGEST_INTEGER < number < _LARGEST_INTEGER:
        raise ValueError("an integer of more than 4,300 digits")
    return number


def _restored_key(document: Any) -> str:
    key = _restore(document)
    if not isinstance(key, str):
        raise DecodeError("a key is no text")
    return key


def _step(key: Any) -> str:
    try:
        return f"[{key!r}]"
    except ValueError:  # an integer that Python does not print
        return "[…]"


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)


def _jsonb_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


def _sorted_members(members: set[Any] | frozenset[Any], depth: int) -> list[Any]:
    """Sorted by their JSON text. What is returned has no sets in it: a set in a set is so sorted once for each level
    above it, and not twice as often with each level."""
    if len(members) == 1:
        return list(members)
    if depth >= MAX_DEPTH:
        raise RefusedError(_TOO_DEEP)
    encoded = [_DEEP._encode(member, depth + 1) for member in members]  # noqa: SLF001
    return [_restore(member) for member in sorted(encoded, key=json.dumps)]
