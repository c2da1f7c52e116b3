"""The library works where Python has nothing that only POSIX has. That is as near to Windows as Linux comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, concurrent.futures, ctypes, multiprocessing.connection, os, select, sys, sysconfig, types, zoneinfo
import alembic.command, asyncpg, click, psycopg, pydantic_ai, rich.console, sqlalchemy.dialects.postgresql

for name in ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
missing = "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fchmod fchown fork getegid geteuid getuid killpg mkfifo"
for name in (*missing.split(), "register_at_fork"):
    delattr(os, name)
del select.poll
locks = []
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=lambda *call: locks.append(call))
sys.platform = "win32"

from firefly_memory import *
from firefly_memory.agents import *
from firefly_memory.cli import main


async def later(url):
    async with connect(url) as store:
        await store.async_save("notes", MemoryEntry(content="later"))
        return await store.async_count("notes")


for url in ("memory:", "file:files", "sqlite:///memory.db"):
    with connect(url) as store:
        store.save("notes", MemoryEntry(content={"a": 1}, key="k"))
        assert store.load_by_key("notes", "k").content == {"a": 1}
        manager = MemoryManager(store=store)
        manager.add_turn("chat", "Hello", "Hi!")
        assert len(manager.get_message_history("chat")) == 2
    assert asyncio.run(later(url)) == (1 if url == "memory:" else 2)
assert locks
assert not main(["export", "--url", "sqlite:///memory.db", "archive.jsonl"])
assert not main(["ls", "entries", "--url", "sqlite:///memory.db"])
"""


def test_stores_and_commands_need_nothing_that_only_posix_has(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "notes/" in done.stdout
    assert (tmp_path / "archive.jsonl").exists()
