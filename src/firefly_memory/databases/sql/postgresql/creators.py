"""Who may create functions where PostgreSQL looks for those of a statement."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, column, func, or_, select, table, true

from firefly_memory.databases.diagnostics import Finding, ok, warning
from firefly_memory.databases.sql.postgresql.identifiers import quoted

_roles = table("pg_roles", column("oid"), column("rolname"), column("rolsuper"), schema="pg_catalog")
_databases = table("pg_database", column("datname"), column("datdba"), column("datacl"), schema="pg_catalog")
_schemas = table("pg_namespace", column("nspname"), column("nspowner"), column("nspacl"), schema="pg_catalog")

_NAME_IN_PATH = re.compile(r'"((?:[^"]|"")*)"|([^\s,"]+)')
_NOT_ASKED_ABOUT = {"", "pg_catalog", "pg_temp"}
"""Nobody else may create in these."""

_MISTAKE = "and so make functions that the statements of others run by mistake (the store's own do not)"


class _Holder(NamedTuple):
    of: str
    """A schema, or the database."""
    role: str
    """In quotes if it needs any."""


def others_may_create(connection: Connection, schema_name: str, search_path: str) -> Iterator[Finding]:
    """Inside a transaction that is pinned to ``pg_catalog``: for the schema of the store and each of ``search_path``,
    who else may create something there. Trusted are this role, superusers, and the owners of the database and of the
    store's schema."""
    me, _ = here = connection.execute(select(func.current_user(), func.session_user())).one()
    path = [name for name in _names(search_path, str(me)) if name != schema_name]
    names = [schema_name, *path]
    trusted = set(connection.execute(_trusted(here, schema_name)).scalars())
    found = [
        *_of_creators(_others(connection, _creators(names), trusted)),
        *_of_owners(_others(connection, _owners(path), trusted), str(me)),
        *_of_missing(connection, path, trusted),
    ]
    yield from found
    if not found:
        yield ok("creating", f"nobody beside the owners may create in {', '.join(names)}")


def _of_creators(holders: Iterable[_Holder]) -> Iterator[Finding]:
    for name, roles in _grouped(holders):
        state = f"{roles} may create in the schema {name}, {_MISTAKE}"
        yield warning("creating", state, f"REVOKE CREATE ON SCHEMA {quoted(name)} FROM {roles};")


def _of_owners(holders: Iterable[_Holder], me: str) -> Iterator[Finding]:
    for name, role in holders:
        state = f"{role} owns the schema {name} of the search path, may create in it, {_MISTAKE}"
        do = "drop what does not belong there, or take the schema out of the search path; then"
        yield warning("creating", state, f"{do}: ALTER SCHEMA {quoted(name)} OWNER TO {quoted(me)};")


def _of_missing(connection: Connection, path: list[str], trusted: Collection[int]) -> Iterator[Finding]:
    there = set(connection.execute(select(_schemas.c.nspname).where(_schemas.c.nspname.in_(path))).scalars())
    missing = [name for name in path if name not in there]
    if not missing:
        return
    for database, roles in _grouped(_others(connection, _creators_of_schemas(), trusted)):
        named = ", ".join(missing)
        state = f"{roles} may create the schema {named}, which the search path names and which is not there, {_MISTAKE}"
        yield warning("creating", state, f"REVOKE CREATE ON DATABASE {quoted(database)} FROM {roles};")


def _grouped(holders: Iterable[_Holder]) -> Iterator[tuple[str, str]]:
    for of, several in groupby(holders, itemgetter(0)):
        yield of, ", ".join(each.role for each in several)


def _others(connection: Connection, statement: Select[Any], trusted: Collection[int]) -> list[_Holder]:
    """What ``statement`` gives: schemas or databases with the ids and names of roles. No name means everybody."""
    return [
        _Holder(str(of), "PUBLIC" if name is None else quoted(name))
        for of, role, name in connection.execute(statement)
        if role not in trusted
    ]


def _trusted(names: Iterable[str], schema_name: str) -> Select[Any]:
    owner = select(_databases.c.datdba).where(_databases.c.datname == func.current_database())
    migrating = select(_schemas.c.nspowner).where(_schemas.c.nspname == schema_name)
    by_name = _roles.c.rolname.in_([*names, "pg_database_owner"])
    return select(_roles.c.oid).where(
        or_(_roles.c.rolsuper, by_name, _roles.c.oid.in_(owner), _roles.c.oid.in_(migrating))
    )


def _owners(names: list[str]) -> Select[Any]:
    owned = _schemas.join(_roles, _roles.c.oid == _schemas.c.nspowner)
    statement = select(_schemas.c.nspname, _roles.c.oid, _roles.c.rolname).select_from(owned)
    return statement.where(_schemas.c.nspname.in_(names)).order_by(_schemas.c.nspname)


def _creators(names: list[str]) -> Select[Any]:
    """The owners of the schemas are left out: others than these have it by a ``GRANT``."""
    given, statement = _granted(_schemas, _schemas.c.nspname, _schemas.c.nspacl)
    return statement.where(_schemas.c.nspname.in_(names), given.c.grantee != _schemas.c.nspowner)


def _creators_of_schemas() -> Select[Any]:
    _, statement = _granted(_databases, _databases.c.datname, _databases.c.datacl)
    return statement.where(_databases.c.datname == func.current_database())


def _granted(of: Any, name: Any, rights: Any) -> tuple[Any, Select[Any]]:
    exploded = func.pg_catalog.aclexplode(rights).table_valued("grantor", "grantee", "privilege_type")
    given = exploded.render_derived(name="given").lateral()
    statement = (
        select(name, given.c.grantee, _roles.c.rolname)
        .select_from(of.join(given, true()).outerjoin(_roles, _roles.c.oid == given.c.grantee))
        .where(given.c.privilege_type == "CREATE")
        .order_by(name, _roles.c.rolname)
    )
    return given, statement


def _names(search_path: str, me: str) -> Iterator[str]:
    """The schemas of a search path, as ``SHOW search_path`` gives it to the role ``me``."""
    for in_quotes, plain in _NAME_IN_PATH.findall(search_path):
        name = in_quotes.replace('""', '"') or plain.lower()
        if name not in _NOT_ASKED_ABOUT:
            yield me if name == "$user" else name
