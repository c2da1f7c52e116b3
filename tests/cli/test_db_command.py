"""``firefly-memory db``: the commands of a pipeline, their output and their exit codes."""

from __future__ import annotations

import pytest

from firefly_memory import MemoryEntry, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.schema import HEAD, REVISIONS
from tests.support.databases import execute
from tests.support.db_command import LATER, Db
from tests.support.revisions import first_made, making


def test_upgrade_and_downgrade_return_the_documented_exit_codes(db: Db, url: str) -> None:
    assert db("upgrade") == Exit.DONE
    assert db.out == f"ran {', '.join(REVISIONS)}\nat {HEAD}\n"
    assert db("upgrade") == Exit.DONE
    assert db.out == f"nothing to do\nat {HEAD}\n"
    assert db("current") == Exit.DONE
    assert db.out == f"{HEAD} (head)\n"
    assert db("check") == Exit.DONE
    with connect(url, migrate=False) as store:
        store.save("n", MemoryEntry(content="kept"))
    assert db("downgrade", "0001", "--yes") == Exit.DONE
    assert db.out.startswith(f"undid {', '.join(reversed(LATER))}\n")
    assert db("current") == Exit.BEHIND
    assert db.out == f"0001; missing: {', '.join(LATER)}\n"
    assert db("check") == Exit.BEHIND
    assert db("upgrade", "head") == Exit.DONE
    assert db.out.startswith(f"ran {', '.join(LATER)}\n")
    with connect(url, migrate=False) as store:
        assert [entry.content for entry in store.load("n")] == ["kept"]
    assert db("downgrade", "base", "--yes") == Exit.DONE
    assert db("downgrade", "base") == Exit.DONE, "nothing is left to lose"
    assert db.out == "nothing to do\nat base\n"
    assert db("current") == Exit.BEHIND
    assert db("upgrade", "0001") == Exit.DONE
    assert db.out.endswith("at 0001\n")
    assert db("upgrade", "base") == Exit.DONE
    assert db.out == "nothing to do\nat 0001\n"


def test_json_output_says_the_same(db: Db) -> None:
    assert db.json("upgrade") == {"ran": list(REVISIONS), "revision": HEAD}
    assert db.json("downgrade", "0001", "--yes") == {"undone": list(reversed(LATER)), "revision": "0001"}
    expected = {"revision": "0001", "head": HEAD, "state": "behind", "pending": list(LATER)}
    assert db.json("current") == expected
    assert db.json("check") == {**expected, "differences": []}
    assert db.json("stamp", "base") == {"revision": None}
    assert [each["revision"] for each in db.json("history")["revisions"]] == list(REVISIONS)
    assert db.json("upgrade", "0010") == {"error": db.err.removeprefix("firefly-memory: ").rstrip(), "exit_code": 2}


def test_a_database_that_is_ahead_is_left_alone(db: Db, url: str) -> None:
    db("upgrade")
    table = "firefly_memory_version" if url.startswith("sqlite") else "firefly_memory.firefly_memory_version"
    execute(url, f"UPDATE {table} SET version_num = '9999'")
    for action in (["current"], ["check"], ["upgrade"], ["downgrade", "base"]):
        assert db(*action) == Exit.AHEAD
        assert "9999" in db.out + db.err
    assert db.json("current")["state"] == "ahead"


def test_a_stamp_adopts_a_table_made_by_hand(db: Db, url: str) -> None:
    db("upgrade")
    db("stamp", "base")
    assert db("upgrade") == Exit.FAILED
    assert "memory_entries is there already, but no revision is recorded" in db.err
    last, _ = making("0010_0005")[-1]
    assert f"firefly-memory db stamp {last} --url " in db.err
    assert f"firefly-memory db check --url {url}" in db.err.replace("'", "")
    assert db("stamp", last) == Exit.DONE
    assert db("upgrade") == Exit.DONE
    assert db("check") == Exit.DONE


@pytest.mark.parametrize(
    ("there", "recorded"),
    [
        *making("0010_0005"), *((later, "0005") for later, _ in making("0010_0005")), ("0009_0005", "0008_0005"), ("0009_0005", "0005"), ("0008_0005", "0007_0005"), ("0008_0005", "0005"), ("0007_0005", "0006_0005"), ("0007_0005", "0005"), ("0007_0005", "base"),
        ("0006_0005", "0005"), ("0006_0005", "0004"), ("0006_0005", "base"), ("0005", "0004"), ("0005", "0003"), ("0005", "0002"), ("0005", "0001"),
        ("0003", "0002"), ("0003", "0001"), ("0002", "0001"), ("0001", "base"),
    ],
)  # fmt: skip
def test_a_wrongly_recorded_revision_is_named_with_the_right_one(there: str, recorded: str, db: Db) -> None:
    db("upgrade", there)
    db("stamp", recorded)
    assert db("upgrade") == Exit.FAILED
    assert ("no revision is recorded" if recorded == "base" else f"the recorded revision is {recorded}") in db.err
    first = {"0002": "memory_dialogues", "0001": "memory_conversations", "base": "memory_entries"}.get(recorded)
    if first is None or (first == "memory_dialogues" and there >= "0005"):
        first = "memory_agent_history"  # revision 0005 renames the other one
    what = f"table {first}" if recorded < "0005" or recorded == "base" else first_made(recorded, there)
    assert f"the {what} is there already" in db.err
    assert f"firefly-memory db stamp {there} --url" in db.err
    assert db("stamp", there) == Exit.DONE
    assert db("upgrade") == Exit.DONE
    assert db("check") == Exit.DONE


def test_what_is_there_already_is_known_from_the_script() -> None:
    found = {"0005": "column owner of memory_conversations", "0006_0005": "table memory_tombstones"}
    found |= {"0007_0005": "table memory_chunks", "0008_0005": "column dropped_turns of memory_conversations"}
    assert {each: first_made(each, "0010_0005") for each in found} == found
    assert first_made("0009_0005", "0010_0005") == "table memory_feeds"
    assert first_made("0003", "0004") is None
    assert making("0002")[0] == ("0002", "0001")
    assert ("0004", "0003") not in making("0002")


def test_a_useless_stamp_is_not_advised(db: Db, url: str) -> None:
    db("upgrade")
    place = "" if url.startswith("sqlite") else "firefly_memory."
    execute(url, f"DROP TABLE {place}memory_agent_history_entries")
    db("stamp", "0002")
    assert db("upgrade") == Exit.FAILED
    assert "the table memory_agent_history is there already, but the recorded revision is 0002" in db.err
    assert "stamp" not in db.err
    assert "restore a backup" in db.err


def test_the_history_has_a_line_for_each_revision(anywhere: Db) -> None:
    assert anywhere("history") == Exit.DONE
    lines = anywhere.out.splitlines()
    assert [line.split()[0] for line in lines] == list(REVISIONS)
    assert lines[-1].endswith("(head)")


def test_the_command_prints_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("firefly-memory 0.")


def test_the_help_explains_each_command(anywhere: Db) -> None:
    for action in ("upgrade", "downgrade", "current", "history", "check", "sql", "grants", "stamp"):
        assert anywhere(action, "--help") == Exit.DONE
        assert "exit codes:" in anywhere.out
        assert "--url-file" in anywhere.out
