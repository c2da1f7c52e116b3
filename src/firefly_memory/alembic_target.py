"""What ``migrations/env.py`` runs, and which database that works on: what ``-x`` and the environment say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from firefly_memory.databases.sql.schema.alembic_env import NamedDatabase, run_in_environment
from firefly_memory.databases.sql.schema.migrate import checked_schema_name
from firefly_memory.errors import ConfigurationError
from firefly_memory.settings import read_settings_of_command, read_url_file, register_facets
from firefly_memory.target import Given, database_of, target


def run_in_alembic(context: Any) -> None:
    """Run the revisions that Alembic asks for, or only write them down. ``context`` is ``alembic.context``."""

    def named(arguments: Mapping[str, str]) -> NamedDatabase:
        return database_named(arguments, _facets(context.get_x_argument()))

    run_in_environment(context, named)


def _facets(arguments: Sequence[str]) -> list[str]:
    """Each ``-x facet=…``: there may be several, of which a mapping has the last."""
    pairs = (each.partition("=") for each in arguments)
    return [value for name, _, value in pairs if name == "facet"]


def database_named(arguments: Mapping[str, str], facets: Sequence[str] = ()) -> NamedDatabase:
    """The database; ``ConfigurationError`` where none is named, or a store without revisions.

    The facets that are named are registered first: their revisions are run as well.
    """
    for name in ("url", "url_file", "env_file", "schema", "facet"):
        if not arguments.get(name, name).strip():
            raise ConfigurationError(f"-x {name}= is empty; give it a value, or leave it out")
    url, url_file, env_file = arguments.get("url"), arguments.get("url_file"), arguments.get("env_file")
    if url is not None and url_file is not None:
        raise ConfigurationError("-x url= and -x url_file= both name a database; leave out one of them")
    if url_file is not None:
        url = read_url_file(Path(url_file))
    given = Given(url, arguments.get("schema"), option="-x {}=")
    settings = read_settings_of_command(None if env_file is None else Path(env_file))
    register_facets(settings, facets, option="-x facet=")
    found = target(settings, given)
    if found is None:
        raise ConfigurationError(
            "no database: set FIREFLY_AGENTIC_MEMORY_URL or FIREFLY_AGENTIC_MEMORY_POSTGRES_URL, "
            "or pass -x url_file=FILE or -x url=postgresql://…"
        )
    if found.row.dialect is None:
        raise ConfigurationError(f"revisions are for SQLite and PostgreSQL, and the store is {found.row.in_words}")
    store = found

    def opened(timeout: float, *, reading: bool = False) -> AbstractContextManager[Any]:
        return database_of(store, timeout, reading=reading)

    return NamedDatabase(found.row.dialect, checked_schema_name(found.schema_name), opened)
