"""For an application that uses Alembic itself, in a database that it shares with this library.

In its ``env.py``, so that ``alembic revision --autogenerate`` and ``alembic check`` leave this library's tables alone::

    from firefly_memory.alembic import include_name

    context.configure(..., include_name=include_name)

To have ``alembic upgrade heads`` bring this library's schema up to date as well, add :data:`VERSION_LOCATION` to
``version_locations`` in ``alembic.ini``. Names of schemas other than the default go through :class:`LeaveOut`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from firefly_memory.databases.sql.schema.host_branch import steps_of
from firefly_memory.databases.sql.schema.metadata import POSTGRESQL_SCHEMA, VERSION_TABLE, metadata
from firefly_memory.databases.sql.schema.objects import tables_of_objects
from firefly_memory.settings import read_facets_of_command, register_facets

__all__ = ["VERSION_LOCATION", "LeaveOut", "include_name", "include_object", "steps_of"]

VERSION_LOCATION = "firefly_memory:alembic_branch"
"""Where our revisions are for other Alembic environments: the branch ``firefly_memory``."""

IncludeName = Callable[[str | None, str, Any], bool]
IncludeObject = Callable[[Any, str | None, str, bool, Any], bool]


class LeaveOut:
    """Answers Alembic's questions with no for what is this library's, and else as the application would.

    ``schema_name`` is the PostgreSQL schema of the stores. On SQLite our tables are among the application's, and told
    by their names. So are those of the facets of other packages that the environment names.
    """

    def __init__(
        self,
        schema_name: str = POSTGRESQL_SCHEMA,
        *,
        include_name: IncludeName | None = None,
        include_object: IncludeObject | None = None,
    ) -> None:
        self._schema = schema_name
        self._then_name = include_name
        self._then_object = include_object

    def include_name(self, name: str | None, kind: str, parents: Any) -> bool:
        """For ``context.configure(include_name=…)``."""
        if kind == "schema" and name == self._schema:
            return False
        if kind == "table" and self._is_ours(name, parents.get("schema_name")):
            return False
        return self._then_name is None or self._then_name(name, kind, parents)

    def include_object(self, thing: Any, name: str | None, kind: str, reflected: bool, other: Any) -> bool:
        """For ``context.configure(include_object=…)``."""
        if kind == "table" and reflected and self._is_ours(name, thing.schema):
            return False
        return self._then_object is None or self._then_object(thing, name, kind, reflected, other)

    def _is_ours(self, table: str | None, schema_name: str | None) -> bool:
        return schema_name == self._schema or (schema_name is None and table in _tables())


def _tables() -> set[str]:
    """The names of the tables, asked for late: by then the facets of other packages are known."""
    _register_once()
    return {VERSION_TABLE, *metadata(None).tables, *tables_of_objects()}


@cache
def _register_once() -> None:
    register_facets(read_facets_of_command(None))


_default = LeaveOut()
include_name: IncludeName = _default.include_name
"""For ``context.configure(include_name=…)``: leaves out this library's tables and its default schema."""

include_object: IncludeObject = _default.include_object
"""For ``context.configure(include_object=…)``: leaves out this library's tables."""
