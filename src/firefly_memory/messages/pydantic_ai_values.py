"""Notes of the values in a message that pydantic-ai's adapter would change; a value without a note is refused.

A note is ``[kind, step …]``. The steps lead to the value: an attribute, then indexes, keys and further attributes. Each
further attribute is in a list of its own.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite
from types import NoneType
from typing import Any

from pydantic_core import to_json, to_jsonable_python

from firefly_memory.messages.parts import MEDIA_TYPES_OF_PYDANTIC_AI

Steps = list[Any]

ATTRIBUTES = ("content", "metadata", "args", "provider_details", "audio")
"""The attributes of messages and parts that may contain any value."""
INNER_ATTRIBUTES = ("metadata", "vendor_metadata", "value")
"""The attributes of contents that may contain any value."""

_OF_MESSAGES = ("metadata", "provider_details")
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
_LARGEST = 10**4_300  # the parsers of Python and of pydantic do not read longer integers
_DEEPEST = 180  # levels in a value; pydantic's parser reads 200 levels of a document


class UnwritableError(ValueError):
    """A value that would not come back equal. It is at ``path`` in the message ``number``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path.lstrip('.')}: {problem}")
        self.number = 0
        self.path = path
        self.problem = problem


def writable(message: Any) -> tuple[Any, list[Steps]]:
    """The message as the adapter can write it, and the notes that restore the original."""
    notes: list[Steps] = []
    changed = _writable_holder(message, _OF_MESSAGES, [], notes, typed=False)
    parts = list(message.parts)
    for number, part in enumerate(parts):
        parts[number] = _writable_holder(part, ATTRIBUTES, ["parts", number], notes, typed=True)
    if any(new is not old for new, old in zip(parts, message.parts, strict=True)):
        changed = replace(changed, parts=parts)
    return changed, notes


def unwritable_value(messages: Sequence[Any], error: ValueError) -> UnwritableError | None:
    """An error that says where the value is that the adapter could not write."""
    for number, message in enumerate(messages):
        for steps, value in _everything(message):
            try:
                to_json(value)
            except (ValueError, RecursionError):
                refused = UnwritableError(path_of(steps), f"pydantic-ai cannot write it as JSON ({error})")
                refused.number = number
                return refused
    return None


def path_of(steps: Steps) -> str:
    """The steps as Python writes them: ``.parts[0].content['a']``."""
    root, *steps = steps
    if root == "parts":
        number, name, *steps = steps
        root = f"parts[{number}].{name}"
    words = (f".{step[0]}" if isinstance(step, list) else f"[{step!r}]" for step in steps)
    return f".{root}{''.join(words)}"


def _everything(message: Any) -> Iterable[tuple[Steps, Any]]:
    """Each single value of the attributes that may contain any value, and the steps to it."""
    for name in _OF_MESSAGES:
        yield from _inside(getattr(message, name, None), [name])
    for number, part in enumerate(message.parts):
        for name in ATTRIBUTES:
            yield from _inside(getattr(part, name, None), ["parts", number, name])


def _inside(value: Any, steps: Steps) -> Iterable[tuple[Steps, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _inside(item, [*steps, key])
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _inside(item, [*steps, number])
    else:
        yield steps, value


def _writable_holder(holder: Any, names: Iterable[str], steps: Steps, notes: list[Steps], *, typed: bool) -> Any:
    """The message or part, or a copy of it with values that can be written."""
    changed: dict[str, Any] = {}
    for name in names:
        value = getattr(holder, name, None)
        if _is_plain(value, 1):
            continue
        new = _value(value, [*steps, name], notes, 1, typed=typed and name in ("content", "audio"))
        if new is not value:
            changed[name] = new
    return replace(holder, **changed) if changed else holder


def _is_plain(value: Any, depth: int) -> bool:
    """Whether the adapter keeps the value as it is. That holds for nearly all values, and takes a tenth of the time of
    :func:`_value`."""
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


def _value(value: Any, steps: Steps, notes: list[Steps], depth: int, *, typed: bool) -> Any:  # noqa: C901
    """A value that the adapter can write instead of ``value``. The adapter recognises files in ``typed`` attributes."""
    if isinstance(value, _SAFE):
        return value
    if isinstance(value, int):
        if not -_LARGEST < value < _LARGEST:
            raise UnwritableError(path_of(steps), "has more than 4,300 digits, which JSON parsers do not read")
    elif isinstance(value, float):
        if not isfinite(value):
            notes.append([repr(float(value)), *steps])
            return None
    elif isinstance(value, bytes):
        notes.append(["bytes", *steps])
        return urlsafe_b64encode(value).decode()
    elif depth > _DEEPEST:
        raise UnwritableError(path_of(steps[:8]), f"is nested deeper than {_DEEPEST} levels, or contains itself")
    elif isinstance(value, (list, tuple)):
        return _sequence(value, steps, notes, depth, typed=typed)
    elif isinstance(value, dict):
        return _mapping(value, steps, notes, depth, typed=typed)
    elif _is_content(value):
        return _content(value, steps, notes, depth, typed=typed)
    else:
        plain = _as_json_has_it(value)
        return value if plain is value else _value(plain, steps, notes, depth, typed=typed)
    return value


def _sequence(value: Any, steps: Steps, notes: list[Steps], depth: int, *, typed: bool) -> Any:
    items = [_value(item, [*steps, number], notes, depth + 1, typed=typed) for number, item in enumerate(value)]
    if isinstance(value, tuple):  # after the notes of its items: they are restored before the tuple is made
        notes.append(["tuple", *steps])
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return tuple(items) if isinstance(value, tuple) else items


def _mapping(value: dict[Any, Any], steps: Steps, notes: list[Steps], depth: int, *, typed: bool) -> Any:
    if typed and isinstance(value.get("kind"), str) and value["kind"] in MEDIA_TYPES_OF_PYDANTIC_AI:
        notes.append(["dict", *steps])  # before the notes of its items: the adapter may take the dict for a file
    if all(isinstance(key, str) for key in value):
        named = value
    else:
        named = {_key(key): item for key, item in value.items()}
        if len(named) < len(value):
            raise UnwritableError(path_of(steps), "two of its keys are the same once they are written as text")
    items: dict[Any, Any] = {}
    for key, item in named.items():
        if isinstance(key, str) and not key.isascii() and _has_surrogate(key):
            raise UnwritableError(path_of(steps), f"the key {key!r} has a lone surrogate, which JSON does not have")
        items[key] = _value(item, [*steps, key], notes, depth + 1, typed=typed)
    unchanged = named is value and all(items[key] is item for key, item in value.items())
    return value if unchanged else items


def _content(value: Any, steps: Steps, notes: list[Steps], depth: int, *, typed: bool) -> Any:
    """The note of a content comes before the notes of its values: they are restored in the content."""
    from pydantic_ai.messages import BinaryContent

    if isinstance(value, BinaryContent):
        if not typed or type(BinaryContent.narrow_type(value)) is not type(value):
            notes.append([type(value).__name__.removeprefix("Binary").lower().replace("content", "binary"), *steps])
    elif not typed or type(value).__name__ in _NOT_IN_TYPED:
        notes.append(["content", *steps])
    changed: dict[str, Any] = {}
    for name in INNER_ATTRIBUTES:
        inner = getattr(value, name, None)
        new = _value(inner, [*steps, [name]], notes, depth + 1, typed=False)
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
    """A Python value that JSON does not have, as pydantic writes it; the value itself if the adapter must decide."""
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
