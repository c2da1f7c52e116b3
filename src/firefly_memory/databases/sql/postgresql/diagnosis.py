"""What ``firefly-memory doctor`` looks at where a store is PostgreSQL."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Engine, column, exc, func, select, table
from sqlalchemy.dialects.postgresql import pg_catalog

from firefly_memory import clock
from firefly_memory.databases.diagnostics import Finding, clock_skew, ok, problem, warning
from firefly_memory.databases.sql.errors import DatabaseName, sqlstate
from firefly_memory.databases.sql.postgresql.creators import others_may_create
from firefly_memory.databases.sql.postgresql.engines import blocking_engine
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.databases.sql.postgresql.url import PostgreSQLUrl, postgresql_url
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema import migrate
from firefly_memory.databases.sql.schema.accelerators import is_of_an_accelerator
from firefly_memory.databases.sql.schema.diagnosis import of_schema
from firefly_memory.databases.sql.search_path import pinned_for_reading
from firefly_memory.errors import DatabaseStoreError

_NEEDED = 100_000
"""The drivers know servers from PostgreSQL 10 on; the statements would do with 9.5."""

_TRIED = 130_000
"""From PostgreSQL 13 on, servers have been in support while this library has been in tests."""

_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_LOOKS = 5
_LACKS_A_RIGHT = "42501"

_activity = table("pg_stat_activity", column("backend_type"), schema="pg_catalog")


def diagnose(
    url: str, schema_name: str, *, timeout: float, pool_size: int, pooler: str | None, **_: Any
) -> Iterator[Finding]:
    """The server, the way to it, and what the role may do there; ``pooler`` is what the store is told of one."""
    parsed = postgresql_url(url)
    db_name = DatabaseName(str(parsed), migrate.checked_schema_name(schema_name))
    engine = blocking_engine(parsed, pool_size=2, timeout=timeout)
    try:
        with migrate.connected(engine, db_name, "doctor") as connection:
            with pinned_for_reading(connection):
                yield from _server(connection)
                yield _clock(connection)
                yield _connections(connection, pool_size)
            yield _pooler(engine, db_name, connection, pooler)
            with pinned_for_reading(connection):
                yield from _rights(connection, db_name)
            yield from _schema(connection, db_name)
            with pinned_for_reading(connection):
                yield from _invalid_indexes(connection, str(db_name.schema_name))
    finally:
        engine.dispose()
    yield from _creating(parsed, db_name, timeout)  # after the other engine: a pooler may have one connection to give


def _server(connection: Connection) -> Iterator[Finding]:
    names = ("server_version_num", "server_version", "server_encoding", "TimeZone", "default_transaction_read_only")
    settings = connection.execute(select(*(func.pg_catalog.current_setting(name) for name in names))).one()
    number, version, encoding, zone, read_only = settings
    if int(number) < _NEEDED:
        yield problem("server", f"PostgreSQL {version}", "use PostgreSQL 10 or newer")
    elif int(number) < _TRIED:
        yield warning("server", f"PostgreSQL {version}, with which this is not tested", "use PostgreSQL 13 or newer")
    else:
        yield ok("server", f"PostgreSQL {version}")
    if encoding == "UTF8":
        yield ok("encoding", encoding)
    else:
        yield problem("encoding", f"{encoding}, which has no room for every text", "create one with ENCODING 'UTF8'")
    yield ok("time zone", f"{zone}; instants are kept in UTC, whatever it is")
    if connection.execute(select(func.pg_catalog.pg_is_in_recovery())).scalar_one():
        yield problem("writing", "this is a standby, which only reads", "name the primary; several hosts: "
                      "target_session_attrs=read-write")  # fmt: skip
    elif read_only == "on":
        yield problem("writing", "transactions are read-only by default", "turn default_transaction_read_only off")
    else:
        yield ok("writing", "transactions may write")


def _clock(connection: Connection) -> Finding:
    asked = clock.now()
    there = connection.execute(select(func.pg_catalog.clock_timestamp())).scalar_one()
    return clock_skew(asked, there, clock.now())


def _connections(connection: Connection, pool_size: int) -> Finding:
    most, reserved = (
        func.pg_catalog.current_setting(name) for name in ("max_connections", "superuser_reserved_connections")
    )
    in_use = select(func.count()).where(_activity.c.backend_type == "client backend").scalar_subquery()
    row = connection.execute(select(most, reserved, in_use)).one()
    there, used = int(row[0]) - int(row[1]), int(row[2])
    found = f"{used} of {there} are in use, this one among them; pool_size is {pool_size}"
    if used - 1 + pool_size > there:
        return warning("connections", found, "lower pool_size, raise max_connections, or put a pooler in between")
    return ok("connections", found)


def _pooler(engine: Engine, db_name: DatabaseName, connection: Connection, pooler: str | None) -> Finding:
    driver: Any = connection.connection.driver_connection
    if _backends(connection, 1) == {driver.info.backend_pid}:  # what the other end said when it was connected to
        return ok("pooler", "none: connections lead to the server itself")
    try:
        with migrate.connected(engine, db_name, "doctor") as other:
            mine, theirs = _backends(connection, _LOOKS), _backends(other, _LOOKS)
            mine |= _backends(connection, 1)
    except DatabaseStoreError:  # each session has a connection of the server, and there was only one
        mine, theirs = {0}, {1}
    if len(mine) == len(theirs) == 1 and mine != theirs:
        return ok("pooler", "one that gives each session a connection of the server")
    found = "one in transaction mode, which hands connections from one transaction to the next"
    if pooler == "transaction":
        return ok("pooler", f"{found}, as the store is told")
    do = 'open the store with pooler="transaction", or set FIREFLY_AGENTIC_MEMORY_POSTGRES_POOLER=transaction'
    return warning("pooler", found, do)


def _backends(connection: Connection, looks: int) -> set[int]:
    """Which of the server's processes answer, one statement after the other."""
    return {connection.execute(select(func.pg_catalog.pg_backend_pid())).scalar_one() for _ in range(looks)}


def _schema(connection: Connection, db_name: DatabaseName) -> Iterator[Finding]:
    try:
        with pinned_for_reading(connection):
            yield from of_schema(connection, db_name)
    except exc.DBAPIError as error:
        if sqlstate(error) != _LACKS_A_RIGHT:
            raise
        yield warning("schema", "the role may not see which revision it is at", "see to its rights, and look again")


def _creating(url: PostgreSQLUrl, db_name: DatabaseName, timeout: float) -> Iterator[Finding]:
    engine = blocking_engine(url, pool_size=1, timeout=timeout, settings="")
    try:
        with migrate.connected(engine, db_name, "doctor") as connection:
            # That of the role's usual connections, whoever has set it, and where.
            search_path = str(connection.exec_driver_sql("SHOW search_path").scalar_one())
            with pinned_for_reading(connection):
                yield from others_may_create(connection, str(db_name.schema_name), search_path)
    finally:
        engine.dispose()


def _rights(connection: Connection, db_name: DatabaseName) -> Iterator[Finding]:
    schema_name = str(db_name.schema_name)
    role = connection.execute(select(func.current_user())).scalar_one()
    grants = db_name.command(f"grants {shlex.quote(role)}")
    spaces, classes = pg_catalog.pg_namespace, pg_catalog.pg_class
    of_ours = spaces.c.nspname == schema_name
    of_space = select(*(func.pg_catalog.has_schema_privilege(spaces.c.oid, right) for right in ("USAGE", "CREATE")))
    row = connection.execute(of_space.where(of_ours)).one_or_none()
    if row is None:
        may = connection.execute(
            select(func.pg_catalog.has_database_privilege(func.pg_catalog.current_database(), "CREATE"))
        ).scalar_one()
        state = f"{role} may{'' if may else ' not'} create the schema {schema_name}, which is not there"
        do = f"run as another role: {db_name.command('upgrade')}"
        yield ok("rights", state) if may else problem("rights", state, do)
        return
    if not row[0]:
        grant = f"GRANT USAGE ON SCHEMA {quoted(schema_name)} TO {quoted(role)};"
        do = f"{grant} {grants} prints all that is needed"
        yield problem("rights", f"{role} has no USAGE on schema {schema_name}", do)
        return
    creating = "" if row[1] else "; it cannot migrate, for it has no CREATE there"
    names = [each.name for each in schema.metadata(schema_name).sorted_tables]
    rights = (func.pg_catalog.has_table_privilege(classes.c.oid, right) for right in _RIGHTS)
    found = select(classes.c.relname, *rights).join_from(classes, spaces, spaces.c.oid == classes.c.relnamespace)
    lacking = []
    of_names = found.where(of_ours, classes.c.relname.in_([*names, schema.VERSION_TABLE]))
    for name, *has in connection.execute(of_names.order_by(classes.c.relname)):
        needed = _RIGHTS[:1] if name == schema.VERSION_TABLE else _RIGHTS
        lacking += [f"{right} on {name}" for right, may in zip(needed, has, strict=False) if not may]
    if lacking:
        do = f"as the owner, run what this prints: {grants}"
        yield problem("rights", f"{role} lacks {', '.join(lacking)}{creating}", do)
    else:
        yield ok("rights", f"{role} may read and write every table that is there{creating}")


def _invalid_indexes(connection: Connection, schema_name: str) -> Iterator[Finding]:
    """Those that a broken CREATE INDEX CONCURRENTLY has left beside ours: they cost writes and serve nothing."""
    spaces, classes, indexes = pg_catalog.pg_namespace, pg_catalog.pg_class, pg_catalog.pg_index
    ours = schema.metadata(schema_name).sorted_tables
    known = {str(index.name) for each in ours for index in each.indexes}  # the schema's differences tell of these
    of = classes.alias("of")
    names = connection.execute(
        select(classes.c.relname)
        .join(indexes, indexes.c.indexrelid == classes.c.oid)
        .join(of, of.c.oid == indexes.c.indrelid)
        .join(spaces, spaces.c.oid == of.c.relnamespace)
        .where(spaces.c.nspname == schema_name, of.c.relname.in_([each.name for each in ours]))
        .where(indexes.c.indisvalid.is_(False), classes.c.relname.not_in(known))
    ).scalars()
    for name in names:
        if is_of_an_accelerator(name):
            continue  # the schema's differences tell of these, too
        yield warning(
            "index",
            f"{name} is invalid, after a build that broke off",
            f"DROP INDEX {quoted(schema_name)}.{quoted(name)};",
        )
