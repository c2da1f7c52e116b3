"""A database shared with an application's own Alembic, which ignores our tables or migrates them."""

from __future__ import annotations

import shlex
from pathlib import Path
from shutil import copytree

import pytest

import firefly_memory
from firefly_memory import ConversationMemory, MemoryEntry, SchemaMismatchError, connect
from firefly_memory.alembic import LeaveOut, include_object
from firefly_memory.databases.sql.schema.commands import State
from firefly_memory.databases.sql.schema.metadata import metadata
from firefly_memory.schema import HEAD, REVISIONS
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.documentation import ROOT, blocks
from tests.support.host_project import PROJECT, alembic, done
from tests.support.revisions import migrations

pytestmark = pytest.mark.thorough


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy, for revisions are written into it."""
    return copytree(PROJECT, tmp_path / "project")


def use(url: str) -> int:
    """Entries in the namespace after one more was saved, by a service that may not migrate."""
    with connect(url, migrate=False) as store:
        store.save("n", MemoryEntry(content=1))
        ConversationMemory(store=store).add_turn("c", "p", "a")
        return store.count("n")


def test_the_application_s_autogenerate_leaves_our_tables_alone(project: Path, url: str) -> None:
    with connect(url) as store:
        store.save("n", MemoryEntry())
    done(project, url, "upgrade", "head")
    done(project, url, "check")
    execute(url, "DROP TABLE orders")
    execute(url, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    done(project, url, "revision", "--autogenerate", "-m", "item")
    (written,) = (project / "versions").glob("*_item.py")
    text = written.read_text()
    assert "add_column('orders'" in text
    assert "memory_" not in text
    assert use(url) == 2


def test_without_the_helper_autogenerate_would_drop_our_tables(project: Path, place: Place) -> None:
    """Or the tests above would show nothing."""
    with empty_postgresql(place.postgresql()) as url:
        with connect(url):
            pass
        env = project / "env.py"
        env.write_text(env.read_text().replace('    "include_name": include_name,\n', ""))
        done(project, url, "upgrade", "head")
        assert "memory_entries" in alembic(project, url, "check").stdout


def test_one_upgrade_of_the_application_migrates_both(project: Path, url: str) -> None:
    done(project, url, "-n", "both", "upgrade", "heads")
    assert use(url) == 1
    assert execute(url, "SELECT count(*) FROM orders") == [(0,)]
    heads = done(project, url, "-n", "both", "current")
    assert "0001 (head)" in heads
    assert f"firefly_{HEAD} (firefly_memory) (head)" in heads or f"firefly_{HEAD} (head)" in heads
    done(project, url, "-n", "both", "check")
    with migrations(url, timeout=10) as database:
        status, differences = database.differences()
    assert status.state is State.CURRENT
    assert differences == []
    with connect(url) as store:
        assert store.count("n") == 1, "nothing left to migrate for a store"


def test_the_branch_can_be_downgraded_step_by_step(project: Path, url: str) -> None:
    done(project, url, "-n", "both", "upgrade", "heads")
    done(project, url, "-n", "both", "downgrade", "firefly_memory@firefly_0001")
    with pytest.raises(SchemaMismatchError, match="0001"):
        use(url)
    done(project, url, "-n", "both", "downgrade", "firefly_memory@base")
    with migrations(url, timeout=10) as database:
        assert database.status().revision is None
    done(project, url, "-n", "both", "upgrade", "firefly_memory@head")
    assert use(url) == 1


def test_a_database_that_a_store_has_migrated_is_adopted(project: Path, url: str) -> None:
    with connect(url) as store:
        store.save("n", MemoryEntry(content="there before"))
    done(project, url, "-n", "both", "upgrade", "heads")
    assert use(url) == 2


def test_a_schema_of_a_later_version_is_left_unchanged(project: Path, url: str) -> None:
    """If this version goes on working with it; if not, Alembic says so."""
    with connect(url):
        pass
    table = "firefly_memory_version" if url.startswith("sqlite") else "firefly_memory.firefly_memory_version"
    execute(url, f"UPDATE {table} SET version_num = '9999_{HEAD[:4]}'")
    done(project, url, "-n", "both", "upgrade", "heads")
    assert execute(url, f"SELECT version_num FROM {table}") == [(f"9999_{HEAD[:4]}",)]
    assert use(url) == 1


def test_an_incompatible_later_schema_stops_the_upgrade(project: Path, url: str) -> None:
    with connect(url):
        pass
    table = "firefly_memory_version" if url.startswith("sqlite") else "firefly_memory.firefly_memory_version"
    execute(url, f"UPDATE {table} SET version_num = '9999'")
    refused = alembic(project, url, "-n", "both", "upgrade", "heads")
    assert refused.returncode != 0
    assert "pip install --upgrade firefly-memory" in refused.stderr


def test_the_branch_can_be_written_as_sql(project: Path, url: str) -> None:
    script = done(project, url, "-n", "both", "upgrade", "heads", "--sql")
    execute(url, script)
    assert use(url) == 1


def test_the_search_path_of_the_application_is_restored(project: Path, place: Place) -> None:
    with empty_postgresql(place.postgresql()) as url:
        script = done(project, url, "-n", "both", "upgrade", "heads", "--sql")
        shown = "CREATE TABLE public.shown AS SELECT current_setting('search_path') AS path; COMMIT;"
        before, commit, _ = script.rpartition("COMMIT;")
        assert commit
        execute(url, before + shown)
        assert execute(url, "SELECT path FROM public.shown") == [('"$user", public',)]


def test_the_sql_of_the_branch_runs_with_a_transaction_for_each_statement(project: Path, place: Place) -> None:
    with empty_postgresql(place.postgresql()) as url:
        script = done(project, url, "-n", "both", "upgrade", "heads", "--sql")
        for statement in script.replace("BEGIN;", "").replace("COMMIT;", "").split(";\n"):
            if statement.strip():
                execute(url, statement)
        assert use(url) == 1


BRANCH = Path(firefly_memory.__file__).parent / "alembic_branch"
FIRST, LATER = (
    block.text
    for block in blocks(ROOT / "docs" / "alembic.md")
    if block.not_run is not None and "alembic revision" in block.text
)


@pytest.fixture
def new_project(project: Path) -> Path:
    """An application without a revision yet, whose Alembic is set up as the page says."""
    (project / "versions" / "0001_orders.py").unlink()
    ini = project / "alembic.ini"
    ini.write_text("[alembic]\n" + ini.read_text().partition("[both]\n")[2])
    return project


def run_block(text: str, project: Path, url: str) -> None:
    for line in text.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "alembic"
        done(project, url, *arguments)


def test_the_revision_commands_of_the_page_work(new_project: Path, url: str) -> None:
    ours = {path: path.read_bytes() for path in BRANCH.iterdir() if path.is_file()}
    run_block(FIRST, new_project, url)
    assert execute(url, "SELECT count(*) FROM orders") == [(0,)]
    env = new_project / "env.py"
    env.write_text(env.read_text().replace("nullable=False))", "nullable=False), Column('price', Integer))"))
    run_block(LATER, new_project, url)
    assert execute(url, "SELECT price FROM orders") == []
    assert len(list((new_project / "versions").glob("*.py"))) == 2
    assert {path: path.read_bytes() for path in BRANCH.iterdir() if path.is_file()} == ours
    assert use(url) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["revision", "-m", "first"],
        ["revision", "-m", "first", "--autogenerate"],
        ["revision", "-m", "first", "--head", "firefly_memory@head"],
        ["revision", "-m", "first", "--head", "base", "--version-path", str(BRANCH)],
        ["merge", f"firefly_{HEAD}", "base", "-m", "both"],
    ],
    ids=" ".join,
)
def test_a_revision_that_would_be_written_into_the_package_is_refused(
    arguments: list[str], new_project: Path, tmp_path: Path
) -> None:
    there = sorted(BRANCH.iterdir())
    url = f"sqlite:///{tmp_path}/memory.db"
    done(new_project, url, "upgrade", "heads")
    refused = alembic(new_project, url, *arguments)
    written = set(BRANCH.iterdir()) - set(there)
    for path in written:  # or this package would be broken from now on
        path.unlink()
    assert (refused.returncode != 0, written) == (True, set())
    assert "--head base --branch-label app --version-path" in " ".join(refused.stdout.split())
    assert "Traceback" not in refused.stderr


def test_a_project_with_earlier_revisions_names_the_head_of_a_new_one(project: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    refused = alembic(project, url, "-n", "both", "revision", "-m", "next")
    assert "Multiple heads" in refused.stdout
    done(project, url, "-n", "both", "revision", "-m", "next", "--head", "0001")
    assert len(list((project / "versions").glob("*_next.py"))) == 1


def test_leave_out_keeps_the_conditions_of_the_application() -> None:
    leave = LeaveOut("agents", include_name=lambda name, *_: name != "secret")
    assert not leave.include_name("agents", "schema", {})
    assert leave.include_name("firefly_memory", "schema", {})
    assert not leave.include_name("secret", "table", {"schema_name": None})
    assert leave.include_name("memory_entries", "table", {"schema_name": "public"})
    assert not leave.include_name("memory_entries", "table", {"schema_name": None})
    assert not leave.include_name("anything", "table", {"schema_name": "agents"})


def test_include_object_leaves_our_tables_out_too() -> None:
    theirs = metadata("firefly_memory").tables["firefly_memory.memory_entries"]
    own = metadata(None).tables["memory_entries"]
    reflected = True
    assert not include_object(theirs, "memory_entries", "table", reflected, None)
    assert not include_object(own, "memory_entries", "table", reflected, None)
    assert include_object(own, "memory_entries", "table", not reflected, None), "in the application's own metadata"
    assert not LeaveOut(include_object=lambda *_: False).include_object(own, "x", "column", reflected, None)


def test_the_branch_has_every_revision() -> None:
    assert sorted(path.stem for path in BRANCH.glob("firefly_*.py")) == [f"firefly_{name}" for name in REVISIONS]
