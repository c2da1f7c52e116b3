"""Env files: commands read only the file that an option names, not the file in the working directory."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from firefly_memory import ConfigurationError, FileStore, MemoryEntry, MemoryManager, SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.settings import read_settings_of_command

ROOT = Path(__file__).parents[2]
PREFIX = "FIREFLY_AGENTIC_MEMORY_"
EARLIER_PREFIX = "FIREFLY_GENAI_MEMORY_"


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody else has put a file into the directory that a command is started in."""
    for name in list(os.environ):
        if name.startswith((PREFIX, EARLIER_PREFIX)):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        f"{PREFIX}URL=file:planted\n{EARLIER_PREFIX}BACKEND=file\n{PREFIX}POSTGRES_SCHEMA=x\n"
    )
    with FileStore("planted") as store:
        store.save("n", MemoryEntry(content="planted"))


COMMANDS = [
    ["export"],
    ["import", "archive.jsonl"],
    ["doctor"],
    ["db", "upgrade"],
    ["db", "downgrade", "base", "--yes"],
    ["db", "current"],
    ["db", "check"],
    ["db", "stamp", "head"],
    ["db", "import-legacy", "--from", "sqlite:///old.db"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_does_not_read_the_env_file_of_its_directory(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect("old.db")
    connection.execute("CREATE TABLE memory_entries (entry_id TEXT PRIMARY KEY, namespace TEXT, content TEXT)")
    connection.close()
    Path("archive.jsonl").write_text('{"format": "firefly-memory-archive/1"}\n{"end": {}}\n')
    assert main(command) == Exit.USAGE
    assert "no store: pass --url-file or --url" in capsys.readouterr().err


def test_other_commands_do_not_read_the_env_file_of_their_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "grants", "role"]) == Exit.DONE
    assert '"x"' not in (printed := capsys.readouterr().out)
    assert " x" not in printed
    assert main(["db", "sql", "--dialect", "postgresql"]) == Exit.DONE
    assert "CREATE SCHEMA IF NOT EXISTS firefly_memory" in capsys.readouterr().out
    assert main(["copy", "--from", "file:planted", "--to", "file:copied", "--quiet"]) == Exit.DONE


@pytest.mark.parametrize("prefix", [PREFIX, EARLIER_PREFIX])
def test_a_command_reads_the_file_that_is_named(prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("named.env").write_text(f"{prefix}BACKEND=sqlite\n{prefix}SQLITE_PATH=named.db\n")
    if prefix == EARLIER_PREFIX:
        with pytest.warns(DeprecationWarning, match=PREFIX):
            assert main(["db", "upgrade", "--env-file", "named.env"]) == Exit.DONE
    else:
        assert main(["db", "upgrade", "--env-file", "named.env"]) == Exit.DONE
    assert Path("named.db").exists()
    Path("named.env").write_text(f"{PREFIX}BACKEND=sqlite\n{PREFIX}SQLITE_PATH=missing.db\n")
    assert main(["doctor", "--env-file", "named.env"]) == Exit.BEHIND
    assert "firefly-memory db upgrade --env-file named.env" in capsys.readouterr().err


def test_variables_of_the_process_override_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("named.env").write_text(f"{PREFIX}BACKEND=file\n{PREFIX}FILE_DIR=from-file\n")
    monkeypatch.setenv(f"{PREFIX}FILE_DIR", "from-process")
    assert read_settings_of_command(Path("named.env")).file_dir == "from-process"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.env", "the file of variables missing.env cannot be read: there is no such file"),
        (".", "the file of variables . cannot be read: it is a directory, a pipe or a device; name a file"),
        ("latin.env", "the file latin.env is not UTF-8"),
        ("bad.env", f"{PREFIX}BACKEND: must be one of"),
    ],
)
def test_an_unusable_env_file_is_named(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("latin.env").write_bytes(b"OTHER=\xe9\n")
    Path("bad.env").write_text(f"{PREFIX}BACKEND=redis\n")
    assert main(["doctor", "--env-file", name]) == Exit.USAGE
    assert words in capsys.readouterr().err


def test_a_manager_still_reads_the_env_file_of_its_directory() -> None:
    Path(".env").write_text(f"{PREFIX}BACKEND=file\n{PREFIX}FILE_DIR=planted\n")
    with MemoryManager.from_config() as manager:
        assert [entry.content for entry in manager.store.load("n")] == ["planted"]


def alembic(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "alembic", "-c", str(ROOT / "alembic.ini"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_alembic_reads_the_file_that_is_named_and_no_other() -> None:
    Path(".env").write_text(f"{PREFIX}URL=sqlite:///planted.db\n")
    refused = alembic("upgrade", "head")
    assert refused.returncode != 0
    assert "no database: set" in refused.stderr
    assert not Path("planted.db").exists()
    Path("named.env").write_text(f"{PREFIX}URL=sqlite:///named.db\n")
    assert alembic("-x", "env_file=named.env", "upgrade", "head").returncode == 0
    Path("url").write_text("sqlite:///of-url-file.db\n")
    assert alembic("-x", "url_file=url", "upgrade", "head").returncode == 0
    for name in ("named.db", "of-url-file.db"):
        with SQLiteStore(name, migrate=False) as store:
            store.save("n", MemoryEntry())
    both = alembic("-x", "url_file=url", "-x", "url=sqlite:///x.db", "current")
    assert "both name a database" in both.stderr


@pytest.mark.parametrize("command", [*COMMANDS, ["copy"], ["db", "sql"], ["db", "grants", "role"]], ids=" ".join)
def test_every_help_says_that_urls_are_seen_and_names_the_file_first(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert "everybody on this machine sees the options of a command" in words
    assert "--env-file FILE" in words
    files = [words.index(option) for option in ("--url-file FILE ", "--from-file FILE ") if option in words]
    urls = [words.index(option) for option in ("--url URL ", "--from URL ") if option in words]
    assert min(files) < min(urls)


def test_a_missing_env_file_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError):
        read_settings_of_command(Path("missing"))
