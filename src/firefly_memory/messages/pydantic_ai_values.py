"""What pydantic-ai's adapter would change in a message: found, noted, and where it must be, refused, before it writes.

A note is ``[kind, step …]``. The steps to a value are an attribute, then indexes, keys, and attributes in lists of one.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite
from types import NoneType
from typing import Any

from pydantic_core import to_json, to_jsonable_python

Way = list[Any]

ATTRIBUTES = ("content", "metadata", "args", "provider_details", "audio")
"""Those of messages and of parts that may have any value in them."""
INNER_ATTRIBUTES = ("metadata", "vendor_metadata", "value")
"""Those of contents."""

_OF_MESSAGES = ("metadata", "provider_details")
_FILE_KINDS = frozenset({"image-url", "audio-url", "document-url", "video-url", "binary", "uploaded-file"})
_CONTENTS = frozenset(
    {
        "ImageUrl",
        "AudioUrl",
        "DocumentUrl",
        "VideoUrl",
        "UploadedFile",
        "TextContent",
        "StructuredContent",
        "CachePoint",
    }
)
_NOT_IN_TYPED = frozenset({"TextContent", "StructuredContent", "CachePoint"})
_SAFE = (str, bool, NoneType)
_LARGEST = 10**4_300  # the parsers of Python and of pydantic read no longer integers
_DEEPEST = 180  # levels in a value; pydantic's parser reads 200 in all


class UnwritableError(ValueError):
    """A value that could not be read again as it is, in the message ``number``, at ``path``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path.lstrip('.')}: {problem}")
        self.number = 0
        self.path = path
        self.problem = problem


def writable(message: Any) -> tuple[Any, list[Way]]:
    """The message as the adapter can write it, and the notes that make of it again what it was."""
    notes: list[Way] = []
    changed = _looked_at(message, _OF_MESSAGES, [], notes, typed=False)
    parts = list(message.parts)
    for number, part in enumerate(parts):
        parts[number] = _looked_at(part, ATTRIBUTES, ["parts", number], notes, typed=True)
    if any(new is not old for new, old in zip(parts, message.parts, strict=True)):
        changed = replace(changed, parts=parts)
    return changed, notes


def offender(messages: Sequence[Any], error: ValueError) -> UnwritableError | None:
    """Where the value is that the adapter could not write."""
    for number, message in enumerate(messages):
        for way, value in _everything(message):
            try:
                to_json(value)
            except (ValueError, RecursionError):
                refused = UnwritableError(path_of(way), f"pydantic-ai cannot write it as JSON ({error})")
                refused.number = number
                return refused
    return None


def path_of(way: Way) -> str:
    """The way in Python's words: ``.parts[0].content['a']``."""
    root, *steps = way
    if root == "parts":
        number, name, *steps = steps
        root = f"parts[{number}].{name}"
    words = (f".{step[0]}" if isinstance(step, list) else f"[{step!r}]" for step in steps)
    return f".{root}{''.join(words)}"


def _everything(message: Any) -> Iterable[tuple[Way, Any]]:
    """What may have any value in it, and where: texts and single values, outermost first."""
    for name in _OF_MESSAGES:
        yield from _inside(getattr(message, name, None), [name])
    for number, part in enumerate(message.parts):
        for name in ATTRIBUTES:
            yield from _inside(getattr(part, name, None), ["parts", number, name])


def _inside(value: Any, way: Way) -> Iterable[tuple[Way, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _inside(item, [*way, key])
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _inside(item, [*way, number])
    else:
        yield way, value


def _looked_at(holder: Any, names: Iterable[str], way: Way, notes: list[Way], *, typed: bool) -> Any:
    """``holder``, or a copy with values that can be written."""
    changed: dict[str, Any] = {}
    for name in names:
        value = getattr(holder, name, None)
        if _is_plain(value, 1):
            continue
        new = _value(value, [*way, name], notes, 1, typed=typed and name in ("content", "audio"))
        if new is not value:
            changed[name] = new
    return replace(holder, **changed) if changed else holder


def _is_plain(value: Any, depth: int) -> bool:
    """Whether the adapter keeps it as it is: the answer for nearly all values, at a tenth of the price of a walk."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is dict:
        if depth > _DEEPEST or "kind" in value:
            return False
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                return False
            if type(item) is not str and not _is_plain(item, depth + 1):
                return False
        return True
    if kind is list:
        return depth <= _DEEPEST and all(type(item) is str or _is_plain(item, depth + 1) for item in value)
    return (kind is int and -_LARGEST < value < _LARGEST) or (kind is float and isfinite(value))


def _value(value: Any, way: Way, notes: list[Way], depth: int, *, typed: bool) -> Any:  # noqa: C901
    """What the adapter can write for ``value``. In what is ``typed`` it knows a file when it sees one."""
    if isinstance(value, _SAFE):
        return value
    if isinstance(value, int):
        if not -_LARGEST < value < _LARGEST:
            raise UnwritableError(path_of(way), "has more than 4,300 digits, which JSON parsers do not read")
    elif isinstance(value, float):
        if not isfinite(value):
            notes.append([repr(float(value)), *way])
            return None
    elif isinstance(value, bytes):
        notes.append(["bytes", *way])
        return urlsafe_b64encode(value).decode()
    elif depth > _DEEPEST:
        raise UnwritableError(path_of(way[:8]), f"is nested deeper than {_DEEPEST} levels, or contains itself")
    elif isinstance(value, (list, tuple)):
        return _sequence(value, way, notes, depth, typed=typed)
    elif isinstance(value, dict):
        return _mapping(value, way, notes, depth, typed=typed)
    elif _is_content(value):
        return _content(value, way, notes, depth, typed=typed)
    else:
        plain = _as_json_has_it(value)
        return value if plain is value else _value(plain, way, notes, depth, typed=typed)
    return value


def _sequence(value: Any, way: Way, notes: list[Way], depth: int, *, typed: bool) -> Any:
    items = [_value(item, [*way, number], notes, depth + 1, typed=typed) for number, item in enumerate(value)]
    if isinstance(value, tuple):  # after what is inside: a tuple is made of what is restored
        notes.append(["tuple", *way])
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return tuple(items) if isinstance(value, tuple) else items


def _mapping(value: dict[Any, Any], way: Way, notes: list[Way], depth: int, *, typed: bool) -> Any:
    if typed and isinstance(value.get("kind"), str) and value["kind"] in _FILE_KINDS:
        notes.append(["dict", *way])  # before what is inside: the adapter may take it for a file
    if all(isinstance(key, str) for key in value):
        named = value
    else:
        named = {_key(key): item for key, item in value.items()}
        if len(named) < len(value):
            raise UnwritableError(path_of(way), "two of its keys are the same once they are written as text")
    items: dict[Any, Any] = {}
    for key, item in named.items():
        if isinstance(key, str) and not key.isascii() and _has_surrogate(key):
            raise UnwritableError(path_of(way), f"the key {key!r} has a lone surrogate, which JSON does not have")
        items[key] = _value(item, [*way, key], notes, depth + 1, typed=typed)
    unchanged = named is value and all(items[key] is item for key, item in value.items())
    return value if unchanged else items


def _content(value: Any, way: Way, notes: list[Way], depth: int, *, typed: bool) -> Any:
    """Of a content itself first: what is inside is restored in what the content becomes."""
    from pydantic_ai.messages import BinaryContent

    if isinstance(value, BinaryContent):
        if not typed or type(BinaryContent.narrow_type(value)) is not type(value):
            notes.append([type(value).__name__.removeprefix("Binary").lower().replace("content", "binary"), *way])
    elif not typed or type(value).__name__ in _NOT_IN_TYPED:
        notes.append(["content", *way])
    changed: dict[str, Any] = {}
    for name in INNER_ATTRIBUTES:
        inner = getattr(value, name, None)
        new = _value(inner, [*way, [name]], notes, depth + 1, typed=False)
        if new is not inner:
            changed[name] = new
    return replace(value, **changed) if changed else value


def _is_content(value: Any) -> bool:
    from pydantic_ai.messages import BinaryContent

    kind = type(value)
    return isinstance(value, BinaryContent) or (
        kind.__module__ == "pydantic_ai.messages" and kind.__name__ in _CONTENTS
    )


def _as_json_has_it(value: Any) -> Any:
    """A value of Python's that JSON does not have, as pydantic writes it; itself, if the adapter has to decide."""
    try:
        return to_jsonable_python(value, bytes_mode="base64")
    except (ValueError, RecursionError):
        return value


def _key(key: Any) -> Any:
    if isinstance(key, str):
        return key
    ((text, _),) = _as_json_has_it({key: None}).items()
    return text


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
