"""The tutorial as its reader walks it: files are saved under their names, and commands are typed in their order."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.support.documentation import ROOT, Block, blocks

PAGE = ROOT / "docs" / "tutorial.md"
EXAMPLE = ROOT / "examples" / "tutorial"
MADE = (
    "DROP DATABASE IF EXISTS chat WITH (FORCE)",
    "DROP ROLE IF EXISTS chat_owner",
    "DROP ROLE IF EXISTS chat_service",
)
TYPED = "tests/docs/test_tutorial.py"
UNTIL_THE_MIDDLE = "tail -c +1 -F answer.txt 2> /dev/null | head -c 40 > /dev/null"
"""Takes the place of ``sleep 2``."""

WARNINGS = "error,ignore:unclosed <socket:ResourceWarning"
"""uvicorn leaves the socket that its workers share to the end of the process."""

_FILE = re.compile(r"# (?P<name>[\w/]+\.(?:py|ini))\n")


def files() -> dict[str, str]:
    """The files of the page, by their names."""
    found = [(_FILE.match(block.text), block.text) for block in blocks(PAGE)]
    return {name["name"]: text for name, text in found if name is not None}


def steps() -> list[Block]:
    """The commands that every reader types."""
    return [block for block in blocks(PAGE) if block.language == "bash" and TYPED in (block.not_run or "")]


def walk_through(server: str, directory: Path) -> None:
    """Walk the page in an empty directory. ``server`` is the URL of a PostgreSQL server, for its superuser."""
    with psycopg.connect(server, autocommit=True) as connection:
        for statement in MADE:
            connection.execute(statement.encode())
        try:
            _walk_through(server, directory)
        finally:
            for statement in MADE:
                connection.execute(statement.encode())


def _walk_through(server: str, directory: Path) -> None:
    psql = f"{sys.executable} {ROOT / 'tests' / 'support' / 'psql.py'} {server}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    replaced = {"localhost/chat": f"{urlsplit(server).netloc.rpartition('@')[2]}/chat", "8000": port}
    walk = Walk(directory, psql, replaced)
    roles, init, migrate, grant, serve, say, intrude, kill, again, look = steps()

    walk.type(roles)
    walk.type(init)
    walk.save_files()
    assert walk.type(migrate).count("(head)") == 2
    walk.type(grant)
    with walk.serving(serve) as service:
        answer = 'So far you have said, in this order: "I live in Porto."'
        assert answer in walk.type(say)
        assert walk.type(intrude) == '{"detail":"this chat belongs to somebody else"}'
        killed = re.match(r"\(worker (\d+)\) So far you have said", walk.type(kill))
        assert killed is not None
        other = re.fullmatch(rf'\(worker (\d+)\) {answer}, then "I like trains.". \n', walk.type(again))
        assert other is not None
        assert other[1] != killed[1]
        looked = walk.type(look)
        assert "trip/1" in looked
        assert "trip/2" not in looked
    assert any(f"[{killed[1]}] died" in line for line in service)
    assert not [line for line in service if "Traceback" in line or "Warning" in line]

    with psycopg.connect(re.sub(r"/[^/?]*(?=$|\?)", "/chat", server)) as owner:
        asked = owner.execute("SELECT has_schema_privilege('chat_service', 'public', 'CREATE')")
        assert asked.fetchone() == (False,)
        owner.execute("SET ROLE chat_service")
        try:
            owner.execute("ALTER TABLE firefly_memory.memory_turns ADD COLUMN mood TEXT")
        except psycopg.errors.InsufficientPrivilege:
            return
        raise AssertionError("the service may change a table")


class Walk:
    """One walk, in ``directory``. ``replaced`` says what is written on the page, and what stands for it here."""

    def __init__(self, directory: Path, psql: str, replaced: dict[str, str]) -> None:
        self.directory = directory
        self._replaced = {"sleep 2": UNTIL_THE_MIDDLE, **replaced}
        self._exported = ""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
        self._environment = {**kept, "PATH": path, "PSQL": psql, "PYTHONWARNINGS": WARNINGS}

    def save_files(self) -> None:
        for name, text in files().items():
            (self.directory / name).write_text(text)

    def type(self, step: Block) -> str:
        """What the commands print on both outputs."""
        script = f"set -e\n{self._exported}{self._here(step)}"
        done = subprocess.run(["bash", "-c", script], **self._options, text=True, check=False)  # type: ignore[call-overload]
        assert done.returncode == 0, f"{step}\n{done.stdout}"
        self._exported += "".join(re.findall(r"^export .*\n", self._here(step), re.MULTILINE))
        return str(done.stdout)

    @contextmanager
    def serving(self, step: Block) -> Iterator[list[str]]:
        """The service in the foreground; the lines that it prints, until the block ends."""
        command = self._here(step).removesuffix(" > service.log 2>&1 &\n")
        script = f"{self._exported}export {command.replace(' uvicorn', '; exec uvicorn')}"
        service = subprocess.Popen(["bash", "-c", script], **self._options, text=True)  # type: ignore[call-overload]
        printed: list[str] = []
        try:
            while sum("startup complete" in line for line in printed) < 2:
                printed.append(service.stdout.readline())
                assert printed[-1], "".join(printed)
            yield printed
        finally:
            service.terminate()
            printed += service.communicate(timeout=60)[0].splitlines()

    @property
    def _options(self) -> dict[str, object]:
        return {
            "cwd": self.directory,
            "env": self._environment,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }

    def _here(self, step: Block) -> str:
        text = step.text
        for written, real in self._replaced.items():
            text = text.replace(written, real)
        return text
