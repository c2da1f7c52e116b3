"""Who may create functions where PostgreSQL looks for those of a statement."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Column, Connection, Text, column, false, func, or_, select, table, true
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import pg_catalog

from firefly_memory.stores.findings import Finding, ok, warning
from firefly_memory.stores.sql.postgresql.identifiers import quoted
from firefly_memory.stores.sql.search_path import ONLY_PG_CATALOG

_roles = table("pg_roles", column("oid"), column("rolname"), schema="pg_catalog")
_databases = table("pg_database", column("oid"), column("datname"), schema="pg_catalog")
_settings = table("pg_settings", column("name"), column("boot_val"), schema="pg_catalog")
_settings_of_roles = table(
    "pg_db_role_setting",
    column("setdatabase"),
    column("setrole"),
    Column("setconfig", postgresql.ARRAY(Text)),
    schema="pg_catalog",
)

_PATH = "search_path="


def others_may_create(connection: Connection, schema_name: str) -> Iterator[Finding]:
    """Inside :func:`~firefly_memory.stores.sql.search_path.looking`: for the schema of the store and each of the
    role's search path, the roles beside its owner that may create something there."""
    usual = _usual_path(connection)
    names = [schema_name, *(name for name in usual if name != schema_name)]
    found = [(name, list(rows)) for name, rows in groupby(_creators(connection, names), itemgetter(0))]
    for name, rows in found:
        roles = ", ".join("PUBLIC" if role is None else quoted(role) for _, role in rows)
        state = (
            f"{roles} may create in the schema {name}, and so make functions that the statements of others run by "
            "mistake (the store's own do not)"
        )
        yield warning("creating", state, f"REVOKE CREATE ON SCHEMA {quoted(name)} FROM {roles};")
    if not found:
        yield ok("creating", f"nobody beside the owners may create in {', '.join(names)}")


def _creators(connection: Connection, names: list[str]) -> list[tuple[str, str | None]]:
    """Schemas and roles; ``None`` is everybody."""
    spaces = pg_catalog.pg_namespace
    owner: Any = column("nspowner", _selectable=spaces)
    rights = func.pg_catalog.aclexplode(column("nspacl", _selectable=spaces))
    right = rights.table_valued("grantor", "grantee", "privilege_type").render_derived(name="given").lateral()
    statement = (
        select(spaces.c.nspname, _roles.c.rolname)
        .select_from(spaces.join(right, true()).outerjoin(_roles, _roles.c.oid == right.c.grantee))
        .where(spaces.c.nspname.in_(names), right.c.privilege_type == "CREATE", right.c.grantee != owner)
        .where(or_(_roles.c.rolname.is_(None), _roles.c.rolname != func.session_user()))
        .order_by(spaces.c.nspname, _roles.c.rolname)
    )
    return [(str(name), role) for name, role in connection.execute(statement)]


def _usual_path(connection: Connection) -> list[str]:
    """The schemas that the role's connections search, but for the store's own connections."""
    connection.execute(select(func.pg_catalog.set_config("search_path", _usual_setting(connection), true())))
    schemas = select(func.pg_catalog.unnest(func.pg_catalog.current_schemas(false())))
    names = [str(name) for name in connection.execute(schemas).scalars()]
    connection.exec_driver_sql(ONLY_PG_CATALOG)
    return [name for name in names if name != "pg_catalog"]


def _usual_setting(connection: Connection) -> str:
    here = select(_databases.c.oid).where(_databases.c.datname == func.pg_catalog.current_database())
    me = select(_roles.c.oid).where(_roles.c.rolname == func.session_user())
    given = _settings_of_roles.c
    rows = connection.execute(
        select(given.setconfig)
        .where(or_(given.setdatabase == 0, given.setdatabase == here.scalar_subquery()))
        .where(or_(given.setrole == 0, given.setrole == me.scalar_subquery()))
        # As PostgreSQL does: what is set for the role comes first, and for the role in this database before that.
        .order_by((given.setrole != 0).desc(), (given.setdatabase != 0).desc())
    ).scalars()
    for settings in rows:
        for each in settings:
            if each.startswith(_PATH):
                return str(each.removeprefix(_PATH))
    default = select(_settings.c.boot_val).where(_settings.c.name == "search_path")
    return str(connection.execute(default).scalar_one())
