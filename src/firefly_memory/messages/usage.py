"""What a model reported of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firefly_memory.messages.parts import get
from firefly_memory.messages.shapes import role_of


def reported_input_tokens(messages: Sequence[Any]) -> int | None:
    """The size of the prompt that the newest response reports; ``None`` if it reports none.

    pydantic-ai's responses report it, as objects and as JSON, and so do the messages of Anthropic's SDK.
    """
    newest = next((message for message in reversed(messages) if role_of(message) == "assistant"), None)
    tokens = get(get(newest, "usage"), "input_tokens")
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else None
