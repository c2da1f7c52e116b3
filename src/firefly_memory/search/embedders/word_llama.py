"""The default embedder: the table of vectors in the package ``wordllama``, without a key and without a network.

The package itself is not imported: its own loader looks for the tokenizer in the wrong folder, and then downloads it.
The table has a vector for each of 32,000 tokens. A text's vector is their mean.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import MissingDependencyError
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.search.kept import Kept
from firefly_memory.validation import ImportingExtra

if TYPE_CHECKING:
    from numpy import float32, int64
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
        return [table.direction(text) for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        return await in_worker_thread(lambda: self.embed(texts, purpose))

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        """The vector of a question, given piece by piece with the weight of each."""
        vector: Vector = _table().mean(pieces)
        return vector

    def nearest_words(self, word: str) -> Sequence[tuple[str, float]]:
        """The words of the table that are nearest to a word, each with its cosine, the largest first."""
        return _table().nearest_words(word)

    def __repr__(self) -> str:
        return "WordLlamaEmbedder()"


class _Table:
    def __init__(self, tokenizer: Any, vectors: Any) -> None:
        self._tokenizer = tokenizer
        self._vectors = vectors
        self._model = tokenizer.model
        self._whole = tuple(str(each.content) for each in tokenizer.get_added_tokens_decoder().values())
        self._kept = Kept(self._tokens_of_piece, _LONGEST_KEPT)
        self.nearest_words = lru_cache(maxsize=1024)(self._nearest_words)

    def mean(self, pieces: Sequence[tuple[str, float]]) -> Any:
        """The weighted mean of the pieces' directions, of length 1; zeros if there is no token. So neither the number
        of the tokens of a piece nor the lengths of their vectors are a weight."""
        import numpy as np

        total: NDArray[float32] = np.zeros(self._vectors.shape[1], dtype=np.float32)
        for text, weight in pieces:
            total += weight * self.direction(text)
        length = float(np.linalg.norm(total))
        return total / length if length else total

    def _nearest_words(self, word: str) -> tuple[tuple[str, float], ...]:
        """The words of the table that are nearest to a word, each with its cosine, the largest first."""
        import numpy as np

        words, directions = self._words
        # Not "@": its threads wait for each other, a hundred times as long where all processors have work.
        cosines = np.round(np.einsum("ij,j->i", directions, self.direction(word)), 5)
        near = np.flatnonzero(cosines >= _NEAR)
        each = [(words[row], cosine) for row, cosine in zip(near.tolist(), cosines[near].tolist(), strict=True)]
        return tuple(sorted(each, key=lambda found: (-found[1], found[0]))[:_MOST])

    @cached_property
    def _words(self) -> tuple[list[str], NDArray[float32]]:
        """The tokens that are whole words, and their directions."""
        import numpy as np

        found = {token: each for token, each in self._tokenizer.get_vocab().items() if _WORD.fullmatch(token)}
        vectors = self._vectors.take(list(found.values()), axis=0)
        return [each[1:] for each in found], vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def direction(self, text: str) -> Any:
        """The mean of the vectors of the tokens, of length 1; zeros if there is no token."""
        import numpy as np

        total: NDArray[float32] = np.add.reduce(self._vectors.take(self.tokens(text), axis=0), axis=0)
        length = float(np.sqrt(total.dot(total)))
        return total / length if length else total

    def tokens(self, text: str) -> NDArray[int64]:
        """Those that the tokenizer makes of the text: word by word, since none of them goes beyond a word, and what it
        makes of a word is kept. A word is a piece with the spaces before it, but for the first of these."""
        import numpy as np

        storable = text if text.isascii() else _SURROGATES.sub("\ufffd", text)
        if any(map(storable.__contains__, self._whole)):
            # Not encode_batch(): its threads print a warning in each process that is forked later.
            return np.array(self._tokenizer.encode(storable, add_special_tokens=False).ids, dtype=np.int64)
        spaced = f" {storable}" if storable else ""
        if "  " in spaced or _SPACE in spaced or spaced.endswith(" "):
            pieces = [each[1:] for each in _PIECE.findall(spaced)]
        else:
            pieces = spaced.split(" ")[1:]  # which takes a quarter of the time
        return np.frombuffer(b"".join(map(self._kept.__getitem__, pieces)), dtype=np.int64)

    def _tokens_of_piece(self, piece: str) -> bytes:
        tokens = self._model.tokenize(f" {piece}".replace(" ", _SPACE))
        return array("q", [each.id for each in tokens]).tobytes()


_SURROGATES = re.compile(r"[\ud800-\udfff]")
_SPACE = "\u2581"
"""What a space is for the tokenizer, which puts one before each text."""
_PIECE = re.compile(f"[ {_SPACE}]+[^ {_SPACE}]*")
_WORD = re.compile(f"{_SPACE}[a-z]{{3,}}")
_NEAR, _MOST = 0.2, 32
"""Words with smaller cosines are not among the nearest, and these are no more."""
_LONGEST_KEPT = 40
"""Characters of a piece. Longer ones, such as those of scripts without spaces, do not come again."""
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
