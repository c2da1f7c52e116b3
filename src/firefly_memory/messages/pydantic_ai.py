"""pydantic-ai's messages as JSON, written by its own adapter, with notes of the values that the adapter changes.

The adapter reads images as ``BinaryImage`` or a dict, bytes as text, tuples as lists, NaN as ``None``, and files in
metadata as dicts. So a message with such a value has notes in a key that the adapter ignores:
``"~exact": [[kind, step …], …]``. The steps say where the value is, and the kind says what it is. Other Python values
come back as the values that JSON has for them. A value is refused if it cannot be restored.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache
from typing import Any

from firefly_memory.messages.pydantic_ai_values import (
    ATTRIBUTES,
    INNER_ATTRIBUTES,
    Steps,
    UnwritableError,
    unwritable_value,
    writable,
)

NOTES = "~exact"
_OF_FILES = ("media_type", "vendor_metadata", "identifier")


def to_json(messages: Sequence[Any]) -> str:
    """The messages as a JSON array.

    ``ValueError`` for a value that cannot be written; an ``UnwritableError`` if the place of the value is known.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    written, noted = [], {}
    for number, message in enumerate(messages):
        try:
            changed, notes = writable(message)
        except UnwritableError as refused:
            refused.number = number
            raise
        written.append(changed)
        if notes:
            noted[number] = notes
    try:
        text = ModelMessagesTypeAdapter.dump_json(written, warnings="error").decode()
    except ValueError as exc:
        raise unwritable_value(messages, exc) or exc from exc
    if not noted:
        return text
    objects = json.loads(text)
    for number, notes in noted.items():
        objects[number][NOTES] = notes
    return compact(objects)


def compact(document: Any) -> str:
    """JSON without spaces."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> list[Any]:
    """The messages of a JSON array that :func:`to_json` or any version of pydantic-ai wrote; else ``ValueError``."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    messages = ModelMessagesTypeAdapter.validate_json(text)
    if f'"{NOTES}":' in text:
        for message, document in zip(messages, json.loads(text), strict=True):
            restore(message, document, document.get(NOTES, ()))
    return messages


def restore(message: Any, document: Any, notes: Iterable[Any]) -> None:
    """Restore the values of ``message`` that have notes. The adapter has read the message from ``document``."""
    for note in notes:
        # If a note does not fit the message, the value stays as the adapter has read it.
        with suppress(AttributeError, LookupError, TypeError, ValueError):
            kind, *steps = note
            _restore(message, document, steps, kind)


def _restore(message: Any, document: Any, steps: Steps, kind: str) -> None:
    root, *rest = steps
    holder, name, raw = message, root, document
    if root == "parts":
        number, name, *rest = rest
        holder, raw = message.parts[number], document["parts"][number]
    if name not in ATTRIBUTES:
        raise ValueError(f"a note of {name!r}")
    inside, step, raw = holder, [name], raw[name]
    for next_step in rest:
        inside, step = _at(inside, step), next_step
        raw = raw[next_step[0] if isinstance(next_step, list) else next_step]
    restored = _restored(_at(inside, step), raw, kind)
    if isinstance(step, list):
        setattr(inside, step[0], restored)
    else:
        inside[step] = restored


def _at(inside: Any, step: Any) -> Any:
    if not isinstance(step, list):
        return inside[step]
    if step[0] not in (*ATTRIBUTES, *INNER_ATTRIBUTES):
        raise ValueError(f"a note of {step[0]!r}")
    return getattr(inside, step[0])


def _restored(value: Any, raw: Any, kind: str) -> Any:
    match kind:
        case "binary" | "image" | "audio":
            return _file(value, kind)
        case "bytes":
            return urlsafe_b64decode(raw)
        case "tuple":
            return tuple(value)
        case "content":
            return _contents().validate_python(deepcopy(raw))
        case "dict":
            return deepcopy(raw)
        case "nan" | "inf" | "-inf":
            return float(kind)
        case _:
            raise ValueError(f"a note of the unknown kind {kind!r}")


def _file(value: Any, kind: str) -> Any:
    from pydantic_ai import messages

    if isinstance(value, messages.BinaryContent):
        data, given = value.data, {name: getattr(value, name) for name in _OF_FILES}
    else:
        data = urlsafe_b64decode(value["data"].replace("+", "-").replace("/", "_"))
        given = {name: value.get(name) for name in _OF_FILES}
    made = {"image": "BinaryImage", "audio": "BinaryAudio"}.get(kind, "BinaryContent")
    return getattr(messages, made)(data, **given)


@cache
def _contents() -> Any:
    from pydantic import TypeAdapter
    from pydantic_ai.messages import UserContent

    return TypeAdapter(UserContent)
