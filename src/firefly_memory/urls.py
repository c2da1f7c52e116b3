"""The table of URLs: for each scheme the store that it opens, and what serves that store. ``connect(url)`` opens it.

Nobody else asks for a scheme: whoever needs to know what is behind a URL asks the row of the table. Rows name what they
need as ``"package.module:object"``, which is loaded when it is used: the drivers of the others may not be installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from firefly_memory.errors import ConfigurationError
from firefly_memory.facets import load_name
from firefly_memory.likely_names import scheme_meant, sqlite_url_meant
from firefly_memory.url_text import database_in, masked_server_url, scheme_of
from firefly_memory.validation import require_extra

if TYPE_CHECKING:
    from firefly_memory.stores.base import EntryStore

EXAMPLES = "sqlite:///memory.db, postgresql://host/name, mongodb://host/, file:directory or memory:"


class Kind(StrEnum):
    """The kinds of stores, as the variable BACKEND calls them."""

    IN_MEMORY = "in_memory"
    FILE = "file"
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    MONGODB = "mongodb"

    @property
    def row(self) -> Row:
        return TABLE[self]

    @property
    def in_words(self) -> str:
        return self.row.in_words


class Medium(Enum):
    """Where the data of a store is."""

    MEMORY = "memory"
    FILE = "file"
    DIRECTORY = "directory"
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of store. What it does not have is ``None``, or empty."""

    kind: Kind
    in_words: str
    schemes: tuple[str, ...]
    """The first one is used for the URL of a path."""

    medium: Medium
    driver: tuple[str, str] | None
    """The package without which nothing of this row can be loaded, and the extra that brings it."""

    store: str
    """The class. Its first argument is the URL of a server, or the path that the URL names."""

    path: str | None
    """``path(url)``: the file or directory that the URL names."""

    options_in: Callable[[str], dict[str, Any]]
    """``options_in(url)``: options of the store that the URL itself says."""

    setting: str | None
    """The setting that names a store of this kind."""

    options: Mapping[str, str]
    """Options of the store, and the setting that has each."""

    read_only: str | None
    """``with read_only(path, timeout=…) as store``: the file is only read."""

    dialect: str | None
    """The name of the SQL dialect."""

    database: str | None
    """``with database(url, schema_name, timeout) as (engine, place)``: one connection at a time to a SQL database."""

    migrations: str | None
    """The class that runs revisions on such a database, and says which it is at."""

    indexes: str | None
    """``indexes(store.database)``: where indexes differ from what this version needs. For stores without revisions."""

    diagnosis: str
    """``diagnosis(url, timeout=…, **options)``: what the doctor finds."""

    estimates: str | None
    """``estimates(url, options)``: about how many documents each collection has, where there is no ``database``."""

    legacy: str | None
    """The importer of what the predecessors kept in such a place."""

    def load(self, column: str) -> Any:
        """What the dotted name in ``column`` stands for; ``MissingDependencyError`` where its driver is missing."""
        if self.driver is not None:
            require_extra(self.store.partition(":")[2], *self.driver)
        return load_name(getattr(self, column))

    @property
    def has_schema(self) -> bool:
        """Whether there is something to migrate."""
        return "migrate" in self.options


def _nothing(_: str) -> dict[str, Any]:
    return {}


def _database_option(url: str) -> dict[str, Any]:
    named = database_in(url)
    return {} if named is None else {"database": named}


_MODES = {"file_mode": "file_mode", "directory_mode": "directory_mode"}
_SQL = "firefly_memory.databases.sql"
_LEGACY = "firefly_memory.transfer.importers.firefly_legacy"

_ROWS = (
    Row(
        kind=Kind.IN_MEMORY,
        in_words="memory",
        schemes=("memory",),
        medium=Medium.MEMORY,
        driver=None,
        store="firefly_memory.stores.memory:InMemoryStore",
        path=None,
        options_in=_nothing,
        setting=None,
        options={},
        read_only=None,
        dialect=None,
        database=None,
        migrations=None,
        indexes=None,
        diagnosis="firefly_memory.databases.diagnostics:of_memory",
        estimates=None,
        legacy=None,
    ),
    Row(
        kind=Kind.FILE,
        in_words="files",
        schemes=("file",),
        medium=Medium.DIRECTORY,
        driver=None,
        store="firefly_memory.stores.file:FileStore",
        path="firefly_memory.url_text:directory_in",
        options_in=_nothing,
        setting="file_dir",
        options=_MODES,
        read_only=None,
        dialect=None,
        database=None,
        migrations=None,
        indexes=None,
        diagnosis="firefly_memory.service.file_diagnosis:diagnose",
        estimates=None,
        legacy=f"{_LEGACY}.files:IMPORTER",
    ),
    Row(
        kind=Kind.SQLITE,
        in_words="SQLite",
        schemes=("sqlite",),
        medium=Medium.FILE,
        driver=None,
        store="firefly_memory.stores.sqlite:SQLiteStore",
        path=f"{_SQL}.sqlite.database:sqlite_path",
        options_in=_nothing,
        setting="sqlite_path",
        options={"migrate": "migrate", **_MODES},
        read_only="firefly_memory.stores.read_only:read_only_store",
        dialect="sqlite",
        database=f"{_SQL}.sqlite.one_connection:one_connection",
        migrations=f"{_SQL}.schema.commands:Administration",
        indexes=None,
        diagnosis=f"{_SQL}.sqlite.diagnosis:diagnose",
        estimates=None,
        legacy=f"{_LEGACY}.tables:SQLITE_IMPORTER",
    ),
    Row(
        kind=Kind.POSTGRES,
        in_words="PostgreSQL",
        schemes=("postgresql", "postgres"),
        medium=Medium.SERVER,
        driver=None,  # either of two, each for its kind of methods: the store and its engines look
        store="firefly_memory.stores.postgresql:PostgreSQLStore",
        path=None,
        options_in=_nothing,
        setting="postgres_url",
        options={
            "schema_name": "postgres_schema",
            "pool_size": "postgres_pool_size",
            "pool_min_size": "postgres_pool_min_size",
            "pooler": "postgres_pooler",
            "migrate": "migrate",
        },
        read_only=None,
        dialect="postgresql",
        database=f"{_SQL}.postgresql.one_connection:one_connection",
        migrations=f"{_SQL}.schema.commands:Administration",
        indexes=None,
        diagnosis=f"{_SQL}.postgresql.diagnosis:diagnose",
        estimates=None,
        legacy=f"{_LEGACY}.tables:POSTGRESQL_IMPORTER",
    ),
    Row(
        kind=Kind.MONGODB,
        in_words="MongoDB",
        schemes=("mongodb",),
        medium=Medium.SERVER,
        driver=("pymongo", "mongodb"),
        store="firefly_memory.stores.mongodb:MongoDBStore",
        path=None,
        options_in=_database_option,
        setting="mongodb_url",
        options={
            "database": "mongodb_database",
            "collection": "mongodb_collection",
            "pool_size": "mongodb_pool_size",
            "migrate": "migrate",
        },
        read_only=None,
        dialect=None,
        database=None,
        migrations=None,
        indexes="firefly_memory.databases.mongodb.diagnosis:index_differences",
        diagnosis="firefly_memory.databases.mongodb.diagnosis:diagnose",
        estimates="firefly_memory.databases.mongodb.estimates:estimated_documents",
        legacy=f"{_LEGACY}.documents:IMPORTER",
    ),
)

TABLE = {row.kind: row for row in _ROWS}

_BY_SCHEME = {scheme: row for row in _ROWS for scheme in row.schemes}


def row_of_scheme(url: str) -> Row | None:
    """The row of the scheme of ``url``, in capitals or not; ``None`` if no store has URLs that begin so."""
    return _BY_SCHEME.get(scheme_of(url))


def row_of(url: str) -> Row:
    """The row of what ``url`` names; ``ConfigurationError`` if that is no store."""
    scheme, colon, rest = url.partition(":")
    row = row_of_scheme(url)
    if row is not None and (row.medium is not Medium.MEMORY or rest in ("", "//")):
        return row
    # Not the URL itself: it may hold a password.
    known = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) if colon else None
    problem = f"no store has a URL that starts with {scheme!r}:" if known else "this is not a URL:"
    meant = scheme_meant(scheme, _BY_SCHEME) if known else None
    exact = sqlite_url_meant(url)
    if exact is not None:
        problem += f" use {exact} for this file; URLs of other stores are"
    elif meant is not None:
        problem += f" did you mean {meant!r}? Use"
    else:
        problem += " use"
    raise ConfigurationError(f"{problem} {EXAMPLES}")


def without_password(url: str) -> str:
    """``url`` to be shown: with ``***`` in place of every secret. What names a path has none."""
    row = row_of_scheme(url)
    if row is None or row.medium is Medium.SERVER:
        return masked_server_url(url)
    is_path = row.medium is not Medium.FILE or url.partition(":")[2].startswith("///")
    return url if is_path else masked_server_url(url)


class AnyURL(Protocol):
    """An object with a URL, such as SQLAlchemy's."""

    def render_as_string(self, hide_password: bool = True) -> str:
        """The URL as text."""
        ...


class StoreOptions(TypedDict, total=False):
    """The options of the stores that :func:`connect` opens. Each store has some of them; see its class."""

    timeout: float
    migrate: bool
    pool_size: int
    pool_min_size: int
    pooler: str | None
    schema_name: str
    synchronous: str
    database: str
    collection: str
    file_mode: int
    directory_mode: int
    max_turns_kept: int | None


def connect(url: str | AnyURL, **options: Unpack[StoreOptions]) -> EntryStore:
    """Open the store that ``url`` names; ``options`` are those of its class.

    ==========================================  ==========================================================
    ``sqlite:///memory.db``                     :class:`SQLiteStore`
    ``postgresql://…``, ``postgres://…``        :class:`PostgreSQLStore`
    ``mongodb://…``, ``mongodb+srv://…``        :class:`MongoDBStore`; ``mongodb://host/name`` names the database
    ``file:directory``, ``file:///directory``   :class:`FileStore`
    ``memory:``                                 :class:`InMemoryStore`
    ==========================================  ==========================================================
    """
    if not isinstance(url, str) and not hasattr(url, "render_as_string"):
        raise ConfigurationError(f"connect() needs a URL such as {EXAMPLES}, not {type(url).__name__}")
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    row = row_of(text)
    arguments = [] if row.medium is Medium.MEMORY else [text if row.path is None else row.load("path")(text)]
    store: EntryStore = row.load("store")(*arguments, **(row.options_in(text) | options))
    return store
