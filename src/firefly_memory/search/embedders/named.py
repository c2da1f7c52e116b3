"""Embedders by their dotted names, as an operator names them."""

from __future__ import annotations

from firefly_memory.errors import ConfigurationError
from firefly_memory.facets.named import object_at
from firefly_memory.search.embedders.default import embedder_to_use
from firefly_memory.search.embedders.protocol import Embedder

_EXAMPLE = "package.module:EMBEDDER"


def embedder_at(name: str) -> Embedder:
    """The embedder that a dotted name stands for: that of an embedder, or of a function or class that makes one."""
    found = object_at(name, "an embedder", _EXAMPLE)
    if isinstance(found, type) or (callable(found) and not hasattr(found, "embed")):
        try:
            found = found()
        except Exception as error:  # whatever the code of the package raises
            raise ConfigurationError(f"{name} makes no embedder: {type(error).__name__}: {error}") from error
    embedder = embedder_to_use(found)
    if embedder is None:
        raise ConfigurationError(f"{name} is no embedder, it is None")
    return embedder
