"""The files that tiktoken reads for its encodings, and whether tiktoken must download them.

The code does the same as ``tiktoken.load``. A test compares the table with the installed tiktoken.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_SERVER = "https://openaipublic.blob.core.windows.net"
_GPT2 = f"{_SERVER}/gpt-2/encodings/main"
_P50K = {
    f"{_SERVER}/encodings/p50k_base.tiktoken": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
}
_O200K = {
    f"{_SERVER}/encodings/o200k_base.tiktoken": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}

FILES = {
    "gpt2": {
        f"{_GPT2}/vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        f"{_GPT2}/encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    },
    "r50k_base": {
        f"{_SERVER}/encodings/r50k_base.tiktoken": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    },
    "p50k_base": _P50K,
    "p50k_edit": _P50K,
    "cl100k_base": {
        f"{_SERVER}/encodings/cl100k_base.tiktoken": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    },
    "o200k_base": _O200K,
    "o200k_harmony": _O200K,
}
"""For each of tiktoken's own encodings the URLs of its files and the SHA-256 of their contents."""


def download_is_allowed() -> bool:
    """Whether the environment allows downloads: ``TIKTOKEN_CACHE_DIR`` names the directory for downloaded files."""
    return bool(os.environ.get("TIKTOKEN_CACHE_DIR"))


def needs_download(encoding_name: str) -> bool:
    """Whether a file of the encoding is missing or damaged. The files of an unknown encoding count as missing."""
    files = FILES.get(encoding_name)
    return files is None or not all(_is_cached(url, sha256) for url, sha256 in files.items())


def _is_cached(url: str, sha256: str) -> bool:
    directory = _cache_directory()
    if not directory:  # then tiktoken caches no file
        return False
    try:
        data = Path(directory, hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == sha256


def _cache_directory() -> str:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return str(Path(tempfile.gettempdir(), "data-gym-cache"))
