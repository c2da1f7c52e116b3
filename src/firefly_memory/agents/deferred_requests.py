"""Deferred tool calls of pydantic-ai as JSON, written like messages: by the adapter, with notes of exact values."""

from __future__ import annotations

import json
from dataclasses import replace

from pydantic import ConfigDict, TypeAdapter
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import DeferredToolRequests

from firefly_memory.messages.pydantic_ai import NOTES, compact, restore
from firefly_memory.messages.pydantic_ai_values import writable

# As pydantic-ai's own adapter of messages has it. A dataclass alone takes no configuration from here.
_BYTES = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_ADAPTER: TypeAdapter[DeferredToolRequests | None] = TypeAdapter(DeferredToolRequests | None, config=_BYTES)


def to_json(requests: DeferredToolRequests) -> str:
    """The requests as JSON; ``ValueError`` for a value that JSON cannot express."""
    changed, notes = writable(_as_message(requests))
    calls, approvals = changed.parts[: len(requests.calls)], changed.parts[len(requests.calls) :]
    plain = replace(requests, calls=calls, approvals=approvals, metadata=changed.metadata)
    text = _ADAPTER.dump_json(plain, warnings="error").decode()
    return compact({**json.loads(text), NOTES: notes}) if notes else text


def from_json(text: str) -> DeferredToolRequests:
    """The requests that :func:`to_json` has written; ``ValueError`` for any other text."""
    requests = _ADAPTER.validate_json(text)
    if requests is None:
        raise ValueError("null in the place of the calls that are waited for")
    if f'"{NOTES}":' in text:
        document = json.loads(text)
        parts = [*document["calls"], *document["approvals"]]
        restore(_as_message(requests), {**document, "parts": parts}, document[NOTES])
    return requests


def _as_message(requests: DeferredToolRequests) -> ModelResponse:
    """A message with the same parts and metadata."""
    return ModelResponse(parts=[*requests.calls, *requests.approvals], metadata=requests.metadata)
