"""pgvector: the vectors of one embedder in a column of its type, with an index of their nearest neighbours (HNSW).

The column stands beside the vector of each row. A trigger fills it in the statement that writes the row, so writers
know nothing of it, and it goes with its row. Other embedders' rows have nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    column,
    func,
    literal_column,
    select,
    table,
    update,
)
from sqlalchemy.dialects.postgresql import pg_catalog

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.databases.sql.schema.accelerators import Accelerator, AcceleratorState, Progress, Wanted
from firefly_memory.databases.sql.schema.metadata import metadata
from firefly_memory.databases.sql.schema.migrate import migrating
from firefly_memory.databases.sql.schema.migration_lock import online_lock
from firefly_memory.errors import ConfigurationError, NotSupportedError
from firefly_memory.search.index import Subject
from firefly_memory.search.sql.accelerators.extensions import extension_in, is_offered, needed
from firefly_memory.search.sql.accelerators.pg_trgm import build_index, drop_index
from firefly_memory.search.sql.accelerators.vector_trigger import trigger_function

NAME = "pgvector"
EXTENSION = "vector"

COLUMN = re.compile("vector_[0-9a-f]{8}")
"""The names of the columns."""

_LARGEST_VECTOR, _LARGEST_HALF_VECTOR = 2_000, 4_000
"""Dimensions that an index of pgvector takes: of numbers with four bytes, and with two."""

_PAGE = 500
_WALKS = 5
"""Rows that somebody else has locked are left out, so the walk is repeated."""

_BUILD = "m = 16, ef_construction = 64"

_extensions = table("pg_extension", *map(column, ("extname", "extversion")), schema="pg_catalog")
_triggers = table("pg_trigger", *map(column, ("tgname", "tgrelid", "tgenabled")), schema="pg_catalog")


class VectorColumn(NamedTuple):
    """The column of one embedder, as it is in the database."""

    name: str
    embedder: str | None
    type: str
    dimensions: int
    extension: str
    """The schema of its type."""
    trigger: bool | None
    """Whether it is switched on; ``None`` if it is not there."""
    valid: bool | None
    """Whether the index is complete; ``None`` if it is not there."""
    version: str
    """Of pgvector."""
    usable: bool
    """Whether this role may use what is in the extension's schema."""

    @property
    def problem(self) -> str:
        """What is wrong with it."""
        if not self.trigger:
            return "without its trigger"
        return "" if self.valid else "without a complete index"


def column_name(embedder: str) -> str:
    """The column of an embedder."""
    return f"vector_{sha256(embedder.encode(errors='surrogatepass')).hexdigest()[:8]}"


def index_name(subject: Subject, name: str) -> str:
    """The index of a column."""
    return f"idx_{subject.table.removeprefix('memory_')}_{name}"


def columns_of(subject: Subject, schema_name: str) -> Select[Any]:
    """A row of :class:`VectorColumn` for each embedder that has a column."""
    c, a, spaces = pg_catalog.pg_class, pg_catalog.pg_attribute, pg_catalog.pg_namespace
    types, indexes, index = pg_catalog.pg_type, pg_catalog.pg_index, pg_catalog.pg_class.alias("index")
    of_type = spaces.alias("of_type")
    prefix = index_name(subject, "")
    its_name = index.c.relname == func.pg_catalog.concat(prefix, a.c.attname)
    valid = (
        select(indexes.c.indisvalid)
        .join(index, index.c.oid == indexes.c.indexrelid)
        .where(indexes.c.indrelid == c.c.oid, its_name)
        .scalar_subquery()
    )
    trigger = (
        select(_triggers.c.tgenabled != literal_column("'D'"))
        .where(_triggers.c.tgrelid == c.c.oid, _triggers.c.tgname == a.c.attname)
        .scalar_subquery()
    )
    version = select(_extensions.c.extversion).where(_extensions.c.extname == EXTENSION).scalar_subquery()
    usable = func.pg_catalog.has_schema_privilege(of_type.c.oid, "USAGE")
    comment = func.pg_catalog.col_description(c.c.oid, a.c.attnum)
    return (
        select(a.c.attname, comment, types.c.typname, a.c.atttypmod, of_type.c.nspname, trigger, valid, version, usable)
        .join_from(c, spaces, spaces.c.oid == c.c.relnamespace)
        .join(a, and_(a.c.attrelid == c.c.oid, a.c.attisdropped.is_(False)))
        .join(types, types.c.oid == a.c.atttypid)
        .join(of_type, of_type.c.oid == types.c.typnamespace)
        .where(spaces.c.nspname == schema_name, c.c.relname == subject.vectors)
        .where((types.c.typname == "vector") | (types.c.typname == "halfvec"))
        .order_by(a.c.attname)
    )


class VectorColumns:
    """The columns of one subject."""

    name = NAME

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def states(self, connection: Connection, schema_name: str) -> list[Accelerator]:
        found = list(self._columns(connection, schema_name))
        if found:
            return [
                self._accelerator(
                    AcceleratorState.BROKEN if each.problem else AcceleratorState.ENABLED, each.problem, each.embedder
                )
                for each in found
            ]
        if extension_in(connection, EXTENSION) is None and not is_offered(connection, EXTENSION):
            return [self._accelerator(AcceleratorState.NOT_OFFERED, "the server does not offer the extension vector")]
        return [self._accelerator(AcceleratorState.DISABLED)]

    def enable(
        self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float, progress: Progress | None
    ) -> None:
        embedder, schema_name = str(wanted.embedder), str(db_name.schema_name)
        with online_lock(connection, db_name, timeout):
            extension = needed(connection, EXTENSION, "pgvector")
            _check_version(connection)
            name = column_name(embedder)
            dimensions = self._dimensions(connection, schema_name, wanted)
            kind = _type_for(dimensions)
            there = {each.name: each for each in self._columns(connection, schema_name)}.get(name)
            _check_column(there, embedder, dimensions)
            if there is None or not there.trigger:
                with migrating(connection, db_name, timeout):
                    for each in self._definition(connection, schema_name, extension.schema, embedder, kind, dimensions):
                        _run(connection, each)
            self._fill(connection, schema_name, embedder, progress)
            operators = f"{quoted(extension.schema)}.{kind}_cosine_ops"
            definition = f"hnsw ({name} {operators}) WITH ({_BUILD})"
            build_index(connection, schema_name, self._subject.vectors, index_name(self._subject, name), definition)

    def disable(self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float) -> None:
        schema_name = str(db_name.schema_name)
        with online_lock(connection, db_name, timeout):
            for each in list(self._columns(connection, schema_name)):
                if wanted.embedder not in (None, each.embedder):
                    continue
                drop_index(connection, schema_name, index_name(self._subject, each.name))
                with migrating(connection, db_name, timeout):
                    of = f"{quoted(schema_name)}.{self._subject.vectors}"
                    _run(connection, f"DROP TRIGGER IF EXISTS {each.name} ON {of}")
                    _run(connection, f"DROP FUNCTION IF EXISTS {self._function(schema_name, each.name)}()")
                    _run(connection, f"ALTER TABLE {of} DROP COLUMN IF EXISTS {each.name}")

    def _accelerator(self, state: AcceleratorState, problem: str = "", embedder: str | None = None) -> Accelerator:
        return Accelerator(kind=self._subject.kind, name=NAME, state=state, embedder=embedder, problem=problem)

    def _columns(self, connection: Connection, schema_name: str) -> Iterator[VectorColumn]:
        for row in connection.execute(columns_of(self._subject, schema_name)):
            if COLUMN.fullmatch(row[0]):
                yield VectorColumn(*row)

    def _function(self, schema_name: str, name: str) -> str:
        return f"{quoted(schema_name)}.{self._subject.vectors}_{name}"

    def _dimensions(self, connection: Connection, schema_name: str, wanted: Wanted) -> int:
        """Of a stored vector, or else of the embedder."""
        c = self._table(schema_name).c
        stored = select(func.pg_catalog.octet_length(c.vector)).where(c.embedder == wanted.embedder).limit(1)
        found = connection.execute(stored).scalar_one_or_none()
        if found is not None:
            return int(found) // 4
        if wanted.dimensions is None:
            raise ConfigurationError(
                f"no {self._subject.kind} have vectors of an embedder {wanted.embedder!r}, so the number of their "
                "dimensions is not known; make the vectors first, or see to the name"
            )
        return wanted.dimensions

    def _table(self, schema_name: str) -> Table:
        return metadata(schema_name).tables[f"{schema_name}.{self._subject.vectors}"]

    def _definition(
        self, connection: Connection, schema_name: str, extension: str, embedder: str, kind: str, dimensions: int
    ) -> list[str]:
        name, of = column_name(embedder), f"{quoted(schema_name)}.{self._subject.vectors}"
        function = self._function(schema_name, name)
        literal = connection.execute(select(func.pg_catalog.quote_literal(embedder))).scalar_one()
        when = f"WHEN (NEW.embedder = {literal}) EXECUTE FUNCTION {function}()"
        body = trigger_function(name, dimensions, of_length_one=kind == "halfvec")
        return [
            f"ALTER TABLE {of} ADD COLUMN IF NOT EXISTS {name} {quoted(extension)}.{kind}({dimensions})",
            f"COMMENT ON COLUMN {of}.{name} IS {literal}",
            f"CREATE OR REPLACE FUNCTION {function}() {body}",
            f"DROP TRIGGER IF EXISTS {name} ON {of}",
            f"CREATE TRIGGER {name} BEFORE INSERT OR UPDATE OF vector ON {of} FOR EACH ROW {when}",
        ]

    def _fill(self, connection: Connection, schema_name: str, embedder: str, progress: Progress | None) -> None:
        """Have the trigger make what is missing, page by page: each is a transaction."""
        filled = 0
        statement = self._filling(schema_name, embedder)
        for _ in range(_WALKS):
            before, after = filled, ""
            while after is not None:
                after, made = connection.execute(statement, {"after": after}).one()
                filled += made
                if made and progress is not None:
                    progress(self._subject.kind, filled)
            if filled == before:
                return

    def _filling(self, schema_name: str, embedder: str) -> Select[Any]:
        """One page after the id ``after``: the last id, and how many rows got what they lacked."""
        vectors = self._table(schema_name)
        c = vectors.c
        new: ColumnElement[Any] = column(column_name(embedder))
        of_embedder = c.embedder == embedder
        page = (
            select(c.id)
            .where(of_embedder, c.id > bindparam("after", type_=Text))
            .order_by(c.id)
            .limit(_PAGE)
            .cte("page")
        )
        free = (
            select(c.id)
            .where(of_embedder, c.id.in_(select(page.c.id)), new.is_(None))
            .with_for_update(skip_locked=True)
            .cte("free")
        )
        made = (
            update(vectors)
            .where(of_embedder, c.id.in_(select(free.c.id)))
            .values(vector=c.vector)
            .returning(new.is_not(None).label("made"))
            .cte("made")
        )
        last = select(func.pg_catalog.max(page.c.id)).scalar_subquery()
        count = select(func.count()).select_from(made).where(made.c.made).scalar_subquery()
        return select(last, count)


def _check_version(connection: Connection) -> None:
    methods = table("pg_am", column("amname"), schema="pg_catalog")
    if connection.execute(select(methods.c.amname).where(methods.c.amname == "hnsw")).first() is None:
        raise NotSupportedError("pgvector is older than 0.5, which has no index hnsw; let an administrator update it")


def _check_column(there: VectorColumn | None, embedder: str, dimensions: int) -> None:
    if there is not None and (there.embedder, there.dimensions) != (embedder, dimensions):
        raise ConfigurationError(
            f"the column {there.name} is for {there.dimensions:,} dimensions of the embedder {there.embedder!r}, and "
            f"those of {embedder!r} are {dimensions:,}; disable it, and enable it again"
        )


def _type_for(dimensions: int) -> str:
    if dimensions > _LARGEST_HALF_VECTOR:
        raise NotSupportedError(
            f"an index of pgvector takes vectors of at most {_LARGEST_HALF_VECTOR:,} dimensions, and these have "
            f"{dimensions:,}"
        )
    return "vector" if dimensions <= _LARGEST_VECTOR else "halfvec"


def _run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
