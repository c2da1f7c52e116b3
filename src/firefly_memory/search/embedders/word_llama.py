"""The default embedder: the table of vectors in the package ``wordllama``, without a key and without a network.

The package itself is not imported: its own loader looks for the tokenizer in the wrong folder, and then downloads it.
The table has a vector for each of 32,000 tokens. A text's vector is their mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import MissingDependencyError
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.validation import ImportingExtra

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
TABLE = Path("weights", "l2_supercat_256.safetensors")


class WordLlamaEmbedder(StaticEmbedder):
    """The table of ``wordllama``, loaded when the first text is embedded."""

    @property
    def name(self) -> str:
        """Vectors belong to this name."""
        return "wordllama:l2_supercat_256"

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return 256

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        table = _table()
        return [table.mean([(text, 1.0)]) for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        return await in_worker_thread(lambda: self.embed(texts, purpose))

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        """The vector of a question, given piece by piece with the weight of each."""
        vector: Vector = _table().mean(pieces)
        return vector

    def __repr__(self) -> str:
        return "WordLlamaEmbedder()"


@dataclass(frozen=True, slots=True)
class _Table:
    tokenizer: Any
    vectors: Any

    def mean(self, pieces: Sequence[tuple[str, float]]) -> Any:
        """The weighted mean of the tokens' vectors, of length 1; zeros if there is no token."""
        import numpy as np

        total: NDArray[float32] = np.zeros(self.vectors.shape[1], dtype=np.float32)
        for text, weight in pieces:
            # Not encode_batch(): its threads print a warning in each process that is forked later.
            tokens = self.tokenizer.encode(_SURROGATES.sub("\ufffd", text), add_special_tokens=False).ids
            if tokens:
                total += weight * self.vectors[tokens].sum(axis=0)
        length = float(np.linalg.norm(total))
        return total / length if length else total


_SURROGATES = re.compile(r"[\ud800-\udfff]")
_loading = ForkSafeLock()


def _table() -> _Table:
    with _loading:
        return _loaded()


@cache
def _loaded() -> _Table:
    with ImportingExtra("the default embedder", "wordllama", "embeddings"):
        import numpy as np
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    folder = _folder()
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # In 32 bits, as they are added up: 16 MB more, and a third of the time of each text less.
    return _Table(tokenizer, load_file(folder / TABLE)["embedding.weight"].astype(np.float32))


def _folder() -> Path:
    """Where the package is, found without importing it."""
    spec = find_spec("wordllama")
    for each in (spec and spec.submodule_search_locations) or ():
        if all(Path(each, file).is_file() for file in (TOKENIZER, TABLE)):
            return Path(each)
    # The rest of the extra is here: the extra leaves wordllama out where it would have to be compiled.
    raise MissingDependencyError(
        "the default embedder", "wordllama>=0.4.0.post1,<0.5", "embeddings", "the rest of the extra 'embeddings'"
    )
