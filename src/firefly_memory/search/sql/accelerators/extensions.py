"""Extensions of PostgreSQL: whether they are there, where, and how they get there."""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlalchemy import Connection, column, exc, select, table
from sqlalchemy.dialects.postgresql import pg_catalog

from firefly_memory.databases.sql.errors import sqlstate
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.errors import ConfigurationError, NotSupportedError

_extensions = table("pg_extension", *map(column, ("extname", "extversion", "extnamespace")), schema="pg_catalog")
_offered = table("pg_available_extensions", column("name"), schema="pg_catalog")
_LACKS_A_RIGHT = "42501"
_IS_THERE = ("42710", "23505")
"""Somebody else was faster."""

_PUBLIC = "public"
"""Where an extension is put: where other software of the database looks for it."""


class Extension(NamedTuple):
    """An extension that a database has."""

    schema: str
    version: str

    @property
    def number(self) -> tuple[int, ...]:
        """The version, to be compared."""
        return version_number(self.version)


def version_number(version: str) -> tuple[int, ...]:
    """The parts of a version."""
    return tuple(map(int, re.findall(r"\d+", version)))


def extension_in(connection: Connection, name: str) -> Extension | None:
    """The extension, if the database has it."""
    extensions, spaces = _extensions, pg_catalog.pg_namespace
    found = (
        select(spaces.c.nspname, extensions.c.extversion)
        .join_from(extensions, spaces, spaces.c.oid == extensions.c.extnamespace)
        .where(extensions.c.extname == name)
    )
    row = connection.execute(found).one_or_none()
    return None if row is None else Extension(*row)


def is_offered(connection: Connection, name: str) -> bool:
    """Whether the server can make the extension."""
    return connection.execute(select(_offered.c.name).where(_offered.c.name == name)).first() is not None


def needed(connection: Connection, name: str, package: str) -> Extension:
    """The extension, made if the role may. ``package`` is what an administrator installs."""
    found = extension_in(connection, name)
    if found is not None:
        return found
    if not is_offered(connection, name):
        raise NotSupportedError(
            f"the server does not offer the extension {name}; an administrator of the server can install {package}"
        )
    spaces = pg_catalog.pg_namespace
    if connection.execute(select(spaces.c.oid).where(spaces.c.nspname == _PUBLIC)).first() is None:
        raise ConfigurationError(f"the extension {name} is not there; {_an_administrator(name)}")
    try:
        connection.exec_driver_sql(f"CREATE EXTENSION IF NOT EXISTS {quoted(name)} SCHEMA {_PUBLIC}")
    except exc.DBAPIError as error:
        if sqlstate(error) == _LACKS_A_RIGHT:
            raise ConfigurationError(
                f"this role may not create the extension {name}; {_an_administrator(name)}"
            ) from error
        if sqlstate(error) not in _IS_THERE:
            raise
    made = extension_in(connection, name)
    assert made is not None
    return made


def _an_administrator(name: str) -> str:
    return f"let an administrator of the database run: CREATE EXTENSION {quoted(name)};"
