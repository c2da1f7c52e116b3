"""Which store is meant: one decision for ``from_config()``, for every command, and for Alembic.

docs/production.md has it as a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from firefly_memory.errors import ConfigurationError
from firefly_memory.settings import PREFIX, MemorySettings, naming, warn_the_caller
from firefly_memory.urls import Kind, database_in, directory_in, kind_of

_NAMES = {
    Kind.FILE: "file_dir",
    Kind.SQLITE: "sqlite_path",
    Kind.POSTGRES: "postgres_url",
    Kind.MONGODB: "mongodb_url",
}
"""The setting that names a store of each kind."""

_MODES = ("file_mode", "directory_mode")

_BESIDE = {
    Kind.FILE: _MODES,
    Kind.SQLITE: _MODES,
    Kind.POSTGRES: ("postgres_schema", "postgres_pool_size", "postgres_pool_min_size", "postgres_pooler"),
    Kind.MONGODB: ("mongodb_database", "mongodb_collection", "mongodb_pool_size"),
}
"""The settings that a store of each kind has beside its name."""

_ALL = {"url", "url_file", "backend", *_NAMES.values(), *(name for names in _BESIDE.values() for name in names)}

_SQLITE_IN_MEMORY = ":memory:"

_URL = re.compile(r"(?i:sqlite|file):|[A-Za-z][A-Za-z0-9+.-]+://")
"""What no path starts with, unless by mistake."""

_SERVERS = ("postgres_url", "mongodb_url")

_OPTIONS = {"schema_name": Kind.POSTGRES, "database": Kind.MONGODB, "collection": Kind.MONGODB}


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

    def check(self, kind: Kind) -> None:
        """``ConfigurationError`` for an option that is for stores of another kind."""
        for name, of in _OPTIONS.items():
            if getattr(self, name) is not None and kind is not of:
                option = self.option.format(name.removesuffix("_name"))
                raise ConfigurationError(f"{option} is for {of.in_words}, and the store is {kind.in_words}")


@dataclass(frozen=True, slots=True)
class Target:
    """A store: ``url`` and ``options`` are what :func:`~firefly_memory.by_url.connect` opens it by."""

    kind: Kind
    url: str = field(repr=False)
    options: dict[str, Any]
    variable: str | None
    """The variable that names it, or ``None`` where a command line does."""
    unused: tuple[str, ...] = ()
    """Variables that are set, name or describe a store, and have no say in this one."""
    only_for_commands: bool = False
    """Whether a manager's store is in memory all the same: no more is set than the URL of this server."""


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
        kind = next(kind for kind, name in _NAMES.items() if name == named[0])
        return replace(_by_backend(kind, settings, given), only_for_commands=True)
    if named:
        names = _listed(settings, named, "does", "do")
        raise ConfigurationError(f"set {PREFIX}BACKEND: without it {names} not say which store is meant")
    return None


def _by_url(url: str, named_by: str | None, settings: MemorySettings, given: Given) -> Target:
    kind = kind_of(url)
    given.check(kind)
    used = {*_BESIDE.get(kind, ())} | (set() if named_by is None else {"url", "url_file", "backend", _NAMES.get(kind)})
    options = _options(kind, settings, given)
    if kind is Kind.MONGODB:
        options["database"] = given.database or database_in(url) or settings.mongodb_database
    return Target(kind, url, options, named_by and settings.variable(named_by), _unused(settings, used))


def _by_backend(kind: Kind, settings: MemorySettings, given: Given) -> Target:
    given.check(kind)
    named_by = _NAMES.get(kind)
    name = None if named_by is None else _value(settings, named_by)
    if named_by is not None and not name:
        needed = f"{PREFIX}{named_by.upper()}"
        raise ConfigurationError(f"{PREFIX}BACKEND is {kind}, which needs {needed}, and that is not set")
    _check_name(kind, named_by, str(name), settings)
    match kind:
        case Kind.IN_MEMORY:
            url = "memory:"
        case Kind.FILE:
            url = f"file://{quote(str(name))}"
        case Kind.SQLITE:
            url = f"sqlite:///{quote(str(name))}"
        case _:
            url = str(name)
    options = _options(kind, settings, given)
    if kind is Kind.MONGODB and given.database is None and "mongodb_database" not in settings.model_fields_set:
        options["database"] = database_in(url) or settings.mongodb_database
    shown = {Kind.POSTGRES: f"{PREFIX}POSTGRES_…", Kind.MONGODB: f"{PREFIX}MONGODB_…"}
    source = shown.get(kind) or settings.variable(named_by or "backend")
    return Target(kind, url, options, source, _unused(settings, {"backend", named_by, *_BESIDE.get(kind, ())}))


def _check_name(kind: Kind, named_by: str | None, name: str, settings: MemorySettings) -> None:
    """``ConfigurationError`` for a URL where a path should be, and for one of another kind."""
    if named_by in _SERVERS:
        with naming(settings.variable(named_by)):
            of = kind_of(name)
        if of is not kind:
            problem = f"must be the URL of {kind.in_words}, not of {of.in_words}"
            name = settings.variable(named_by)
            raise ConfigurationError(f"{name} {problem}; a URL of any kind goes into {PREFIX}URL")
    elif named_by is not None and _URL.match(name):
        raise ConfigurationError(f"{settings.variable(named_by)} takes a path; a URL goes into {PREFIX}URL")


def _options(kind: Kind, settings: MemorySettings, given: Given) -> dict[str, Any]:
    """What a store of this kind is told beside its URL."""
    match kind:
        case Kind.POSTGRES:
            return {
                "schema_name": given.schema_name or settings.postgres_schema,
                "pool_size": settings.postgres_pool_size,
                "pool_min_size": settings.postgres_pool_min_size,
                "pooler": settings.postgres_pooler,
                "migrate": settings.migrate,
            }
        case Kind.MONGODB:
            return {
                "database": given.database or settings.mongodb_database,
                "collection": given.collection or settings.mongodb_collection,
                "pool_size": settings.mongodb_pool_size,
                "migrate": settings.migrate,
            }
        case Kind.SQLITE:
            return {"migrate": settings.migrate, **_modes(settings)}
        case Kind.FILE:
            return _modes(settings)
        case _:  # there is nothing to migrate
            return {}


def _modes(settings: MemorySettings) -> dict[str, int]:
    return {name: mode for name in _MODES if (mode := getattr(settings, name)) is not None}


def _refuse_contradictions(found: Target, named_by: str, settings: MemorySettings) -> None:
    for name in _contradictions(found.url, found.kind, settings):
        raise ConfigurationError(
            f"{settings.variable(name)} contradicts {settings.variable(named_by)}: unset one of them, "
            "or let both say the same"
        )


def _contradictions(url: str, kind: Kind, settings: MemorySettings) -> Iterator[str]:
    """Settings beside the URL of the environment that name another store."""
    if "backend" in settings.model_fields_set and settings.backend != kind:
        yield "backend"
    name = _NAMES.get(kind)
    if name in settings.model_fields_set and not _is_the_same(_value(settings, name), _name_in(url, kind), kind):
        yield name
    database = database_in(url) if kind is Kind.MONGODB else None
    if database and "mongodb_database" in settings.model_fields_set and settings.mongodb_database != database:
        yield "mongodb_database"


def _name_in(url: str, kind: Kind) -> str:
    """The part of a URL that the setting for stores of its kind has."""
    if kind is Kind.FILE:
        return directory_in(url)
    return unquote(url.partition(":///")[2]) or _SQLITE_IN_MEMORY if kind is Kind.SQLITE else url


def _is_the_same(value: str, named: str, kind: Kind) -> bool:
    """Whether a setting, unless it is empty, means what the URL names. A path may be written in several ways."""
    if value in ("", named):
        return True
    if kind not in (Kind.FILE, Kind.SQLITE) or _SQLITE_IN_MEMORY in (value, named) or "\0" in named:
        return False
    return os.path.realpath(value) == os.path.realpath(named)


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
