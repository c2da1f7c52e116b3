"""The declaration of a facet, in groups: what the rest of the library needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firefly_memory.facets.declaration import NOT_DECLARED, Absent, Declaration, Name, load


@dataclass(frozen=True, kw_only=True, eq=False)
class Storage(Declaration):
    """Where a facet keeps its data."""

    tables: Name = NOT_DECLARED
    """``define(tables, columns)``, which adds its tables and their indexes to a ``MetaData``."""
    revisions: Path | Absent = NOT_DECLARED
    """The folder of its Alembic revisions. The first of them names the newest revision before it."""
    sqlite_functions: Name = NOT_DECLARED
    """``(connection)``: adds the functions that its revisions call on SQLite."""
    objects: Name = NOT_DECLARED
    """What Alembic does not see, each a :class:`~firefly_memory.databases.sql.schema.objects.SchemaObject`: full-text
    tables, triggers, generated columns."""
    accelerators: Name = NOT_DECLARED
    """Its :class:`~firefly_memory.databases.sql.schema.accelerators.Accelerators`: indexes that need an extension of
    the database, and that no operation needs."""
    collections: Name = NOT_DECLARED
    """Its collections on MongoDB, as :class:`~firefly_memory.databases.mongodb.collections.Collection`."""
    document_upgrades: Name = NOT_DECLARED
    """``(connection, migrate, in_transaction)``: what its revisions are on MongoDB."""
    distribution_key: str | Absent = NOT_DECLARED
    """The column by which PostgreSQL may distribute its tables over several nodes. Each unique key has it."""
    shard_key: str | Absent = NOT_DECLARED
    """The same on MongoDB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Operations(Declaration):
    """Its operations, one class for each kind of store. Each is made once for a store and mode."""

    sql: Name = NOT_DECLARED
    """``(executor, dialect)``: SQLite and PostgreSQL."""
    mongodb: Name = NOT_DECLARED
    """``(access)``, a :class:`~firefly_memory.databases.mongodb.access.MongoAccess`."""
    in_memory: Name = NOT_DECLARED
    """``(memory)``: the in-memory store."""
    in_files: Name = NOT_DECLARED
    """``(entries, files)``: directories of files."""
    over_entries: Name = NOT_DECLARED
    """``(entries)``: stores of users' own, which have nothing but entries."""
    expiry: Name = NOT_DECLARED
    """``(log, limit, now)``: deletes some of what has expired or was left behind. The part of ``cleanup_expired()``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Moving(Declaration):
    """How it goes from one store to another. :mod:`firefly_memory.moving` has the types.

    A facet with nothing to move is declared with ``moving=absent("the reason")``.
    """

    kinds: str = NOT_DECLARED
    """The kinds of its items in archives and copies, in order: a tuple of :class:`~firefly_memory.moving.Kind`."""
    writer: str = NOT_DECLARED
    """``(view, writing)``, a :class:`~firefly_memory.moving.FacetWriter`."""
    if_missing: str | Absent = NOT_DECLARED
    """What is said if a target that lacks the facet is given items of it."""
    without: str | Absent = NOT_DECLARED
    """The help of the option ``--without-<name>``, which leaves the facet out; absent if it always goes along."""
    nothing_but_messages: bool = NOT_DECLARED
    """Whether it has nothing left without messages: then an export without messages leaves it out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class People(Declaration):
    """Whose data it is."""

    owner: str | Absent = NOT_DECLARED
    """The column or field with the id of the person."""
    aliases: Name = NOT_DECLARED
    """``(view)``, an :class:`~firefly_memory.people.Aliases`: further ids of the same person, which an erasure follows,
    and the erasure of the rows that tell them."""
    erase: Name = NOT_DECLARED
    """``(view)``, an :class:`~firefly_memory.people.Eraser`: deletes everything of a person."""
    find_text: Name = NOT_DECLARED
    """``(view, text)``: how often a text is in data that is in none of the facet's tables and collections, which are
    searched with all others."""
    retention: Name = NOT_DECLARED
    """``(view)``, a :class:`~firefly_memory.people.Pruner`: finds and deletes what is too old, or too much."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Looking(Declaration):
    """How people look into it."""

    diagnosis: Name = NOT_DECLARED
    """What ``firefly-memory doctor`` looks at."""
    sizes: Name = NOT_DECLARED
    """Counts and sizes."""
    resources: Name = NOT_DECLARED
    """A tuple of :class:`~firefly_memory.looking.Resource`: what people list, show and delete on the command line."""
    wakeups: Name = NOT_DECLARED
    """What tells waiting readers that there is something new."""
    index: Name = NOT_DECLARED
    """``(view, work)``, an :class:`~firefly_memory.search.keeping.IndexKeeper`: keeps the index that it is searched
    by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Packaging(Declaration):
    """What belongs to it beside its code."""

    settings: Name = NOT_DECLARED
    """Its part of the environment."""
    extra: str | Absent = NOT_DECLARED
    """The extra of the package that installs what it needs."""
    rules: Name | tuple[str, ...] = NOT_DECLARED
    """Its rules in the conformance kit: the modules that have them, or what loads all of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Facet(Declaration):
    """The declaration of a facet."""

    name: str = NOT_DECLARED
    title: str = NOT_DECLARED
    """The name in sentences."""
    storage: Storage | Absent = NOT_DECLARED
    operations: Operations | Absent = NOT_DECLARED
    moving: Moving | Absent = NOT_DECLARED
    people: People | Absent = NOT_DECLARED
    looking: Looking | Absent = NOT_DECLARED
    packaging: Packaging | Absent = NOT_DECLARED

    @property
    def option_without(self) -> str:
        """The option of commands that leaves the facet out."""
        return f"--without-{self.name.replace('_', '-')}"

    def stored(self, entry: str) -> Any:
        """An entry of its storage, loaded; ``None`` if there is none."""
        return load(self.storage, entry)
