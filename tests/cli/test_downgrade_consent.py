"""``firefly-memory db downgrade`` drops data only after a confirmation."""

from __future__ import annotations

import json

import pytest

from firefly_memory import ConversationMemory, MemoryEntry, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.sql.postgresql.url import postgresql_url
from firefly_memory.databases.sql.schema.metadata import metadata
from firefly_memory.schema import REVISIONS
from tests.support.databases import execute
from tests.support.terminal import answered_on_a_terminal

TABLES = sorted(metadata(None).tables)

OF_REVISION_0004 = {"memory_entries", "memory_agent_history", "memory_agent_history_entries"}
"""The tables that lose nothing until then, by their present names."""
DROPPED_LAST = [
    "memory_feed_messages",
    "memory_feeds",
    "memory_flushes",
    "memory_turns",
    "memory_conversations",
    "memory_search_indexes",
    "memory_chunks_signatures",
    "memory_chunks_vectors",
    "memory_chunks",
    "memory_tombstones",
]
"""What the revisions after 0004 up to 0010 have made or changed, the newest first. Later revisions are undone before."""


@pytest.fixture
def used(url: str) -> str:
    """The URL of a database with an entry and two turns in it."""
    with connect(url) as store:
        store.save("n", MemoryEntry(content=1))
        for _ in range(2):
            ConversationMemory(store=store).add_turn("chat", "p", "a")
    return url


def name_of(url: str) -> str:
    return url.rpartition("/")[2].partition("?")[0]


def where(url: str) -> str:
    """As it is said to people, without a password."""
    if url.startswith("sqlite"):
        return f"which is {url.removeprefix('sqlite:///')}"
    return f"which is {postgresql_url(url)}, schema firefly_memory"


def is_untouched(url: str) -> bool:
    with connect(url, migrate=False) as store:
        return store.count("n") == 1 and len(ConversationMemory(store=store).get_turns("chat")) == 2


@pytest.mark.parametrize("revision", ["base", "0001"])
def test_without_a_terminal_and_without_yes_nothing_changes(
    revision: str, used: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "downgrade", revision, "--url", used]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing was changed: this would drop" in said.err
    assert "memory_turns with 2 rows" in said.err
    assert ("memory_entries with 1 row" in said.err) == (revision == "base")
    assert "--yes" in said.err
    assert where(used).removeprefix("which is ") in said.err
    assert is_untouched(used)


def test_a_dry_run_names_what_would_be_dropped(used: str, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--yes"]):
        assert main(["db", "downgrade", "base", "--dry-run", *options, "--url", used]) == Exit.DONE
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"would undo {', '.join(reversed(REVISIONS))} in {name_of(used)}"
        assert lines[1] == where(used)
        assert sorted(line.split()[2] for line in lines[2:]) == TABLES
        assert "would drop memory_turns with 2 rows" in lines
    assert main(["db", "downgrade", "0001", "--dry-run", "--json", "--url", used]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["would_undo"] == list(reversed(REVISIONS[1:]))
    assert {"table": "memory_turns", "rows": 2} in found["would_drop"]
    assert "memory_entries" not in str(found)
    assert main(["db", "downgrade", REVISIONS[-1], "--dry-run", "--url", used]) == Exit.DONE
    assert capsys.readouterr().out == "nothing to do\n"
    assert is_untouched(used)


def test_a_renamed_table_is_counted_under_its_present_name(used: str, capsys: pytest.CaptureFixture[str]) -> None:
    prefix = "" if used.startswith("sqlite") else "firefly_memory."
    values = "('e', 'message', '{}', 0)"
    execute(
        used, f"INSERT INTO {prefix}memory_agent_history_entries (entry_id, kind, message, holders) VALUES {values}"
    )
    assert main(["db", "downgrade", "0002", "--dry-run", "--url", used]) == Exit.DONE
    assert "would drop memory_agent_history_entries with 1 row" in capsys.readouterr().out.splitlines()
    assert main(["db", "downgrade", "0004", "--dry-run", "--json", "--url", used]) == Exit.DONE
    # Columns of revisions 0006 and 0009 go; the tables that revision 0005 has renamed lose nothing.
    dropped = json.loads(capsys.readouterr().out)["would_drop"]
    assert {each["table"]: each["rows"] for each in dropped if each["rows"]} == {
        "memory_turns": 2,
        "memory_conversations": 1,
    }
    tables = [each["table"] for each in dropped]
    assert sorted(tables) == [each for each in TABLES if each not in OF_REVISION_0004]
    assert tables[-len(DROPPED_LAST) :] == DROPPED_LAST


def test_a_terminal_user_has_to_type_the_name_of_the_database(used: str) -> None:
    command = ["db", "downgrade", "base", "--url", used]
    for answer in (b"yes\n", b"\n", b"\x04"):  # the last is the end of what is typed
        code, shown = answered_on_a_terminal(answer, *command)
        assert code == Exit.USAGE, shown
        assert "would drop memory_turns with 2 rows" in shown
        assert where(used) in shown
        assert "nothing was changed: that is not the name of the database" in shown
        assert is_untouched(used)
    code, shown = answered_on_a_terminal(name_of(used).encode() + b"\n", *command)
    assert code == Exit.DONE, shown
    assert f"undid {', '.join(reversed(REVISIONS))}" in shown
    assert main(["db", "current", "--url", used]) == Exit.BEHIND


def test_the_option_yes_skips_the_confirmation(used: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "downgrade", "0001", "--yes", "--url", used]) == Exit.DONE
    said = capsys.readouterr()
    assert (said.out.splitlines()[1], said.err) == ("at 0001", "")
    schema_name = "" if used.startswith("sqlite") else "firefly_memory."
    assert execute(used, f"SELECT count(*) FROM {schema_name}memory_entries") == [(1,)]


def test_a_downgrade_without_loss_needs_no_confirmation(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["db", "upgrade", "0001", "--url", url])
    assert main(["db", "downgrade", "0001", "--url", url]) == Exit.DONE
    assert "nothing to do" in capsys.readouterr().out
