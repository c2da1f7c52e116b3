"""R12 for logins and statements that PostgreSQL refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from firefly_memory import DatabaseConnectionError, DatabaseStoreError, PostgreSQLStore
from firefly_memory.testing import Mode, checks
from tests.support.servers import EmbeddedPostgreSQL
from tests.support.stoppable_postgresql import DRIVERS, IN_BOTH_MODES, PASSWORD, everything_shown, prepare, url
from tests.support.store_caller import MakeStoreCaller


@DRIVERS
@IN_BOTH_MODES
def test_a_wrong_password_is_an_error_that_does_not_show_it(
    driver: str, mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = url(server, driver).replace(PASSWORD, "wr0ng-horse")
    made = PostgreSQLStore(wrong)
    store = using(made, mode)
    with pytest.raises(DatabaseConnectionError, match="refused the login") as caught:
        store("load", "n")
    assert not caught.value.retryable
    assert caught.value.__cause__ is not None
    shown = everything_shown(caught.value) + caplog.text + repr(made) + str(made)
    assert "wr0ng-horse" not in shown
    assert "postgres:***@127.0.0.1" in repr(made)


@IN_BOTH_MODES
def test_a_missing_database_is_named(mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller) -> None:
    store = using(PostgreSQLStore(server.url.removesuffix("postgres") + "nothing"), mode)
    with pytest.raises(DatabaseConnectionError, match="the database does not exist"):
        store("load", "n")


@IN_BOTH_MODES
def test_a_missing_right_is_named(
    mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, run_sql: Callable[[str], list[Any]]
) -> None:
    run_sql("DROP ROLE IF EXISTS stranger")
    run_sql(f"CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}'")
    prepare(server, "guarded")
    stranger = server.url.replace("//postgres:", "//stranger:")
    store = using(PostgreSQLStore(stranger, schema_name="guarded"), mode)
    with pytest.raises(DatabaseStoreError, match=r"lacks a privilege \(permission denied for schema guarded\)"):
        store("load", "n")
    missing = using(PostgreSQLStore(stranger, schema_name="not_there"), mode)
    with pytest.raises(DatabaseStoreError, match="lacks a privilege"):
        missing("load", "n")


@IN_BOTH_MODES
def test_a_role_without_ddl_rights_works_on_a_current_schema(
    mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, run_sql: Callable[[str], list[Any]]
) -> None:
    run_sql("DROP OWNED BY worker") if run_sql("SELECT 1 FROM pg_roles WHERE rolname = 'worker'") else None
    run_sql("DROP ROLE IF EXISTS worker")
    run_sql(f"CREATE ROLE worker LOGIN PASSWORD '{PASSWORD}'")
    prepare(server, "granted")
    run_sql("GRANT USAGE ON SCHEMA granted TO worker")
    run_sql("GRANT SELECT, INSERT, UPDATE, DELETE ON granted.memory_entries TO worker")
    run_sql("GRANT SELECT ON granted.firefly_memory_version TO worker")
    for check in checks():
        if check.rule in ("R3", "R6", "R8"):
            worker = server.url.replace("//postgres:", "//worker:")
            check.run(lambda: PostgreSQLStore(worker, schema_name="granted"), mode)  # noqa: B023
