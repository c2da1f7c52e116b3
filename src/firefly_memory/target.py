"""Which store is meant: one decision for ``from_config()``, for every command, and for Alembic; and opening it.

docs/production.md has it as a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.errors import ConfigurationError, DatabaseConnectionError
from firefly_memory.settings import PREFIX, MemorySettings, naming, warn_the_caller
from firefly_memory.url_text import directory_in
from firefly_memory.urls import TABLE, Kind, Medium, Row, connect, row_of

if TYPE_CHECKING:
    from firefly_memory.databases.sql.schema.commands import Administration
    from firefly_memory.stores.base import EntryStore

_ALL = {
    "url",
    "url_file",
    "backend",
    *(row.setting for row in TABLE.values() if row.setting),
    *(setting for row in TABLE.values() for setting in row.options.values()),
} - {"migrate"}
"""The settings that name or describe a store."""

_SQLITE_IN_MEMORY = ":memory:"

_OF_PATHS = "|".join(row.schemes[0] for row in TABLE.values() if row.medium in (Medium.FILE, Medium.DIRECTORY))

_URL = re.compile(rf"(?i:{_OF_PATHS}):|[A-Za-z][A-Za-z0-9+.-]+://")
"""What no path starts with, unless by mistake."""

_SERVERS = [str(row.setting) for row in TABLE.values() if row.medium is Medium.SERVER]

_GIVEN = ("schema_name", "database", "collection")


@dataclass(frozen=True, slots=True)
class Given:
    """What a command line says: it comes before the environment. ``option`` is how an option is called there, and
    ``url_file`` where the URL came from, if it did."""

    url: str | None = field(default=None, repr=False)
    schema_name: str | None = None
    database: str | None = None
    collection: str | None = None
    option: str = "--{}"
    url_file: Path | None = None

    def beside_the_url(self, row: Row) -> dict[str, Any]:
        """Its options of the store; ``ConfigurationError`` for one that is for stores of another kind."""
        options = {name: value for name in _GIVEN if (value := getattr(self, name)) is not None}
        for name in options:
            if name not in row.options:
                of = next(other for other in TABLE.values() if name in other.options)
                option = self.option.format(name.removesuffix("_name"))
                raise ConfigurationError(f"{option} is for {of.in_words}, and the store is {row.in_words}")
        return {name: value for name, value in options.items() if value}


@dataclass(frozen=True, slots=True)
class Target:
    """A store: ``url`` and ``options`` are what :func:`~firefly_memory.connect` opens it by."""

    kind: Kind
    url: str = field(repr=False)
    options: dict[str, Any]
    variable: str | None
    """The variable that names it, or ``None`` where a command line does."""
    unused: tuple[str, ...] = ()
    """Variables that are set, name or describe a store, and have no say in this one."""
    only_for_commands: bool = False
    """Whether a manager's store is in memory all the same: no more is set than the URL of this server."""

    @property
    def row(self) -> Row:
        return self.kind.row

    @property
    def schema_name(self) -> str:
        """The PostgreSQL schema. SQLite has none, and leaves it aside."""
        return str(self.options.get("schema_name", POSTGRESQL_SCHEMA))


NOTHING = Given()


def target(settings: MemorySettings, given: Given = NOTHING, *, for_a_manager: bool = False) -> Target | None:
    """The store that is meant; ``None`` where nothing names one.

    Without BACKEND and URL, ``for_a_manager`` it is the one in memory, with a warning if a store is named all the same.
    ``ConfigurationError`` names the variables that are missing or contradict each other.
    """
    url = settings.store_url if given.url is None else None
    if given.url is not None:
        return _by_url(given.url, None, settings, given)
    if url is not None:
        named_by = "url" if settings.url is not None else "url_file"
        with naming(settings.variable(named_by)):
            found = _by_url(url, named_by, settings, given)
        _refuse_contradictions(found, named_by, settings)
        return found
    if "backend" in settings.model_fields_set:
        return _by_backend(Kind(settings.backend), settings, given)
    named = [name for name in ("sqlite_path", *_SERVERS) if _value(settings, name)]
    if for_a_manager:
        if named:
            warn_the_caller(
                f"everything is kept in memory and ends with the process: {_listed(settings, named, 'is', 'are')} "
                f"not used unless {PREFIX}BACKEND says so, as one of {', '.join(Kind)}"
            )
        return _by_backend(Kind.IN_MEMORY, settings, given)
    if len(named) == 1 and named[0] in _SERVERS:
        kind = next(row.kind for row in TABLE.values() if row.setting == named[0])
        return replace(_by_backend(kind, settings, given), only_for_commands=True)
    if named:
        names = _listed(settings, named, "does", "do")
        raise ConfigurationError(f"set {PREFIX}BACKEND: without it {names} not say which store is meant")
    return None


def _by_url(url: str, named_by: str | None, settings: MemorySettings, given: Given) -> Target:
    row = row_of(url)
    options = {**_options(row, settings), **row.options_in(url), **given.beside_the_url(row)}
    used = {*row.options.values()} | (set() if named_by is None else {"url", "url_file", "backend", row.setting})
    return Target(row.kind, url, options, named_by and settings.variable(named_by), _unused(settings, used))


def _by_backend(kind: Kind, settings: MemorySettings, given: Given) -> Target:
    row = kind.row
    given_options = given.beside_the_url(row)
    name = None if row.setting is None else _value(settings, row.setting)
    if row.setting is not None and not name:
        needed = f"{PREFIX}{row.setting.upper()}"
        raise ConfigurationError(f"{PREFIX}BACKEND is {kind}, which needs {needed}, and that is not set")
    _check_name(row, str(name), settings)
    url = _url(row, str(name))
    in_url = {
        option: value
        for option, value in row.options_in(url).items()
        if row.options[option] not in settings.model_fields_set
    }
    options = {**_options(row, settings), **in_url, **given_options}
    source = settings.variable(row.setting or "backend")
    if row.medium is Medium.SERVER:
        source = f"{PREFIX}{kind.upper()}_…"
    used = {"backend", row.setting, *row.options.values()}
    return Target(kind, url, options, source, _unused(settings, used))


def _url(row: Row, name: str) -> str:
    """The URL of a store whose setting is ``name``."""
    match row.medium:
        case Medium.MEMORY:
            return f"{row.schemes[0]}:"
        case Medium.DIRECTORY:
            return f"{row.schemes[0]}://{quote(name)}"
        case Medium.FILE:
            return f"{row.schemes[0]}:///{quote(name)}"
        case Medium.SERVER:
            return name


def _check_name(row: Row, name: str, settings: MemorySettings) -> None:
    """``ConfigurationError`` for a URL where a path should be, and for one of another kind."""
    if row.setting is None:
        return
    variable = settings.variable(row.setting)
    if row.medium is Medium.SERVER:
        with naming(variable):
            of = row_of(name)
        if of is not row:
            problem = f"must be the URL of {row.in_words}, not of {of.in_words}"
            raise ConfigurationError(f"{variable} {problem}; a URL of any kind goes into {PREFIX}URL")
    elif _URL.match(name):
        raise ConfigurationError(f"{variable} takes a path; a URL goes into {PREFIX}URL")


def _options(row: Row, settings: MemorySettings) -> dict[str, Any]:
    """What the settings tell a store beside its URL. A mode that is not set is the store's own."""
    values = {option: getattr(settings, setting) for option, setting in row.options.items()}
    return {option: value for option, value in values.items() if value is not None or not option.endswith("_mode")}


def _refuse_contradictions(found: Target, named_by: str, settings: MemorySettings) -> None:
    for name in _contradictions(found, settings):
        raise ConfigurationError(
            f"{settings.variable(name)} contradicts {settings.variable(named_by)}: unset one of them, "
            "or let both say the same"
        )


def _contradictions(found: Target, settings: MemorySettings) -> Iterator[str]:
    """Settings beside the URL of the environment that name another store."""
    row, was_set = found.row, settings.model_fields_set
    if "backend" in was_set and settings.backend != found.kind:
        yield "backend"
    if row.setting is not None and row.setting in was_set and not _is_the_same(_value(settings, row.setting), found):
        yield row.setting
    for option, value in row.options_in(found.url).items():
        setting = row.options[option]
        if setting in was_set and getattr(settings, setting) != value:
            yield setting


def _is_the_same(value: str, found: Target) -> bool:
    """Whether a setting, unless it is empty, means what the URL names. A path may be written in several ways."""
    named = _name_in(found)
    if value in ("", named):
        return True
    if found.row.medium is Medium.SERVER or _SQLITE_IN_MEMORY in (value, named) or "\0" in named:
        return False
    return os.path.realpath(value) == os.path.realpath(named)


def _name_in(found: Target) -> str:
    """The part of its URL that the setting for stores of its kind has."""
    match found.row.medium:
        case Medium.DIRECTORY:
            return directory_in(found.url)
        case Medium.FILE:
            return unquote(found.url.partition(":///")[2]) or _SQLITE_IN_MEMORY
        case _:
            return found.url


def _value(settings: MemorySettings, name: str) -> str:
    """A setting in plain text; empty where it is not set."""
    value = getattr(settings, name)
    return str(getattr(value, "get_secret_value", lambda: value or "")())


def _unused(settings: MemorySettings, used: set[str | None]) -> tuple[str, ...]:
    return tuple(settings.variable(name) for name in sorted((settings.model_fields_set & _ALL) - used))


def _listed(settings: MemorySettings, names: list[str], of_one: str, of_several: str) -> str:
    """The variables and their verb."""
    *others, last = [settings.variable(name) for name in names]
    return f"{', '.join(others)} and {last} {of_several}" if others else f"{last} {of_one}"


def configured_store(settings: MemorySettings) -> EntryStore:
    """Make the store of a manager. ``ConfigurationError`` names the variable to blame."""
    found = target(settings, for_a_manager=True)
    assert found is not None
    return store_of(found)


def store_of(found: Target, *, timeout: float | None = None, **options: Any) -> EntryStore:
    """Make it; ``options`` come before those that the settings have. What is in memory waits for nothing."""
    if timeout is not None and found.row.medium is not Medium.MEMORY:
        options["timeout"] = timeout
    with naming(found.variable):
        return connect(found.url, **{**found.options, **options})


def path_of(found: Target) -> Path | None:
    """The file or directory of the store; ``None`` where it is on a server or in memory."""
    if found.row.path is None:
        return None
    with naming(found.variable):
        path = found.row.load("path")(found.url)
    return None if path == _SQLITE_IN_MEMORY and found.row.medium is Medium.FILE else Path(path)


@contextmanager
def reading(found: Target, *, timeout: float = 30.0) -> Iterator[EntryStore]:
    """The store, opened to be read only: nothing is made, migrated or changed. It has to be there, and be current."""
    path = path_of(found)
    if path is not None and found.row.read_only is not None:
        with found.row.load("read_only")(path, timeout=timeout) as read_only:
            yield read_only
        return
    with changing(found, timeout=timeout) as store:
        yield store


@contextmanager
def changing(found: Target, *, timeout: float = 30.0) -> Iterator[EntryStore]:
    """The store, opened to change what is in it: it is not made or migrated. It has to be there, and be current."""
    store = store_of(found, timeout=timeout, **({"migrate": False} if "migrate" in found.options else {}))
    if store.path is not None and found.row.read_only is None and not store.path.is_dir():
        raise DatabaseConnectionError("read", f"there is no directory {store.path}")
    with store:
        yield store


def database_of(found: Target, timeout: float, *, reading: bool = False) -> AbstractContextManager[Any]:
    """A SQL database, for one connection at a time: its engine and place. With ``reading`` it is only read."""
    modes = {name: mode for name, mode in found.options.items() if name == "file_mode"}
    database: AbstractContextManager[Any] = found.row.load("database")(
        found.url, found.schema_name, timeout, reading=reading, **modes
    )
    return database


@contextmanager
def migrations_of(
    found: Target, *, timeout: float, lock_timeout: float | None = None, reading: bool = False
) -> Iterator[Administration]:
    """What runs the revisions of a SQL database, and says which it is at."""
    with database_of(found, timeout, reading=reading) as (engine, db_name):
        yield found.row.load("migrations")(engine, db_name, timeout=timeout, lock_timeout=lock_timeout)
