"""Several processes of ``firefly-memory db upgrade`` at once, also blocked and killed ones."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest

from firefly_memory.cli.exits import Exit
from firefly_memory.schema import REVISIONS
from tests.support.databases import execute
from tests.support.db_command import LATER, Db

pytestmark = pytest.mark.thorough


def test_a_blocked_migration_gives_up_and_changes_nothing(postgresql: str, anywhere: Db) -> None:
    given = "--url", postgresql
    anywhere("upgrade", *given)
    with psycopg.connect(postgresql) as reader:  # a transaction that is left open, as a report may
        reader.execute("SELECT count(*) FROM firefly_memory.memory_turns")
        assert anywhere("downgrade", "0001", "--yes", *given, "--lock-timeout", "0.2") == Exit.BUSY
        assert "another transaction has held a table for 0.2 seconds; nothing has been changed" in anywhere.err
        # And nobody who came after it had to wait behind it.
        execute(postgresql, "SELECT count(*) FROM firefly_memory.memory_turns")
    assert anywhere("current", *given) == Exit.DONE
    assert anywhere("downgrade", "0001", "--yes", *given) == Exit.DONE


_CROWD = """
import multiprocessing, sys, io, contextlib
from firefly_memory.cli import main
import firefly_memory.databases.sql.schema.commands, alembic.command, psycopg

def one(_):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(["db", "upgrade", "--url", sys.argv[1]])
    return code, said.getvalue().splitlines()[0]

with multiprocessing.get_context("fork").Pool(32) as pool:
    for code, line in pool.map(one, range(32), chunksize=1):
        print(code, line)
"""


def test_of_32_processes_one_migrates_and_all_succeed(url: str) -> None:
    crowd = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _CROWD, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert crowd.returncode == 0, crowd.stderr
    assert sorted(crowd.stdout.splitlines()) == ["0 nothing to do"] * 31 + [f"0 ran {', '.join(REVISIONS)}"]


def test_a_migrator_killed_in_the_middle_frees_the_others(postgresql: str, anywhere: Db) -> None:
    given = "--url", postgresql
    anywhere("upgrade", *given)
    with psycopg.connect(postgresql) as reader:
        reader.execute("SELECT count(*) FROM firefly_memory.memory_turns")
        command = [
            sys.executable,
            "-m",
            "firefly_memory.cli",
            "db",
            "downgrade",
            "base",
            "--yes",
            *given,
            "--lock-timeout",
            "60",
        ]
        with subprocess.Popen(command) as migrator:
            while not execute(postgresql, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                assert migrator.poll() is None
            assert anywhere("upgrade", *given, "--timeout", "0.5") == Exit.BUSY
            assert "still migrating" in anywhere.err
            migrator.kill()
    assert anywhere("downgrade", "0001", "--yes", *given) == Exit.DONE
    assert anywhere.out.startswith(f"undid {', '.join(reversed(LATER))}\n"), "the killed one changed nothing"
