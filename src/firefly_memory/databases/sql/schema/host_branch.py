"""Our revisions inside an application's own Alembic, as a branch with ids that clash with nobody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from sqlalchemy import Connection, delete, insert
from sqlalchemy.schema import CreateSchema, CreateTable

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.schema import revisions
from firefly_memory.databases.sql.schema.alembic_env import target_schema
from firefly_memory.databases.sql.schema.migrate import missing_between, revision_of, version_table
from firefly_memory.databases.sql.search_path import pinned_in_between

Step = Callable[[], None]


def steps_of(revision: str) -> tuple[Step, Step]:
    """``upgrade`` and ``downgrade`` of one of our revisions, which note it where a store looks as well.

    A database that a store, or ``firefly-memory db``, has brought so far already is left as it is.
    """
    position = revisions.revisions().index(revision)
    before = revisions.revisions()[position - 1] if position else None

    @_only_pg_catalog()
    def upgrade() -> None:
        if revision in missing_between(_recorded(), revision):
            if before is None:
                _prepare()
            _module(revision).upgrade()
            _record(revision)

    @_only_pg_catalog()
    def downgrade() -> None:
        found = _recorded()
        if found is None or found == revision:
            _module(revision).downgrade()
            _record(before)

    return upgrade, downgrade


@contextmanager
def _only_pg_catalog() -> Iterator[None]:
    """In the application's transaction, whose search path is afterwards as it was; after an error it ends."""
    from alembic import op

    before, after = pinned_in_between() if op.get_context().dialect.name == "postgresql" else ([], [])
    for statement in before:
        op.execute(statement)
    yield
    for statement in after:
        op.execute(statement)


def _module(revision: str) -> ModuleType:
    path = revisions.revision_named(revision).path
    spec = spec_from_file_location(f"firefly_memory_revision_{revision}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _recorded() -> str | None:
    """What the database says of itself, where there is one to ask."""
    from alembic import op

    context = op.get_context()
    return None if context.as_sql else revision_of(_connection(context), _db_name())


def _connection(context: Any) -> Connection:
    connection: Connection = context.connection
    return connection


def _db_name() -> DatabaseName:
    return DatabaseName("the application's database", target_schema())


def _prepare() -> None:
    """The schema, and the table that the revision is noted in."""
    from alembic import op

    name = target_schema()
    if name is not None:
        op.execute(CreateSchema(name, if_not_exists=True))
    op.execute(CreateTable(version_table(_db_name()), if_not_exists=True))


def _record(revision: str | None) -> None:
    from alembic import op

    version = version_table(_db_name())
    op.execute(delete(version))
    if revision is not None:
        op.execute(insert(version).values(version_num=revision))
