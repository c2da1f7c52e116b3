"""Embeds with the default embedder in a process that may open no socket, and prints what it finds."""

from __future__ import annotations

import sys
from typing import Any

from firefly_memory.search.embedders.batches import embed_all
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder

TEXTS = ["I adopted a puppy", "We bought a dog", "The invoice is overdue"]


def refuse_sockets(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith("socket."):
        raise ConnectionError(f"there is no network: {event}")


def main(_: list[str]) -> None:
    sys.addaudithook(refuse_sockets)
    dog, same, other = embed_all(WordLlamaEmbedder(), TEXTS)
    print("near" if dog @ same > 2 * (dog @ other) else "far", "wordllama" in sys.modules)


if __name__ == "__main__":
    main([])
