"""The table of URLs: each row is complete, and its names exist."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from firefly_memory import ConfigurationError, EntryStore
from firefly_memory.settings import MemorySettings
from firefly_memory.urls import TABLE, Kind, Medium, Row, row_of, row_of_scheme

DOTTED = (
    "store",
    "path",
    "read_only",
    "database",
    "migrations",
    "indexes",
    "diagnosis",
    "estimates",
    "legacy",
)
ROWS = pytest.mark.parametrize("row", TABLE.values(), ids=[str(kind) for kind in TABLE])


def test_every_kind_has_a_row_and_is_one_that_the_variable_backend_takes() -> None:
    assert list(TABLE) == list(Kind)
    assert {str(kind) for kind in TABLE} == set(get_args(MemorySettings.model_fields["backend"].annotation))


def test_no_scheme_is_in_two_rows() -> None:
    schemes = [scheme for row in TABLE.values() for scheme in row.schemes]
    assert len(schemes) == len(set(schemes))


@ROWS
def test_every_dotted_name_of_a_row_exists(row: Row) -> None:
    for column in DOTTED:
        if getattr(row, column) is not None:
            assert row.load(column) is not None, column
    assert issubclass(row.load("store"), EntryStore)


@ROWS
def test_options_are_those_of_the_store_and_settings_that_exist(row: Row) -> None:
    assert row.options.keys() <= inspect.signature(row.load("store")).parameters.keys()
    settings = {*row.options.values(), *([row.setting] if row.setting else [])}
    assert settings <= MemorySettings.model_fields.keys()


@ROWS
def test_a_row_has_related_columns_together_or_not_at_all(row: Row) -> None:
    assert (row.dialect is None) == (row.database is None) == (row.migrations is None)
    assert row.database is None or row.indexes is None
    assert (row.path is None) == (row.medium in (Medium.MEMORY, Medium.SERVER))
    assert (row.setting is None) == (row.medium is Medium.MEMORY)


@ROWS
def test_the_row_of_a_url_is_found_by_its_scheme_whatever_its_case(row: Row) -> None:
    for scheme in row.schemes:
        assert row_of(f"{scheme}://") is row
        assert row_of(f"{scheme.upper()}://") is row
        assert row_of_scheme(f"{scheme}+driver://") is row


def test_an_unknown_scheme_is_refused_without_showing_the_rest_of_the_url() -> None:
    with pytest.raises(ConfigurationError, match="no store has a URL that starts with 'redis'") as refused:
        row_of("redis://user:s3cret@host")
    assert "s3cret" not in str(refused.value)
    assert row_of_scheme("redis://host") is None
    assert row_of_scheme("memory.db") is None


def test_without_its_driver_a_row_names_the_extra(tmp_path: Path) -> None:
    code = """if True:
        import sys
        sys.modules["pymongo"] = None
        from firefly_memory import MissingDependencyError
        from firefly_memory.urls import Kind
        for column in ("store", "diagnosis", "indexes", "estimates", "legacy"):
            try:
                Kind.MONGODB.row.load(column)
            except MissingDependencyError as error:
                print(error)
    """
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout
    needs = (
        "MongoDBStore needs the package 'pymongo', which is not installed; run: pip install 'firefly-memory[mongodb]'"
    )
    assert shown.splitlines() == [needs] * 5


def test_reading_the_table_loads_no_named_module() -> None:
    code = "import firefly_memory.urls, sys; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    )
    assert not loaded & {"sqlalchemy", "pymongo", "pydantic", "sqlite3", "asyncpg", "psycopg"}
