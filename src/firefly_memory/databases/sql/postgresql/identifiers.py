"""Names of schemas and roles in statements that people run."""

from __future__ import annotations

import re

from sqlalchemy.dialects import postgresql

from firefly_memory.databases.sql.schema.names import WORDS_OF_POSTGRESQL
from firefly_memory.errors import ConfigurationError

_LONGEST = 63
"""Bytes. PostgreSQL cuts off the rest, and means another role then."""

_NEEDS_NO_QUOTES = re.compile("[a-z_][a-z0-9_$]*")

_NO_ROLES = {
    "public": "which PostgreSQL takes for all roles, also in quotes; name the role of the service",
    "none": "which PostgreSQL keeps for itself",
}


def quoted(name: str) -> str:
    """``name`` in quotes if it needs any, on one line whatever characters it has."""
    dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call] # with another, % is doubled
    preparer = dialect.identifier_preparer
    if _NEEDS_NO_QUOTES.fullmatch(name) and name not in WORDS_OF_POSTGRESQL:
        return str(preparer.quote(name))  # it knows the other reserved words
    if not name.isprintable():
        return f'U&"{"".join(map(_escaped, name))}"'
    return str(preparer.quote_identifier(name))


def _escaped(character: str) -> str:
    if character in '"\\':
        return character * 2
    return character if character.isprintable() else f"\\+{ord(character):06x}"


def quoted_role(name: str) -> str:
    """The same for one role; ``ConfigurationError`` for what is no name of one."""
    if not name or "\x00" in name:
        raise ConfigurationError(f"{name!r} is no name of a role")
    if name in _NO_ROLES:
        raise ConfigurationError(f"{name!r} is no name of a role, but a word {_NO_ROLES[name]}")
    if len(name.encode(errors="surrogatepass")) > _LONGEST:
        raise ConfigurationError(f"{name!r} is no name of a role: it has more than {_LONGEST} bytes")
    return quoted(name)
