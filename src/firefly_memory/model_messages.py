"""pydantic-ai's messages as JSON, by its own adapter, and what that adapter forgets.

In contents and metadata it reads every image as ``BinaryImage`` or a dict, bytes as text, and tuples as lists. So a
message with any of these has a note of where they were, in a key that the adapter passes over:
``"~exact": [[kind, place …], …]``. Other values of Python come back as JSON has them.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from contextlib import suppress
from types import NoneType
from typing import Any

Place = list[Any]
"""A kind, and the way to a value: first an attribute, then indexes, keys, and attributes in lists of one."""

_KEY = "~exact"
_ATTRIBUTES = ("content", "metadata")
_INNER_ATTRIBUTES = ("metadata", "vendor_metadata")
_PLAIN = (str, int, float, NoneType)
_OF_FILES = ("media_type", "vendor_metadata", "identifier")


def to_json(messages: Sequence[Any]) -> str:
    """A JSON array; ``ValueError`` for values that JSON does not have."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    text = ModelMessagesTypeAdapter.dump_json(list(messages), warnings="error").decode()
    noted = {number: places for number, message in enumerate(messages) if (places := _places(message))}
    if not noted:
        return text
    objects = json.loads(text)
    for number, places in noted.items():
        objects[number][_KEY] = places
    return json.dumps(objects, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> list[Any]:
    """The messages of such an array, of any version of pydantic-ai; ``ValueError`` for anything else."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    messages = ModelMessagesTypeAdapter.validate_json(text)
    if f'"{_KEY}":' in text:
        for message, noted in zip(messages, json.loads(text), strict=True):
            for note in noted.get(_KEY, ()):
                # What the adapter makes of it is better than nothing, should a note not fit.
                with suppress(AttributeError, LookupError, TypeError, ValueError):
                    kind, *way = note
                    _restore(message, way, kind)
    return messages


def _places(message: Any) -> list[Place]:
    found: list[Place] = []
    if message.metadata:
        _look_into(message.metadata, ["metadata"], found, typed=False)
    for number, part in enumerate(message.parts):
        for name in _ATTRIBUTES:
            value = getattr(part, name, None)
            if not isinstance(value, _PLAIN):
                _look_into(value, ["parts", number, name], found, typed=name == "content")
    return found


def _look_into(value: Any, way: Place, found: list[Place], *, typed: bool) -> None:
    """Add what is inside first: a tuple is made of what is restored. In what is ``typed`` the adapter knows a file when
    it sees one."""
    if isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            if not isinstance(item, _PLAIN):
                _look_into(item, [*way, number], found, typed=typed)
        if isinstance(value, tuple):
            found.append(["tuple", *way])
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, _PLAIN) and isinstance(key, str):
                _look_into(item, [*way, key], found, typed=typed)
    elif isinstance(value, bytes):
        found.append(["bytes", *way])
    elif type(value).__module__ == "pydantic_ai.messages":
        _look_into_content(value, way, found, typed=typed)


def _look_into_content(value: Any, way: Place, found: list[Place], *, typed: bool) -> None:
    """Of a file itself first: what is inside is restored in what the file becomes."""
    from pydantic_ai.messages import BinaryContent, BinaryImage

    if isinstance(value, BinaryContent) and (not typed or (type(value) is BinaryContent and value.is_image)):
        found.append(["image" if isinstance(value, BinaryImage) else "binary", *way])
    for name in _INNER_ATTRIBUTES:
        inside = getattr(value, name, None)
        if not isinstance(inside, _PLAIN):
            _look_into(inside, [*way, [name]], found, typed=False)


def _restore(message: Any, way: Place, kind: str) -> None:
    root, *rest = way
    holder, name = message, "metadata"
    if root == "parts":
        number, name, *rest = rest
        holder = message.parts[number]
    if name not in _ATTRIBUTES:
        raise ValueError(f"a note of {name!r}")
    inside, step = holder, [name]
    for next_step in rest:
        inside, step = _at(inside, step), next_step
    restored = _restored(_at(inside, step), kind)
    if isinstance(step, list):
        setattr(inside, step[0], restored)
    else:
        inside[step] = restored


def _at(inside: Any, step: Any) -> Any:
    if not isinstance(step, list):
        return inside[step]
    if step[0] not in (*_ATTRIBUTES, *_INNER_ATTRIBUTES):
        raise ValueError(f"a note of {step[0]!r}")
    return getattr(inside, step[0])


def _restored(value: Any, kind: str) -> Any:
    match kind:
        case "binary" | "image":
            return _file(value, kind)
        case "bytes":
            return urlsafe_b64decode(value)
        case "tuple":
            return tuple(value)
        case _:
            raise ValueError(f"a note of the unknown kind {kind!r}")


def _file(value: Any, kind: str) -> Any:
    from pydantic_ai.messages import BinaryContent, BinaryImage

    if isinstance(value, BinaryContent):
        data, given = value.data, {name: getattr(value, name) for name in _OF_FILES}
    else:
        data = urlsafe_b64decode(value["data"].replace("+", "-").replace("/", "_"))
        given = {name: value.get(name) for name in _OF_FILES}
    return (BinaryImage if kind == "image" else BinaryContent)(data, **given)
