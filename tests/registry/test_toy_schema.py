"""The schema of a facet of another package: migrated, checked, left alone by others, without a change to the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine

from firefly_memory import alembic as host
from firefly_memory import connect, schema
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.sql.schema.commands import script
from firefly_memory.errors import ConfigurationError
from firefly_memory.facets import Facet, Operations, Storage, absent, all_facets, register, registered
from tests.support.databases import execute
from tests.support.facets import facet_of_revisions
from tests.support.revisions import migrations
from tests.toy_facet.facet import toys

REGISTERED = pytest.mark.usefixtures("toy")


@REGISTERED
def test_the_facet_is_migrated_up_and_down_with_the_library(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = schema.REVISIONS[-2]
    assert main(["db", "upgrade", before, "--url", url]) == Exit.DONE
    assert main(["db", "upgrade", "--url", url]) == Exit.DONE
    assert "ran toy_1\nat toy_1" in capsys.readouterr().out
    assert main(["db", "check", "--url", url]) == Exit.DONE
    assert main(["db", "downgrade", before, "--yes", "--url", url]) == Exit.DONE
    assert main(["db", "upgrade", "--url", url]) == Exit.DONE
    assert main(["db", "check", "--url", url]) == Exit.DONE


@REGISTERED
def test_offline_sql_makes_the_same_schema(url: str) -> None:
    dialect = "sqlite" if url.startswith("sqlite") else "postgresql"
    execute(url, script(dialect, "firefly_memory", "base", "head"))
    assert main(["db", "check", "--url", url]) == Exit.DONE


@REGISTERED
@pytest.mark.parametrize("gone", ["trigger", "what it calls"])
def test_drift_names_objects_that_alembic_does_not_see_and_their_repair(
    url: str, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    on_sqlite = url.startswith("sqlite")
    assert main(["db", "upgrade", "--url", url]) == Exit.DONE
    drops = {
        ("trigger", True): ["DROP TRIGGER toy_1_notes_words_added"],
        ("trigger", False): ["DROP TRIGGER toy_1_notes_keep_ids ON firefly_memory.toy_1_notes"],
        ("what it calls", True): ["DROP TABLE toy_1_notes_words"],
        ("what it calls", False): ["DROP FUNCTION firefly_memory.toy_1_notes_keep_ids() CASCADE"],
    }
    for drop in drops[gone, on_sqlite]:
        execute(url, drop)
    assert main(["db", "check", "--url", url]) == Exit.DRIFT
    said = capsys.readouterr()
    assert ("toy_1_notes_words" if on_sqlite else "toy_1_notes_keep_ids") in said.out + said.err
    with migrations(url, timeout=20) as database:
        for found in database.differences()[1]:
            execute(url, found.mend)
    assert main(["db", "check", "--url", url]) == Exit.DONE


@REGISTERED
def test_the_applications_autogenerate_ignores_the_facet(url: str) -> None:
    with connect(url) as store:
        store.initialize_sync()
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    leave_out = host.LeaveOut()
    options = {
        "include_name": leave_out.include_name,
        "include_object": leave_out.include_object,
        "include_schemas": not url.startswith("sqlite"),
    }
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, MetaData()) == []
    engine.dispose()


def test_ten_facets_form_a_chain_of_ten_revisions(url: str, tmp_path: Path) -> None:
    with registered(toys(tmp_path / "revisions", 10)):
        assert schema.REVISIONS[-10:] == tuple(f"toy_{number}" for number in range(1, 11))
        assert main(["db", "upgrade", "--url", url]) == Exit.DONE
        assert main(["db", "check", "--url", url]) == Exit.DONE
    assert schema.HEAD in schema.REVISIONS
    assert not [name for name in schema.REVISIONS if name.startswith("toy")]


def test_two_revisions_with_the_same_parent_are_both_named(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        text = f'revision = "{name}"\ndown_revision = "{schema.HEAD}"\n'
        (tmp_path / name / f"{name}.py").write_text(text)
    with (
        registered([facet_of_revisions("one", tmp_path / "one"), facet_of_revisions("other", tmp_path / "other")]),
        pytest.raises(ConfigurationError, match=r"one \(.*one\.py\) and other \(.*other\.py\) both come after"),
    ):
        _ = schema.HEAD


def test_a_revision_with_an_unknown_parent_is_named(tmp_path: Path) -> None:
    (tmp_path / "astray.py").write_text('revision = "astray"\ndown_revision = "nowhere"\n')
    with (
        registered([facet_of_revisions("astray", tmp_path)]),
        pytest.raises(ConfigurationError, match=r"astray \(.*\) comes after nowhere, which no facet has"),
    ):
        _ = schema.HEAD


def test_an_incomplete_declaration_names_the_missing_part() -> None:
    with pytest.raises(ConfigurationError, match=r"Storage of a facet does not declare revisions, .*shard_key: give"):
        Storage(tables="somewhere:define")
    with pytest.raises(ConfigurationError, match="Operations of a facet does not declare sql, mongodb, in_memory"):
        Operations()
    nothing = absent("nothing")
    with pytest.raises(ConfigurationError, match=r"Facet of the facet 'half' does not declare title, storage, moving"):
        Facet(name="half", operations=nothing, people=nothing, looking=nothing, packaging=nothing)


def test_a_facet_name_can_be_registered_only_once(tmp_path: Path) -> None:
    others = toys(tmp_path)
    with registered(toys(tmp_path)), pytest.raises(ConfigurationError, match="'toy_1' already"), registered(others):
        pass


def test_the_same_facet_may_be_registered_again(tmp_path: Path) -> None:
    facets = toys(tmp_path)
    with registered(facets):
        before = all_facets()
        register(facets[0])
        assert all_facets() == before
