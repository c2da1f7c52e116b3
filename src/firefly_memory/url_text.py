"""The text of a URL: its parts, and its secrets masked. Which store a scheme stands for is decided in ``urls``."""

from __future__ import annotations

import re
from urllib.parse import unquote

DIRECTORY = ".firefly_memory"
"""Where files go unless a directory is named."""

_SERVER = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?")

_SECRET = re.compile("password|passwd|passphrase|token|properties|secret|scram_", re.IGNORECASE)

_MAY_HAVE_AN_AT = re.compile(f"user|application_?name|app_?name|options|{_SECRET.pattern}", re.IGNORECASE)


def scheme_of(url: str) -> str:
    """The scheme in small letters, without the driver after its ``+``; empty if there is none."""
    scheme, colon, _ = url.partition(":")
    return scheme.lower().partition("+")[0] if colon else ""


def directory_in(url: str) -> str:
    """The directory that ``file:directory`` or ``file:///directory`` names."""
    return unquote(url.partition(":")[2].removeprefix("//")) or DIRECTORY


def database_in(url: str) -> str | None:
    """The MongoDB database that ``mongodb://host/name`` names. ``admin`` is only where the user is known."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    name = unquote(path)
    # What cannot be a name is left to PyMongo to refuse: it may be a part of a password.
    return name if name != "admin" and re.fullmatch(r"[^/\\. \"$@:]+", name) else None


def masked_server_url(url: str) -> str:
    """The URL of a server, to be shown: with ``***`` in place of every secret, and of all but the scheme where the URL
    is ambiguous, for then a part of the password may be anywhere."""
    scheme, colon, _ = url.partition(":")
    return _masked(url) or (f"{scheme}://***" if colon else "***")


def is_ambiguous(url: str) -> bool:
    """Whether the URL of a server can be read in two ways."""
    return ":" in url and _masked(url) is None


def is_option(name: str) -> bool:
    """Whether ``name`` can be the name of an option in a URL. If not, a part of a password may be in it."""
    return re.fullmatch(r"\w{1,63}", name, re.ASCII) is not None


def _masked(url: str) -> str | None:
    """``url`` without its secrets; ``None`` if it can be read in two ways."""
    scheme, _, rest = url.partition(":")
    before, mark, query = rest.removeprefix("//").partition("?")
    shown, parameters = _credentials_masked(before), [_parameter_masked(each) for each in query.split("&")]
    if not rest.startswith("//") or shown is None or None in parameters:
        return None
    return f"{scheme}://{shown}{mark}{'&'.join(filter(None, parameters))}"


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
