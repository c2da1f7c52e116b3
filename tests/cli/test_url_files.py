"""Files that contain a URL: a pipe such as ``<(…)`` works too, although it can be read only once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from firefly_memory import MemoryEntry, SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit

Pipe = Callable[[str], str]


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    """Makes pipes that have a text in them, and returns their names."""
    if not Path("/dev/fd").exists():
        pytest.fail("this system has no names for pipes")
    monkeypatch.chdir(tmp_path)
    with ExitStack() as later:

        def make(text: str) -> str:
            reading, writing = os.pipe()
            later.callback(os.close, reading)
            os.write(writing, text.encode())
            os.close(writing)
            return f"/dev/fd/{reading}"

        yield make


COMMANDS = [["db", "upgrade"], ["db", "current"], ["db", "check"], ["db", "sql"], ["doctor"], ["export", "-"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_url_can_come_from_a_pipe(command: list[str], by: str, pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    with SQLiteStore("a.db") as store:
        store.save("n", MemoryEntry())
    Path("a.db").chmod(0o600)
    name = pipe("sqlite:///a.db\n")
    if by == "option":
        assert main([*command, "--url-file", name]) == Exit.DONE
    else:
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL_FILE", name)
        assert main(command) == Exit.DONE


def test_both_urls_of_a_copy_can_come_from_pipes(pipe: Pipe) -> None:
    with SQLiteStore("a.db") as store:
        store.save("n", MemoryEntry())
    copying = ["copy", "--from-file", pipe("sqlite:///a.db"), "--to-file", pipe("sqlite:///b.db"), "--quiet"]
    assert main(copying) == Exit.DONE
    with SQLiteStore("b.db") as store:
        assert store.count("n") == 1


def test_a_url_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"sqlite:///{tmp_path}/a.db\r\n", encoding="utf-8-sig")
    assert main(["db", "upgrade", "--url-file", str(file)]) == Exit.DONE
