"""Which embedder is used where nobody has chosen one."""

from __future__ import annotations

from enum import Enum
from importlib.util import find_spec
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder


class Default(Enum):
    """The type of :data:`DEFAULT`."""

    LOCAL = "the local embedder, if it is installed"


DEFAULT = Default.LOCAL
"""The local embedder of the extra ``embeddings``; none where that is not installed."""

_PACKAGES = ("wordllama", "numpy", "tokenizers", "safetensors")


def embedder_to_use(embedder: Any) -> Embedder | None:
    """The embedder that an argument stands for."""
    if embedder is None:
        return None
    if embedder is DEFAULT:
        return WordLlamaEmbedder() if all(find_spec(each) is not None for each in _PACKAGES) else None
    missing = [name for name in ("name", "dimensions", "embed", "async_embed") if not hasattr(embedder, name)]
    if missing:
        raise ConfigurationError(
            f"embedder must be an Embedder, and {type(embedder).__name__} has no {', '.join(missing)}; "
            "firefly_memory.search.embedders.adapters has adapters for functions and other libraries' embedders"
        )
    found: Embedder = embedder
    return found
