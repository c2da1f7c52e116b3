"""Rolling deployments: this version works on a schema that a later version has extended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firefly_memory import ConversationMemory, EntryStore, MemoryEntry, SchemaMismatchError, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.sql.schema.commands import State
from firefly_memory.schema import HEAD
from firefly_memory.testing import Check, Mode, checks
from tests.support.databases import empty_postgresql, execute
from tests.support.revisions import migrations

pytestmark = pytest.mark.thorough

LATER = f"9999_{HEAD[:4]}"

# What a revision may add without disturbing anybody: columns with a default or without a value, tables, indexes.
EXPANSION = """
ALTER TABLE {prefix}memory_entries ADD COLUMN tenant TEXT;
ALTER TABLE {prefix}memory_entries ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE {prefix}memory_turns ADD COLUMN model TEXT;
ALTER TABLE {prefix}memory_conversations ADD COLUMN title TEXT NOT NULL DEFAULT '';
CREATE INDEX idx_entries_tenant ON {prefix}memory_entries (tenant);
CREATE TABLE {prefix}memory_vectors (entry_id TEXT PRIMARY KEY);
UPDATE {prefix}firefly_memory_version SET version_num = '{later}';
"""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def expanded(
    request: pytest.FixtureRequest, servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a database that a later release has expanded."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('expanded')}/memory.db"
        with connect(url):
            pass
        execute(url, EXPANSION.format(prefix="", later=LATER))
        yield url
        return
    with empty_postgresql(servers_of_the_session["postgresql"]()) as url:
        with connect(url):
            pass
        execute(url, EXPANSION.format(prefix="firefly_memory.", later=LATER))
        yield url


@pytest.mark.parametrize("check", list(checks()), ids=str)
def test_this_version_passes_the_conformance_suite_on_an_expanded_schema(check: Check, expanded: str) -> None:
    check.run(lambda: connect(expanded, migrate=False), Mode.BLOCKING)


@pytest.mark.parametrize("migrate", [False, True])
def test_a_start_changes_nothing_in_an_expanded_schema(migrate: bool, expanded: str) -> None:
    with connect(expanded, migrate=migrate) as store:
        use(store)
    with migrations(expanded, timeout=10) as database:
        assert database.status().revision == LATER
        assert database.status().state is State.COMPATIBLE


@pytest.mark.parametrize("action", [["db", "current"], ["db", "check"], ["doctor"], ["db", "upgrade"]], ids=" ".join)
def test_the_commands_of_a_pipeline_succeed_on_an_expanded_schema(
    action: list[str], expanded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An init container that runs one of them stops no roll-out."""
    assert main([*action, "--url", expanded]) == Exit.DONE
    said = capsys.readouterr().out
    assert LATER in said
    if action != ["db", "upgrade"]:
        assert "ahead, compatible" in said
        assert main([*action, "--url", expanded, "--json"]) == Exit.DONE
        assert "ahead, compatible" in capsys.readouterr().out


def test_this_version_refuses_to_downgrade_an_expanded_schema(
    expanded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "downgrade", "base", "--url", expanded]) == Exit.AHEAD
    assert LATER in capsys.readouterr().err


def use(store: EntryStore) -> None:
    store.save("n", MemoryEntry(content=1))
    ConversationMemory(store=store).add_turn("c", "p", "a")
    store.clear("n")
    ConversationMemory(store=store).clear("c")


def test_running_processes_keep_working_during_a_roll_out(servers_of_the_session: Any) -> None:
    with empty_postgresql(servers_of_the_session["postgresql"]()) as url, connect(url) as store:
        use(store)
        execute(url, EXPANSION.format(prefix="firefly_memory.", later=LATER))
        use(store)


@pytest.mark.parametrize("revision", ["9999", "9999_9998", f"9999_{HEAD[:4]}x", f"{HEAD[:4]}_0001"])
def test_a_later_revision_that_is_not_marked_compatible_is_refused(revision: str, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with connect(url):
        pass
    execute(url, f"UPDATE firefly_memory_version SET version_num = '{revision}'")
    for migrate in (True, False):
        store = connect(url, migrate=migrate)
        with pytest.raises(SchemaMismatchError, match="pip install --upgrade firefly-memory"):
            store.initialize_sync()
        store.close_sync()
