"""What can be read from the URL of a store without its driver."""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import unquote

from firefly_memory.errors import ConfigurationError

EXAMPLES = "sqlite:///memory.db, postgresql://host/name, mongodb://host/, file:directory or memory:"

DIRECTORY = ".firefly_memory"
"""Where files go unless a directory is named."""


class Kind(StrEnum):
    """The kinds of stores, as the variable BACKEND calls them."""

    IN_MEMORY = "in_memory"
    FILE = "file"
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    MONGODB = "mongodb"

    @property
    def in_words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Kind.IN_MEMORY: "memory",
    Kind.FILE: "files",
    Kind.SQLITE: "SQLite",
    Kind.POSTGRES: "PostgreSQL",
    Kind.MONGODB: "MongoDB",
}

_SCHEMES = {
    "memory": Kind.IN_MEMORY,
    "file": Kind.FILE,
    "sqlite": Kind.SQLITE,
    "postgresql": Kind.POSTGRES,
    "postgres": Kind.POSTGRES,
    "mongodb": Kind.MONGODB,
}


def kind_of(url: str) -> Kind:
    """The kind of store that ``url`` names, by its scheme, in capitals or not."""
    scheme, colon, rest = url.partition(":")
    kind = _SCHEMES.get(scheme.lower().partition("+")[0]) if colon else None
    if kind is not None and (kind is not Kind.IN_MEMORY or rest in ("", "//")):
        return kind
    # Not the URL itself: it may hold a password.
    known = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) if colon else None
    problem = f"no store has a URL that starts with {scheme!r}:" if known else "this is not a URL:"
    raise ConfigurationError(f"{problem} use {EXAMPLES}")


def directory_in(url: str) -> str:
    """The directory that ``file:directory`` or ``file:///directory`` names."""
    return unquote(url.partition(":")[2].removeprefix("//")) or DIRECTORY


def database_in(url: str) -> str | None:
    """The MongoDB database that ``mongodb://host/name`` names. ``admin`` is only where the user is known."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    name = unquote(path)
    # What cannot be a name is left to PyMongo to refuse: it may be a part of a password.
    return name if name != "admin" and re.fullmatch(r"[^/\\. \"$@:]+", name) else None


def without_password(url: str) -> str:
    """``url`` to be shown: with ``***`` in place of every secret."""
    scheme, separator, rest = url.partition("://")
    credentials, at, servers = rest.rpartition("@")
    if at:
        user = credentials.partition(":")[0]
        rest = f"{user}:***@{servers}" if ":" in credentials else f"{user}@{servers}"
    shown = f"{scheme}{separator}{rest}"
    return re.sub(r"([?&][^=&]*(?:password|token|properties|secret)[^=&]*=)[^&]*", r"\1***", shown, flags=re.IGNORECASE)
