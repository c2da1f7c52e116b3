"""tiktoken's vocabularies, without a network."""

from __future__ import annotations

import functools
import gzip
import hashlib
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

VOCABULARIES = ("o200k_base", "cl100k_base")

LONG_ENOUGH = 60.0
"""Seconds that a process of tests waits for one: a busy machine may take its time."""


def fill_cache(directory: Path) -> Path:
    """``directory`` with what tiktoken would download. The package bpe-openai carries the same files."""
    found = find_spec("bpe_openai")
    assert found is not None
    assert found.origin is not None
    for name in VOCABULARIES:
        data = gzip.decompress((Path(found.origin).parent / "data" / f"{name}.tiktoken.gz").read_bytes())
        (directory / cached_as(name)).write_bytes(data)
    return directory


def cached_as(name: str) -> str:
    return hashlib.sha1(f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken".encode()).hexdigest()


@functools.cache
def other_implementation(name: str) -> Callable[[str], int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai  # type: ignore[import-untyped]

        encoding = bpe_openai.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))
