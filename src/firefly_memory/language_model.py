"""The one door to a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firefly_memory.errors import LanguageModelError
from firefly_memory.validation import ImportingExtra

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_ASKING = ImportingExtra("asking a language model", "pydantic-ai-slim", "agents")


async def ask(model: Model | str, prompt: str, *, instructions: str) -> str:
    """The answer of ``model`` to ``prompt``, which may be empty. ``model`` is pydantic-ai's, by name or as an object.

    ``LanguageModelError`` if the model fails; the error of pydantic-ai or of the provider is its ``__cause__``.
    """
    with _ASKING:
        from pydantic_ai import Agent
    try:
        result = await Agent(model, instructions=instructions).run(prompt)
    except Exception as exc:
        raise LanguageModelError(name_of(model), str(exc) or type(exc).__name__) from exc
    return str(result.output)


def name_of(model: Model | str) -> str:
    """The name of a model, for messages and logs."""
    return model if isinstance(model, str) else str(getattr(model, "model_name", type(model).__name__))
