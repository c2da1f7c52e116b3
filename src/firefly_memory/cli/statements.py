"""What ``firefly-memory db sql`` and ``db grants`` print. No database is asked."""

from __future__ import annotations

from firefly_memory.cli.output import show
from firefly_memory.cli.target import Where
from firefly_memory.databases.sql.schema.commands import grants, script
from firefly_memory.errors import ConfigurationError


def print_script(where: Where, revisions: str, dialect: str | None) -> None:
    start, colon, end = revisions.partition(":")
    if not colon:
        raise ConfigurationError(f"{revisions!r} is no range; write FROM:TO, such as base:head or 0001:0002")
    dialect, schema_name = _written_for(where, dialect)
    text = script(dialect, schema_name, start or "base", end or "head")
    show({"sql": text}, [text.rstrip()])


def print_grants(where: Where, role: str) -> None:
    dialect, schema_name = _written_for(where)
    if dialect != "postgresql":
        raise ConfigurationError("only PostgreSQL has roles to grant to; whoever may write the SQLite file may use it")
    statements = grants(role, schema_name)
    show({"statements": statements}, statements)


def _written_for(where: Where, chosen: str | None = None) -> tuple[str, str]:
    """The dialect and the schema that statements are printed for: PostgreSQL's, unless something else is named."""
    if chosen is not None and where.url is None and where.url_file is None:
        return chosen, where.schema or where.settings.postgres_schema
    found = where.target_if_any()
    if found is None:
        return "postgresql", where.schema or where.settings.postgres_schema
    if found.row.dialect is None:
        raise ConfigurationError(f"statements are for SQLite and PostgreSQL, and the store is {found.row.in_words}")
    return chosen or found.row.dialect, found.schema_name
