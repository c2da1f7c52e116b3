"""Names of schemas and roles in statements that people run."""

from __future__ import annotations

from sqlalchemy.dialects import postgresql

from firefly_memory.errors import ConfigurationError

_LONGEST = 63
"""Bytes. PostgreSQL cuts off the rest, and means another role then."""

_NO_ROLES = {
    "public": "which PostgreSQL takes for all roles, also in quotes; name the role of the service",
    "none": "which PostgreSQL keeps for itself",
}


def quoted(name: str) -> str:
    """``name`` in quotes if it needs any."""
    dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call] # with another, % is doubled
    return str(dialect.identifier_preparer.quote(name))


def quoted_role(name: str) -> str:
    """The same for one role; ``ConfigurationError`` for what is no name of one."""
    if not name or "\x00" in name:
        raise ConfigurationError(f"{name!r} is no name of a role")
    if name in _NO_ROLES:
        raise ConfigurationError(f"{name!r} is no name of a role, but a word {_NO_ROLES[name]}")
    if len(name.encode(errors="surrogatepass")) > _LONGEST:
        raise ConfigurationError(f"{name!r} is no name of a role: it has more than {_LONGEST} bytes")
    return quoted(name)
