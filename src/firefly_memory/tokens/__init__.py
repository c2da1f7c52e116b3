"""The tokens of texts, files, messages and turns.

``estimator`` has the public class, and adds up what a message costs. ``tiktoken_loader`` loads vocabularies and counts
with them; ``tiktoken_files`` knows the files that they come from. ``formula`` estimates texts without a vocabulary.
``attachments`` has the table for images, sound, video and documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.tokens.attachments import file_tokens
    from firefly_memory.tokens.estimator import PER_MESSAGE, PER_TOOL, TokenEstimator
    from firefly_memory.tokens.tiktoken_loader import EstimatedTokensWarning

__all__ = ["PER_MESSAGE", "PER_TOOL", "EstimatedTokensWarning", "TokenEstimator", "file_tokens"]

_ESTIMATOR = "firefly_memory.tokens.estimator"
_WHERE = {
    "EstimatedTokensWarning": "firefly_memory.tokens.tiktoken_loader",
    "PER_MESSAGE": _ESTIMATOR,
    "PER_TOOL": _ESTIMATOR,
    "TokenEstimator": _ESTIMATOR,
    "file_tokens": "firefly_memory.tokens.attachments",
}


if not TYPE_CHECKING:  # or no checker would notice a misspelt name

    def __getattr__(name: str) -> Any:
        return lazily(name, _WHERE, globals())
