"""What a facet registers, and which facets there are.

A facet is one part of the memory, in one package: entries, conversations, agent history. It declares here what the rest
of the library needs of it: its tables and collections, its operations, how it is archived and copied. Nothing else in
the library names a facet.

A declaration holds dotted names, ``"package.module:object"``, which are loaded when they are needed: reading the
declarations loads no driver and no SQLAlchemy. What does not apply is declared ``absent``, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import ConfigurationError, NotSupportedError

L = TypeVar("L")

FACETS = (
    "firefly_memory.entries.facet:FACET",
    "firefly_memory.conversations.facet:FACET",
    "firefly_memory.agent_history.facet:FACET",
)
"""The facets of this library, in the order in which they are archived and copied."""


@dataclass(frozen=True, slots=True)
class Absent:
    """What a facet does not have, and why."""

    reason: str


def absent(reason: str) -> Absent:
    """For an entry of a declaration that does not apply."""
    return Absent(reason)


_NOT_DECLARED: Any = object()

Name = str | Absent
"""A dotted name, ``"package.module:object"``."""


class _Declaration:
    """A group of entries, each of which has to be given."""

    def __post_init__(self) -> None:
        missing = [each.name for each in fields(self) if getattr(self, each.name) is _NOT_DECLARED]  # type: ignore[arg-type]
        if missing:
            name = getattr(self, "name", _NOT_DECLARED)
            of = "a facet" if name is _NOT_DECLARED else f"the facet {name!r}"
            group = type(self).__name__
            raise ConfigurationError(
                f"{group} of {of} does not declare {', '.join(missing)}: give each a value, or absent('the reason')"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Storage(_Declaration):
    """Where a facet keeps its data."""

    tables: Name = _NOT_DECLARED
    """``define(tables, columns)``, which adds its tables and their indexes to a ``MetaData``."""
    revisions: Path | Absent = _NOT_DECLARED
    """The folder of its Alembic revisions. The first of them names the newest revision before it."""
    sqlite_functions: Name = _NOT_DECLARED
    """``(connection)``: adds the functions that its revisions call on SQLite."""
    objects: Name = _NOT_DECLARED
    """What Alembic does not see, each a :class:`~firefly_memory.databases.sql.schema.objects.SchemaObject`: full-text
    tables, triggers, generated columns."""
    accelerators: Name = _NOT_DECLARED
    """Indexes that need an extension of the database, and without which the answers are the same."""
    collections: Name = _NOT_DECLARED
    """Its collections on MongoDB, as :class:`~firefly_memory.databases.mongodb.collections.Collection`."""
    document_upgrades: Name = _NOT_DECLARED
    """``(connection, migrate, in_transaction)``: what its revisions are on MongoDB."""
    distribution_key: str | Absent = _NOT_DECLARED
    """The column by which PostgreSQL may distribute its tables over several nodes."""
    shard_key: str | Absent = _NOT_DECLARED
    """The same on MongoDB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Operations(_Declaration):
    """Its operations, one class for each kind of store. Each is made once for a store and mode."""

    sql: Name = _NOT_DECLARED
    """``(executor, dialect)``: SQLite and PostgreSQL."""
    mongodb: Name = _NOT_DECLARED
    """``(access)``, a :class:`~firefly_memory.databases.mongodb.access.MongoAccess`."""
    in_memory: Name = _NOT_DECLARED
    """``(memory)``: the in-memory store."""
    in_files: Name = _NOT_DECLARED
    """``(entries, files)``: directories of files."""
    over_entries: Name = _NOT_DECLARED
    """``(entries)``: stores of users' own, which have nothing but entries."""
    expiry: Name = _NOT_DECLARED
    """``(log, limit, now)``: deletes some of what has expired or was left behind. The part of ``cleanup_expired()``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Moving(_Declaration):
    """How it goes from one store to another. :mod:`firefly_memory.moving` has the types.

    A facet with nothing to move is declared with ``moving=absent("the reason")``.
    """

    kinds: str = _NOT_DECLARED
    """The kinds of its items in archives and copies, in order: a tuple of :class:`~firefly_memory.moving.Kind`."""
    writer: str = _NOT_DECLARED
    """``(view, writing)``, a :class:`~firefly_memory.moving.FacetWriter`."""
    if_missing: str | Absent = _NOT_DECLARED
    """What is said if a target that lacks the facet is given items of it."""
    without: str | Absent = _NOT_DECLARED
    """The help of the option ``--without-<name>``, which leaves the facet out; absent if it always goes along."""
    nothing_but_messages: bool = _NOT_DECLARED
    """Whether it has nothing left without messages: then an export without messages leaves it out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class People(_Declaration):
    """Whose data it is."""

    owner: str | Absent = _NOT_DECLARED
    """The column or field with the id of the person."""
    aliases: Name = _NOT_DECLARED
    """Further ids of the same person."""
    erase: Name = _NOT_DECLARED
    """Deletes everything of a person."""
    find_text: Name = _NOT_DECLARED
    """Finds a text anywhere in the facet's data, to prove that it was erased."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Looking(_Declaration):
    """How people look into it."""

    diagnosis: Name = _NOT_DECLARED
    """What ``firefly-memory doctor`` looks at."""
    sizes: Name = _NOT_DECLARED
    """Counts and sizes."""
    resource: Name = _NOT_DECLARED
    """The kind, fields, filters and orders for the command line, REST and the page."""
    wakeups: Name = _NOT_DECLARED
    """What tells waiting readers that there is something new."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Packaging(_Declaration):
    """What belongs to it beside its code."""

    settings: Name = _NOT_DECLARED
    """Its part of the environment."""
    extra: str | Absent = _NOT_DECLARED
    """The extra of the package that installs what it needs."""
    rules: Name = _NOT_DECLARED
    """Its rules in the conformance kit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Facet(_Declaration):
    """The declaration of a facet."""

    name: str = _NOT_DECLARED
    title: str = _NOT_DECLARED
    """The name in sentences."""
    storage: Storage | Absent = _NOT_DECLARED
    operations: Operations | Absent = _NOT_DECLARED
    moving: Moving | Absent = _NOT_DECLARED
    people: People | Absent = _NOT_DECLARED
    looking: Looking | Absent = _NOT_DECLARED
    packaging: Packaging | Absent = _NOT_DECLARED

    def stored(self, entry: str) -> Any:
        """An entry of its storage, loaded; ``None`` if there is none."""
        return load(self.storage, entry)


class Purged(NamedTuple):
    """What one batch of a clean-up did."""

    deleted: int
    more: bool
    """Whether there may be more to delete."""


@dataclass(frozen=True, slots=True)
class LogOf(Generic[L]):
    """Asks a store for the operations of a facet: ``view.log(CONVERSATION_LOG)``. The type says what they are."""

    facet: str


class HasLogs(Protocol):
    """A :class:`~firefly_memory.protocols.StoreView`, as far as facets are concerned."""

    def log(self, of: LogOf[L]) -> L: ...


def log_if_there(view: HasLogs, of: LogOf[L]) -> L | None:
    """The operations of a facet, or ``None`` if the store lacks the facet."""
    try:
        return view.log(of)
    except NotSupportedError:
        return None


_making = ForkSafeLock()


class FacetLogs:
    """The operations of the facets in one store and mode: of each facet once, when it is first asked for."""

    def __init__(self, kind: str, make: Callable[[Any], Any]) -> None:
        """``kind`` is the entry of :class:`Operations` for such a store, and ``make`` makes what it names."""
        self._kind = kind
        self._make = make
        self._made: dict[str, Any] = {}

    def __call__(self, of: LogOf[L]) -> L:
        made = self._made.get(of.facet)
        if made is None:
            with _making:  # what it keeps in memory must be kept once
                made = self._made.get(of.facet)
                if made is None:
                    made = self._made[of.facet] = self._make(self._named(facet_named(of.facet)))
        return made  # type: ignore[no-any-return]

    def _named(self, facet: Facet) -> Any:
        log = load(facet.operations, self._kind)
        if log is None:
            raise NotSupportedError(f"{facet.title} cannot be kept in {STORES[self._kind]}; {_stores_with(facet)} can")
        return log

    def made(self) -> Iterable[Any]:
        """Those that have been asked for."""
        return self._made.values()


STORES = {
    "sql": "SQLiteStore and PostgreSQLStore",
    "mongodb": "MongoDBStore",
    "in_memory": "InMemoryStore",
    "in_files": "FileStore",
    "over_entries": "a store with the five methods only",
}
"""The stores that each entry of :class:`Operations` is for."""


def _stores_with(facet: Facet) -> str:
    if isinstance(facet.operations, Absent):
        return "none"
    kept = [kind for kind in STORES if not isinstance(getattr(facet.operations, kind), Absent)]  # loads no driver
    return ", ".join(STORES[kind] for kind in kept)


def load(group: _Declaration | Absent, entry: str) -> Any:
    """What an entry of a group names; ``None`` if it is absent."""
    declared = group if isinstance(group, Absent) else getattr(group, entry)
    if isinstance(declared, Absent):
        return None
    return load_name(declared) if isinstance(declared, str) else declared


@cache
def load_name(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


_registered: list[Facet] = []
_all: tuple[Facet, ...] | None = None


def all_facets() -> tuple[Facet, ...]:
    """Every facet, those of this library first."""
    global _all  # noqa: PLW0603 - loaded once, at every store's first use
    if _all is None:
        _all = (*(load_name(name) for name in FACETS), *_registered)
    return _all


def facet_named(name: str) -> Facet:
    return next(each for each in all_facets() if each.name == name)


def register(facet: Facet) -> None:
    """Add a facet of another package. Before the first store is opened: stores know the facets of that moment."""
    global _all  # noqa: PLW0603
    if any(facet.name == each.name for each in all_facets()):
        raise ConfigurationError(f"there is a facet named {facet.name!r} already")
    _registered.append(facet)
    _all = None


@contextmanager
def registered(facets: Sequence[Facet]) -> Iterator[None]:
    """For tests: these facets as well, for a while."""
    global _all  # noqa: PLW0603
    before = len(_registered)
    for each in facets:
        register(each)
    try:
        yield
    finally:
        del _registered[before:]
        _all = None
