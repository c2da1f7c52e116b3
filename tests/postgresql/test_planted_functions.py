"""Somebody may create functions and operators in a schema of the search path. None of them ever runs for this library,
whichever driver, engine or pooler it uses; and ``doctor`` says that there is such a somebody."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import EntryStore, MemoryEntry, PostgreSQLStore
from firefly_memory.cli import main
from firefly_memory.testing import Mode
from tests.support.command_line import run
from tests.support.databases import execute
from tests.support.host_project import PROJECT, done
from tests.support.lost_cases import ACTS, ERASURES, READINGS
from tests.support.lost_reply_cases import Uses
from tests.support.pgbouncer import PgBouncer
from tests.support.planted_functions import calls, planted_database

pytestmark = pytest.mark.thorough

SUSPENDING, BLOCKING = Mode.SUSPENDING, Mode.BLOCKING


@pytest.fixture(scope="module")
def url(servers_of_the_session: dict[str, Callable[[], str]]) -> Iterator[str]:
    with planted_database(servers_of_the_session["postgresql"](), f"planter_{uuid4().hex[:8]}") as url:
        yield url


@pytest.fixture(scope="module")
def pooled(url: str) -> Iterator[str]:
    """The same behind a pooler that refuses settings."""
    pooler = PgBouncer(url, "transaction")
    try:
        pooler.start()
        yield pooler.url
    finally:
        pooler.remove()


@pytest.fixture(scope="module")
def silently_pooled(url: str) -> Iterator[str]:
    """The same behind a pooler that takes settings and forgets them."""
    pooler = PgBouncer(url, "transaction", ignore_startup_parameters="options")
    try:
        pooler.start()
        yield pooler.url
    finally:
        pooler.remove()


@pytest.fixture
def name() -> str:
    return f"own_{uuid4().hex[:12]}"


@pytest.fixture(autouse=True)
def _nothing_planted_has_run(url: str) -> Iterator[None]:
    before = calls(url)
    yield
    assert calls(url) == before


def with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


@asynccontextmanager
async def own(url: str, driver: str, name: str, pooler: str | None = None) -> AsyncIterator[PostgreSQLStore]:
    async with PostgreSQLStore(with_driver(url, driver), schema_name=name, pooler=pooler) as store:
        yield store


@asynccontextmanager
async def on_engine(url: str, driver: str, name: str) -> AsyncIterator[PostgreSQLStore]:
    engine = create_engine(with_driver(url, driver))
    try:
        async with PostgreSQLStore(engine=engine, schema_name=name) as store:
            yield store
        with engine.connect() as connection:
            assert connection.execute(text("SHOW search_path")).scalar_one() == '"$user", public'
    finally:
        engine.dispose()


@asynccontextmanager
async def on_async_engine(url: str, driver: str, name: str) -> AsyncIterator[PostgreSQLStore]:
    engine = create_async_engine(with_driver(url, driver))
    try:
        async with PostgreSQLStore(engine=engine, schema_name=name) as store:
            yield store
        async with engine.connect() as connection:
            assert (await connection.execute(text("SHOW search_path"))).scalar_one() == '"$user", public'
    finally:
        await engine.dispose()


async def every_act(store: EntryStore, mode: Mode, *, is_bound: bool = False) -> None:
    for number, act in enumerate(each for each in ACTS if not (is_bound and each in ERASURES)):
        uses = Uses(store, mode, f"{act} {number}")
        if act.prepare is not None:
            await act.prepare(uses)
        await act.do(uses)
        await act.look(uses)
    if mode is SUSPENDING:
        for reading in READINGS:
            await reading(store, is_bound=is_bound)


@pytest.mark.parametrize(
    ("opened", "driver", "mode"),
    [
        (own, "asyncpg", SUSPENDING),
        (own, "psycopg", SUSPENDING),
        (own, "psycopg", BLOCKING),
        (on_engine, "psycopg", BLOCKING),
        (on_engine, "psycopg2", BLOCKING),
        (on_async_engine, "asyncpg", SUSPENDING),
        (on_async_engine, "psycopg", SUSPENDING),
    ],
)
async def test_no_operation_runs_a_planted_function(opened: Any, driver: str, mode: Mode, url: str, name: str) -> None:
    async with opened(url, driver, name) as store:
        await every_act(store, mode)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("pooler", ["pooled", "silently_pooled"])
async def test_no_operation_behind_a_pooler_runs_a_planted_function(
    driver: str, mode: Mode, pooler: str, name: str, request: pytest.FixtureRequest
) -> None:
    async with own(request.getfixturevalue(pooler), driver, name, "transaction") as store:
        await every_act(store, mode)


def test_no_operation_on_a_bound_connection_runs_a_planted_function(url: str, name: str) -> None:
    engine = create_engine(with_driver(url, "psycopg"))
    with PostgreSQLStore(url, schema_name=name) as store, engine.connect() as connection:
        asyncio.run(every_act(store.bind(connection), BLOCKING, is_bound=True))
        assert connection.execute(text("SHOW search_path")).scalar_one() == '"$user", public'
    engine.dispose()


async def test_no_operation_on_a_bound_asynchronous_connection_runs_a_planted_function(url: str, name: str) -> None:
    engine = create_async_engine(with_driver(url, "asyncpg"))
    async with PostgreSQLStore(url, schema_name=name) as store, engine.connect() as connection:
        await every_act(store.bind(connection), SUSPENDING, is_bound=True)
    await engine.dispose()


COMMANDS = [
    ["db", "upgrade", "0001"],
    ["db", "upgrade"],
    ["db", "current"],
    ["db", "check"],
    ["db", "downgrade", "0001", "--yes"],
    ["db", "stamp", "0001"],
    ["db", "upgrade"],
    ["export", "archive.jsonl"],
    ["import", "archive.jsonl"],
]


@pytest.mark.parametrize("through", ["url", "pooled"])
def test_no_command_runs_a_planted_function(
    through: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for command in COMMANDS:
        at = ["--url", request.getfixturevalue(through), "--schema", name]
        ended = run(*command, *at, cwd=tmp_path, FIREFLY_AGENTIC_MEMORY_POSTGRES_POOLER="transaction")
        assert "planted" not in ended.stdout + ended.stderr, command
        assert ended.returncode == 0, (command, ended.stdout + ended.stderr)


@pytest.mark.parametrize("through", ["url", "pooled"])
def test_no_import_of_a_legacy_table_runs_a_planted_function(
    through: str, url: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    execute(url, f"CREATE SCHEMA {name}_old")
    table = f"{name}_old.memory_entries"
    columns = "namespace text, entry_id varchar(36), scope varchar, key text, content jsonb, created_at timestamp"
    execute(url, f"CREATE TABLE {table} ({columns})")
    execute(url, f"INSERT INTO {table} VALUES ('n', '1', 'working', 'k', '{{}}', '2024-01-01')")
    at = request.getfixturevalue(through)
    ended = run("db", "import-legacy", "--from", at, "--table", table, "--url", at, "--schema", name, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    with PostgreSQLStore(url, schema_name=name) as store:
        assert store.count("n") == 1


def test_no_migration_script_runs_a_planted_function(url: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "sql", "--url", url, "--schema", name]) == 0
    execute(url, capsys.readouterr().out)
    with PostgreSQLStore(url, schema_name=name, migrate=False) as store:
        store.save("n", MemoryEntry())


def test_no_revision_in_the_applications_alembic_runs_a_planted_function(url: str, tmp_path: Path) -> None:
    project = Path(shutil.copytree(PROJECT, tmp_path / "project"))
    script = done(project, url, "-n", "both", "upgrade", "heads", "--sql")
    # Alembic's own table, in the application's own search path, is not ours to see to.
    ours = re.sub(r"UPDATE alembic_version .*?;", "", script, flags=re.DOTALL)
    execute(url, ours)
    with PostgreSQLStore(url, migrate=False) as store:
        store.save("n", MemoryEntry(importance=0.5))


@pytest.mark.parametrize("path", [None, "elsewhere, public", '"own one"'])
def test_doctor_names_who_may_create_in_the_search_path(
    path: str | None, url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    role = execute(url, "SELECT nspacl::text FROM pg_namespace WHERE nspname = 'public'")
    planter = re.search(r"planter_\w+", str(role))
    assert planter is not None
    setting = "RESET search_path" if path is None else f"SET search_path = {path}"
    with PostgreSQLStore(url, schema_name=name):
        execute(url, 'CREATE SCHEMA IF NOT EXISTS "own one"')
        execute(url, 'GRANT CREATE ON SCHEMA "own one" TO PUBLIC')
        execute(url, f"ALTER ROLE postgres IN DATABASE {url.rpartition('/')[2]} {setting}")
        main(["doctor", "--url", url, "--schema", name])
        said = capsys.readouterr().out
        execute(url, f"ALTER ROLE postgres IN DATABASE {url.rpartition('/')[2]} RESET search_path")
    assert ("REVOKE CREATE ON SCHEMA public FROM" in said) == (path != '"own one"')
    assert (planter[0] in said) == (path != '"own one"')
    assert ('REVOKE CREATE ON SCHEMA "own one" FROM PUBLIC;' in said) == (path == '"own one"')


def test_doctor_names_who_may_create_in_the_schema_of_the_store(
    url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with PostgreSQLStore(url, schema_name=name):
        execute(url, f"GRANT CREATE ON SCHEMA {name} TO PUBLIC")
        main(["doctor", "--url", url, "--schema", name])
    assert f"REVOKE CREATE ON SCHEMA {name} FROM PUBLIC;" in capsys.readouterr().out


def test_doctor_names_a_search_path_that_the_url_sets(url: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with PostgreSQLStore(url, schema_name=name):
        execute(url, f"CREATE SCHEMA {name}_of_the_url; GRANT CREATE ON SCHEMA {name}_of_the_url TO PUBLIC")
        main(["doctor", "--url", f"{url}?options=-c%20search_path%3D{name}_of_the_url", "--schema", name])
    assert f"REVOKE CREATE ON SCHEMA {name}_of_the_url FROM PUBLIC;" in capsys.readouterr().out


def test_doctor_names_who_owns_a_schema_of_the_search_path(
    url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    role, other = f"role_{uuid4().hex[:12]}", f"other_{uuid4().hex[:12]}"
    database = url.rpartition("/")[2]
    with PostgreSQLStore(url, schema_name=name):
        execute(
            url, f"CREATE ROLE {role} LOGIN; CREATE ROLE {other} LOGIN; GRANT CREATE ON DATABASE {database} TO {other}"
        )
        execute(url, f"GRANT USAGE ON SCHEMA {name} TO {role}")
        as_role = re.sub("//[^@]*@", f"//{role}@", url)
        try:
            main(["doctor", "--url", as_role, "--schema", name])
            before = capsys.readouterr().out
            execute(url, f"SET ROLE {other}; CREATE SCHEMA {role}")
            main(["doctor", "--url", as_role, "--schema", name])
            after = capsys.readouterr().out
        finally:
            execute(url, f"DROP OWNED BY {role}, {other} CASCADE; DROP ROLE {role}, {other}")
    assert f"{other} may create the schema {role}, which the search path names" in before
    assert f"REVOKE CREATE ON DATABASE {database} FROM {other};" in before
    assert f"{other} owns the schema {role} of the search path" in after
    assert f"ALTER SCHEMA {role} OWNER TO {role};" in after


def test_a_role_name_cannot_add_a_line_to_the_output(url: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    forged = f"{name}\nok       everything: all is well"
    with PostgreSQLStore(url, schema_name=name):
        execute(url, f'CREATE ROLE "{forged}"; GRANT CREATE ON SCHEMA {name} TO "{forged}"')
        try:
            main(["doctor", "--url", url, "--schema", name])
            lines = capsys.readouterr().out.splitlines()
            (revoke,) = [each.partition("do: ")[2] for each in lines if f"ON SCHEMA {name} FROM" in each]
            execute(url, revoke)
        finally:
            execute(url, f'DROP ROLE "{forged}"')  # which has no rights any more
    assert not [each for each in lines if "everything" in each and each.startswith("ok")]
