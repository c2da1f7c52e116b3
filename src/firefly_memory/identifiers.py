"""Ids, namespaces and keys: checked at the door, and made fit for backends that cannot take every character.

PostgreSQL has no U+0000 in text and nobody has surrogates, so those are written as escapes that start with U+0010
(which is itself doubled). All other text is stored as it is. The escape keeps different names different and
prefixes prefixes; every backend stores the same form, so that all sort alike.
"""

from __future__ import annotations

import os
import re
import threading
import time

from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.errors import InvalidEntryError
from firefly_memory.validation import checked_text

MAX_LENGTH = 512

ESCAPE = "\x10"
"""Starts every escape; a stored name without it is the original."""

CONVERSATIONS = "conversation:"
"""What no namespace of entries begins with: some stores keep conversations in namespaces that do."""

RESERVED = f"begins with {CONVERSATIONS!r}, which is kept for conversations; use another name"

RENAMED_CONVERSATIONS = "renamed:conv:"
"""What takes the place of :data:`CONVERSATIONS` in a name that was in use before; it has the same length."""

PAST_CONVERSATIONS = f"{CONVERSATIONS}\U0010ffff"
"""Sorts after them, and before every other name that does."""

_TO_ESCAPE = re.compile("[\x00\x10\ud800-\udfff]")
_ESCAPED = re.compile("\x10([\x100]|d[89a-f][0-9a-f]{2})")


def stored_name(what: str, name: str) -> str:
    """``name`` as the backends keep it, or :class:`InvalidEntryError` saying what is wrong with ``what``."""
    if not checked_text(what, name):
        raise InvalidEntryError(what, "must not be empty")
    if len(name) > MAX_LENGTH:
        raise InvalidEntryError(what, f"is {len(name)} characters long; at most {MAX_LENGTH} are allowed")
    return stored_text(name)


def stored_namespace(namespace: str) -> str:
    """:func:`stored_name` of a namespace for entries: none of those that some stores keep conversations in."""
    stored = stored_name("namespace", namespace)
    if stored.startswith(CONVERSATIONS):
        raise InvalidEntryError("namespace", RESERVED)
    return stored


def namespace_out_of_the_way(namespace: str) -> str:
    """Where entries are since revision 0004 that were saved in a namespace for conversations; as long as it was."""
    if not namespace.startswith(CONVERSATIONS):
        return namespace
    return RENAMED_CONVERSATIONS + namespace.removeprefix(CONVERSATIONS)


def stored_text(text: str) -> str:
    """The stored form of any text, such as a prefix to search for."""
    if type(text) is not str:
        text = str.__str__(text)
    return _TO_ESCAPE.sub(_escape, text) if _TO_ESCAPE.search(text) else text


def original_name(stored: str) -> str:
    """The name that :func:`stored_name` was given."""
    return _ESCAPED.sub(_unescape, stored) if ESCAPE in stored else stored


def stored_or_none(text: str | None) -> str | None:
    return None if text is None else stored_text(text)


def original_or_none(stored: str | None) -> str | None:
    return None if stored is None else original_name(stored)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\x00":
        return "\x100"
    return "\x10\x10" if character == "\x10" else f"\x10{ord(character):x}"


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code == "\x10":
        return "\x10"
    return "\x00" if code == "0" else chr(int(code, 16))


class _Uuid7(ForkAware):
    """Version 7 UUIDs (RFC 9562) that grow with every call: milliseconds, a 42-bit counter, 32 random bits."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._last = (0, 0)

    def __call__(self) -> str:
        random = os.urandom(10)
        milliseconds = time.time_ns() // 1_000_000
        with self._lock:
            last_milliseconds, counter = self._last
            if milliseconds > last_milliseconds:
                counter = int.from_bytes(random[:6]) & 0x1FF_FFFF_FFFF
            else:
                milliseconds, counter = last_milliseconds, counter + 1
            self._last = (milliseconds, counter)
        bits = milliseconds << 80 | 0x7 << 76 | (counter >> 30) << 64 | 0b10 << 62 | (counter & 0x3FFF_FFFF) << 32
        digits = f"{bits | int.from_bytes(random[6:]):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


new_entry_id = _Uuid7()
"""A new id that sorts after every id this process made before."""
