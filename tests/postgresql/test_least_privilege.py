"""A role that may create nothing: the output of ``firefly-memory db grants`` is enough for the whole contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import MetaData, Table, make_url
from sqlalchemy.schema import DropTable

from firefly_memory import ConfigurationError, MemoryEntry, MemoryManager, PostgreSQLStore, SchemaMismatchError
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.databases.sql.schema.commands import grants
from firefly_memory.databases.sql.schema.migrate import checked_schema_name
from firefly_memory.testing import Check, Mode, checks
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute

pytestmark = pytest.mark.thorough

ROLE = 'service of "the" 100% team'


@pytest.fixture(scope="module")
def service(servers_of_the_session: Any) -> Iterator[str]:
    """The URL of a database whose schema is there, for a role that was granted what is printed, and nothing else."""
    with empty_postgresql(servers_of_the_session["postgresql"]()) as url:
        with PostgreSQLStore(url):
            pass
        quoted = '"service of ""the"" 100% team"'
        execute(url, f"DROP ROLE IF EXISTS {quoted}")
        execute(url, f"CREATE ROLE {quoted} LOGIN PASSWORD 'secret'")
        execute(
            url, f"REVOKE ALL ON DATABASE {url.rpartition('/')[2]} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC"
        )
        execute(url, f"GRANT CONNECT ON DATABASE {url.rpartition('/')[2]} TO {quoted}")
        for statement in grants(ROLE, "firefly_memory"):
            execute(url, statement)
        yield "postgresql://service%20of%20%22the%22%20100%25%20team:secret@" + url.rpartition("@")[2]
        execute(url, f"DROP OWNED BY {quoted}")
        execute(url, f"DROP ROLE {quoted}")


@pytest.mark.parametrize("check", list(checks()), ids=str)
@pytest.mark.parametrize(("driver", "mode"), [("psycopg", Mode.BLOCKING), ("asyncpg", Mode.SUSPENDING)], ids=str)
def test_conformance(check: Check, driver: str, mode: Mode, service: str) -> None:
    url = service.replace("postgresql://", f"postgresql+{driver}://")
    check.run(lambda: PostgreSQLStore(url, migrate=False), mode)


@pytest.mark.parametrize("role", ["current_user", "session_user", "current_role", "user", "all", "PUBLIC", "100%"])
def test_grants_accept_a_role_named_like_a_keyword(role: str) -> None:
    assert all(statement.endswith(f' TO "{role}";') for statement in grants(role, "firefly_memory"))


@pytest.mark.parametrize("role", ["svc\n", 'a\\b"\r\u2028', "tab\t", "user\u00a0", "a$b", "Svc", "é"])
def test_grants_reach_only_the_role_of_that_name(role: str, place: Place) -> None:
    url = place.postgresql()
    quoted = '"' + role.replace('"', '""') + '"'
    execute(url, f"CREATE ROLE {quoted}")
    try:
        usage, *_ = statements = grants(role, "information_schema")
        assert all(len(each.splitlines()) == 1 for each in statements)
        with psycopg.connect(url) as connection:
            connection.execute(usage.encode())
            has = "SELECT rolname FROM pg_roles, pg_namespace, aclexplode(nspacl) WHERE grantee = pg_roles.oid"
            rows = connection.execute(f"{has} AND nspname = 'information_schema'".encode()).fetchall()
            assert (role,) in rows
            connection.rollback()
    finally:
        execute(url, f"DROP ROLE {quoted}")


def test_every_keyword_of_postgresql_is_quoted_or_refused(place: Place) -> None:
    dialect = make_url("postgresql+psycopg://").get_dialect()()
    with psycopg.connect(place.postgresql(), autocommit=True) as connection:
        words = [word for (word,) in connection.execute("SELECT word FROM pg_get_keywords()")]
        for word in words:
            connection.execute(f"DROP TABLE IF EXISTS {quoted(word)}.nothing".encode())
            try:
                name = checked_schema_name(word)
            except ConfigurationError:
                assert quoted(word) == f'"{word}"'
            else:
                drop = DropTable(Table("nothing", MetaData(schema=name)), if_exists=True)
                connection.execute(str(drop.compile(dialect=dialect)).encode())


def test_the_role_can_create_nothing(service: str) -> None:
    """Or the test above would show nothing."""
    with psycopg.connect(service, autocommit=True) as connection:
        for statement in ("CREATE SCHEMA x", "CREATE TABLE firefly_memory.x ()", "CREATE TABLE public.x ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_migrate_true_works_on_a_current_schema(service: str) -> None:
    with PostgreSQLStore(service) as store:
        store.save("n", MemoryEntry(content=1))
        store.clear("n")


def test_an_environment_variable_can_forbid_migrating(
    servers_of_the_session: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MIGRATE", "false")
    with empty_postgresql(servers_of_the_session["postgresql"]()) as url:
        for name, where in (("POSTGRES_URL", url), ("URL", url)):
            with monkeypatch.context() as patch:
                patch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "postgres")
                patch.setenv(f"FIREFLY_AGENTIC_MEMORY_{name}", where)
                with pytest.raises(SchemaMismatchError, match="run: firefly-memory db upgrade"):
                    MemoryManager.from_config()
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", f"sqlite:///{tmp_path}/memory.db")
    with pytest.raises(SchemaMismatchError, match="run: firefly-memory db upgrade"):
        MemoryManager.from_config()
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", "memory:")
    MemoryManager.from_config().close_sync()
