"""pydantic-ai's messages as JSON, by its own adapter, and what that adapter forgets.

It reads every image as ``BinaryImage``, bytes among the contents of a tool as text, and tuples as lists. So a message
with any of these has a note of where they were, in a key that the adapter passes over: ``"~exact": [[kind, place …]]``.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from typing import Any

Place = list[Any]
"""A kind, and the way to a value: attributes, indexes, keys."""

_KEY = "~exact"


def to_json(messages: Sequence[Any]) -> str:
    """A JSON array; ``ValueError`` for values that JSON does not have."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    text = ModelMessagesTypeAdapter.dump_json(list(messages), warnings="error").decode()
    noted = {number: places for number, message in enumerate(messages) if (places := list(_places(message)))}
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
            for kind, *way in noted.get(_KEY, ()):
                _restore(message, way, kind)
    return messages


def _places(message: Any) -> Iterator[Place]:
    yield from _places_in(message.metadata, ["metadata"])
    for number, part in enumerate(message.parts):
        for name in ("content", "metadata"):
            value = getattr(part, name, None)
            if not isinstance(value, str):
                yield from _places_in(value, ["parts", number, name])


def _places_in(value: Any, way: Place) -> Iterator[Place]:
    """What is inside first: a tuple is made of what is restored."""
    from pydantic_ai.messages import BinaryContent

    if type(value) is BinaryContent:
        if value.is_image:
            yield ["binary", *way]
    elif isinstance(value, bytes):
        yield ["bytes", *way]
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _places_in(item, [*way, number])
        if isinstance(value, tuple):
            yield ["tuple", *way]
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _places_in(item, [*way, key])


def _restore(message: Any, way: Place, kind: str) -> None:
    holder = message
    for step in way[:-1]:
        holder = holder[step] if isinstance(holder, (dict, list)) else getattr(holder, step)
    if isinstance(holder, (dict, list)):
        holder[way[-1]] = _restored(holder[way[-1]], kind)
    else:
        setattr(holder, way[-1], _restored(getattr(holder, way[-1]), kind))


def _restored(value: Any, kind: str) -> Any:
    from pydantic_ai.messages import BinaryContent

    match kind:
        case "binary":
            return BinaryContent(
                value.data,
                media_type=value.media_type,
                vendor_metadata=value.vendor_metadata,
                identifier=value.identifier,
            )
        case "bytes":
            return urlsafe_b64decode(value)
        case "tuple":
            return tuple(value)
        case _:
            raise ValueError(f"a note of the unknown kind {kind!r}")
