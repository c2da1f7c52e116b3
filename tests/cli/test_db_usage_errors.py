"""``firefly-memory db`` with wrong options or unreachable servers prints one line and returns an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from firefly_memory import MemoryEntry, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from tests.support.db_command import SECRET, Db
from tests.support.servers import EmbeddedPostgreSQL


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["upgrade", "0009", "--url", "sqlite:///a.db"], 2, "no revision '0009'; there are base, 0001"),
        (["sql", "0002"], 2, "write FROM:TO"),
        (["sql", "nothing:head"], 2, "no revision 'nothing'"),
        (["current"], 2, "pass --url"),
        (
            ["current", "--url", "sqlite:///a.db", "--schema", "s"],
            2,
            "--schema is for PostgreSQL, and the store is SQLite",
        ),
        (["upgrade", "--url", "sqlite:///a.db", "--database", "d"], 2, "--database is for MongoDB"),
        (["current", "--url", "redis://user:correct-horse@h"], 2, "redis"),
        (["current", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["check", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["downgrade", "base", "--yes", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["stamp", "head", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["stamp", "base", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["current", "--url", "postgresql://u:correct-horse@127.0.0.1:1/x"], 6, "127.0.0.1"),
        (["current", "--url-file", "not-there"], 2, "cannot be read from the file not-there"),
        (["current", "--url-file", "empty"], 2, "must have a URL in it"),
        (["current", "--url", "sqlite:///a.db", "--url-file", "empty"], 2, "not allowed with"),
        (["upgrade", "--url", "postgresql://h/x", "--schema", "pg_mine"], 2, "pg_mine"),
        (["grants", "role", "--url", "sqlite:///a.db"], 2, "only PostgreSQL has roles"),
        (["grants", ""], 2, "no name of a role"),
        (["grants", "public"], 2, "for all roles"),
        (["grants", "none"], 2, "no name of a role"),
        (["grants", "r" * 64], 2, "more than 63 bytes"),
        (["downgrade", "--url", "sqlite:///a.db"], 2, "Missing argument 'REVISION'"),
        (["fly"], 2, "there is no command 'fly'; there are upgrade, downgrade, "),
    ],
    ids=str,
)
def test_an_error_is_one_line_and_an_exit_code(
    arguments: list[str], code: int, words: str, anywhere: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    assert anywhere(*arguments) == code
    assert words in anywhere.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"], "nothing is made"


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "-1", "0", "soon", ""])
@pytest.mark.parametrize(
    "arguments",
    [
        ["upgrade", "--timeout"],
        ["upgrade", "--lock-timeout"],
        ["downgrade", "base", "--yes", "--timeout"],
        ["downgrade", "base", "--yes", "--lock-timeout"],
        ["current", "--timeout"],
        ["check", "--timeout"],
        ["stamp", "head", "--timeout"],
        ["import-legacy", "--from", "sqlite:///old.db", "--timeout"],
    ],
    ids=" ".join,
)
def test_a_time_out_is_a_finite_number_above_0(
    arguments: list[str], seconds: str, anywhere: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert anywhere(*arguments[:-1], f"{arguments[-1]}={seconds}", "--url", "sqlite:///a.db") == Exit.USAGE
    assert f"Invalid value for '{arguments[-1]}': must be a number of seconds above 0" in anywhere.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_a_time_out_of_doctor_is_checked_in_the_same_way(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--url", "memory:", f"--timeout={seconds}"])
    assert ended.value.code == Exit.USAGE
    assert "must be a number of seconds above 0" in capsys.readouterr().err


def test_a_very_long_time_out_is_accepted(url: str, anywhere: Db) -> None:
    for seconds in ("1e7", "1e300"):
        for action in (["upgrade", "--lock-timeout", seconds], ["check"], ["downgrade", "base", "--yes"]):
            assert anywhere(*action, "--url", url, "--timeout", seconds) == Exit.DONE, anywhere.err


def test_a_refused_login_and_a_hanging_server_are_one_line_each(anywhere: Db) -> None:
    server = EmbeddedPostgreSQL(password=SECRET)
    server.start()
    try:
        wrong = server.url.replace(SECRET, "wrong")
        assert anywhere("current", "--url", wrong) == Exit.UNREACHABLE
        assert "refused the login" in anywhere.err
        assert "wrong" not in anywhere.err
        assert anywhere("current", "--url", server.url) == Exit.BEHIND
        server.freeze()
        assert anywhere("current", "--url", server.url, "--timeout", "1") in (Exit.UNREACHABLE, Exit.BUSY)
        server.thaw()
    finally:
        server.remove()


@pytest.mark.parametrize(
    "arguments",
    [
        ["db", "downgrade", "base", "--yes", "--url", ""],
        ["db", "downgrade", "base", "--yes", "--url", " "],
        ["db", "downgrade", "base", "--yes", "--url-file", ""],
        ["db", "downgrade", "base", "--yes", "--schema", ""],
        ["db", "upgrade", "--database", ""],
        ["db", "upgrade", "--collection", ""],
        ["db", "check", "--url="],
        ["doctor", "--url", ""],
        ["export", "--url", ""],
        ["export", "--url-file", ""],
        ["export", ""],
        ["import", "--url", ""],
        ["import", ""],
        ["copy", "--from", "", "--to", "memory:"],
        ["copy", "--from", "memory:", "--to", ""],
        ["copy", "--from-file", "", "--to", "memory:"],
        ["copy", "--from", "memory:", "--to-file", ""],
        ["copy", "--from", "memory:", "--to", "memory:", "--to-schema", ""],
        ["copy", "--from", "memory:", "--to", "memory:", "--from-database", ""],
        ["copy", "--from", "memory:", "--to", "memory:", "--from-collection", ""],
        ["db", "import-legacy", "--from", ""],
        ["db", "import-legacy", "--from-file", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--url", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--table", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--database", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--collection", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--schema", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--to-database", ""],
    ],
    ids=str,
)
def test_an_empty_option_is_refused_and_the_environment_is_not_used(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a script has it whose variable is not set: ``--url "$URL"``."""
    monkeypatch.chdir(tmp_path)
    with connect("sqlite:///kept.db") as store:
        store.save("n", MemoryEntry(content="kept"))
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", "sqlite:///kept.db")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert "is empty" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_url_and_a_variable_that_contradicts_it_are_an_error(
    anywhere: Db, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", "sqlite:///a.db")
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "file")
    for action in ("upgrade", "current", "check", "sql"):
        assert anywhere(action) == Exit.USAGE
        assert "FIREFLY_AGENTIC_MEMORY_BACKEND contradicts FIREFLY_AGENTIC_MEMORY_URL" in anywhere.err
    assert anywhere("upgrade", "--url", "sqlite:///b.db") == Exit.DONE
    assert not (tmp_path / "a.db").exists()
