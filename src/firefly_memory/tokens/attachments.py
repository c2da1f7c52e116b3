"""The tokens of files, by a table: providers do not bill the base64 text of images, sound, video and documents."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

Count = Callable[[str], int]

_IMAGE = 1_600
IMAGE_IN_LOW_DETAIL = 85
_UNKNOWN_LENGTH = {"audio": 2_000, "video": 18_000, "document": 4_000}
_BYTES_PER_TOKEN = {"audio": 250, "video": 500, "document": 20}
_BYTES_PER_TOKEN_OF_PCM = 1_000
_SMALLEST_DOCUMENT = 1_000
_PCM = re.compile(r"wav|aiff|pcm|l16")
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml")


def file_tokens(media_type: str, size: int | None) -> int:
    """The tokens of a file of ``size`` bytes; ``None`` stands for an unknown size, for example of a URL."""
    kind, _, form = media_type.lower().partition("/")
    if kind == "image":
        return _IMAGE
    if kind not in _BYTES_PER_TOKEN:
        kind = "document"
    if size is None:
        return _UNKNOWN_LENGTH[kind]
    rate = _BYTES_PER_TOKEN_OF_PCM if kind == "audio" and _PCM.search(form) else _BYTES_PER_TOKEN[kind]
    return max(_SMALLEST_DOCUMENT if kind == "document" else 1, size // rate)


def bytes_tokens(count: Count, media_type: str, data: Any) -> int:
    """The tokens of a file. ``data`` is bytes, base64 text, a data URL, or anything else if it is unknown."""
    if isinstance(data, str):
        if data.startswith("data:"):
            head, _, data = data.partition(",")
            media_type = head.removeprefix("data:").partition(";")[0] or media_type
        if media_type.startswith(_TEXT_TYPES):
            data = _from_base64(data)
        else:
            return file_tokens(media_type, len(data) * 3 // 4)
    if not isinstance(data, bytes):
        return file_tokens(media_type, None)
    if media_type.startswith(_TEXT_TYPES):  # is sent as text
        return count(data.decode(errors="replace"))
    return file_tokens(media_type, len(data))


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "==")
    except ValueError:  # not base64: count the text itself
        return text.encode(errors="replace")
