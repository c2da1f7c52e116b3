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

NOTHING_SHOWN = "{}://***"
"""How a URL is shown that can be read in two ways, after its scheme."""

_SERVER = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?")

_SECRET = re.compile("password|passwd|passphrase|token|properties|secret|scram_", re.IGNORECASE)

_MAY_HAVE_AN_AT = re.compile(f"user|application_?name|app_?name|options|{_SECRET.pattern}", re.IGNORECASE)


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
    """``url`` to be shown: with ``***`` in place of every secret, and of all but the scheme where it can be read in
    two ways, for then a part of the password may be anywhere."""
    scheme, colon, rest = url.partition(":")
    kind = _SCHEMES.get(scheme.lower().partition("+")[0])
    if kind in (Kind.FILE, Kind.IN_MEMORY) or (kind is Kind.SQLITE and rest.startswith("///")):
        return url
    before, mark, query = rest.removeprefix("//").partition("?")
    shown, parameters = _credentials_masked(before), [_parameter_masked(each) for each in query.split("&")]
    if not rest.startswith("//") or shown is None or None in parameters:
        return NOTHING_SHOWN.format(scheme) if colon else "***"
    return f"{scheme}://{shown}{mark}{'&'.join(filter(None, parameters))}"


def is_option(name: str) -> bool:
    """Whether ``name`` can be the name of an option in a URL. If not, a part of a password may be in it."""
    return re.fullmatch(r"\w{1,63}", name, re.ASCII) is not None


def _credentials_masked(before: str) -> str | None:
    """What is before the parameters; ``None`` if it may not be what it looks like."""
    credentials, at, servers = before.rpartition("@")
    user, colon, password = credentials.partition(":")
    if "/" in password or not all(_SERVER.fullmatch(each) for each in servers.partition("/")[0].split(",")):
        return None
    return f"{user}:***@{servers}" if colon else f"{user}{at}{servers}"


def _parameter_masked(parameter: str) -> str | None:
    """``name=value``; ``None`` if it may be the end of a password, and hosts."""
    name, equals, value = parameter.partition("=")
    if (parameter and not equals) or "@" in name or ("@" in value and not _MAY_HAVE_AN_AT.search(unquote(name))):
        return None
    # MongoDB's may be separated by semicolons, and a password may have one in it.
    return f"{name}=***" if _SECRET.search(unquote(parameter.rpartition("=")[0])) else parameter
