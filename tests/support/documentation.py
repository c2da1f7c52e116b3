"""The documentation as programs: which blocks a page has, what the page says to install, and how a page is run.

:func:`main`, in a process and a directory of its own, executes the blocks of one page in their order:

* A ``python`` block is a program: a file that runs as ``__main__``, in a process of its own. What a line prints is
  compared with the comment behind it: ``print(1 + 1)  # 2``. The process is forked from this one, which has imported
  everything, or is another interpreter, where the settings name one. Each program has an empty directory, unless the
  page says that its blocks are to be run "in their order" or to be saved: then they share the directory of the page.
* A ``python`` block whose first line is ``# name.py`` becomes that file, for later blocks to import or run.
* ``bash`` blocks run in a directory with the ``alembic.ini`` and ``migrations`` of a checkout. What they export stays.
  Their commands ``firefly-memory`` and ``alembic`` are forked as well.
* ``sql`` blocks run on the page's PostgreSQL database.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit

from firefly_memory import TokenEstimator
from firefly_memory.tokens import tiktoken_loader
from tests.support.forked_commands import forked_commands

ROOT = Path(__file__).resolve().parents[2]

RUN = {"python", "bash", "sql"}
SHOWN = {"ini", "javascript", "json", "text", "toml", "yaml"}

_FENCE = re.compile(r"(?P<indent>\s*)```(?P<language>.*)")
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->")
_FILE_NAME = re.compile(r"# (?P<name>\w+\.py)\n")
_PRINTED = re.compile(r"^\s*print\(.*\)  # (?P<text>.+)$", re.MULTILINE)
_SHARES_FILES = re.compile(r"\bin\s+their\s+order\b|\bSave (?:a|the first|each) (?:block|file)\b")
_INSTALLED = re.compile(r"\bpip install (?P<requirements>[^`#\n]+)")

POSTGRESQL = "localhost/firefly"
MONGODB = "mongodb://localhost:27017/"

_forking = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Block:
    """The inside of a fence: ``line`` is where the fence is."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.not_run is None

    def __str__(self) -> str:
        where = f"{os.path.relpath(self.page, ROOT)}:{self.line}"
        return where if self.not_run is None else f"{where} ({self.not_run})"


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if fence["indent"]:
            raise ValueError(f"{page}:{number + 1}: a fence that is not at the start of its line would not be run")
        if start is None:
            start = number
            continue
        above = _NOT_RUN.fullmatch(lines[start - 1]) if start else None
        text = "\n".join(lines[start + 1 : number]) + "\n"
        yield Block(page, start + 1, lines[start][3:], text, None if above is None else above["reason"])
        start = None
    if start is not None:
        raise ValueError(f"{page}:{start + 1}: this fence is never closed")


def required(page: Path) -> list[str]:
    """The requirements of every ``pip install`` that a page names, such as ``firefly-memory[postgres]``."""
    commands = [found["requirements"] for found in _INSTALLED.finditer(page.read_text())]
    return sorted({requirement for command in commands for requirement in shlex.split(command)})


def prose(page: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@contextmanager
def settings_of(page: Path, postgresql: Callable[[], str], mongodb: Callable[[], str]) -> Iterator[dict[str, Any]]:
    """What :func:`main` needs for a page: a PostgreSQL database and a MongoDB server, if the page names them."""
    text = "".join(block.text for block in blocks(page) if block.runs)
    replacements = [(MONGODB, mongodb())] if MONGODB in text else []
    with _database_for(page, text, postgresql) as url:
        if url is not None:
            real = url.partition("://")[2]
            replacements += [(f"user:pass@{POSTGRESQL}", real), (POSTGRESQL, real.rpartition("@")[2])]
        yield {"replacements": replacements, "postgresql_url": url}


@contextmanager
def _database_for(page: Path, text: str, postgresql: Callable[[], str]) -> Iterator[str | None]:
    """The URL of a new PostgreSQL database for a page that needs one, without the roles that the page creates."""
    import psycopg

    if POSTGRESQL not in text:
        yield None
        return
    server = postgresql()
    name = f"docs_{page.stem.lower()}".replace("-", "_")
    drop = [f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"]
    drop += [f"DROP ROLE IF EXISTS {role}" for role in re.findall(r"CREATE ROLE (\w+)", text)]

    def execute(statements: list[str]) -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    execute([*drop, f"CREATE DATABASE {name}"])
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        execute(drop)


class PageRun:
    """One page, being run in the current directory."""

    def __init__(self, replacements: list[tuple[str, str]], postgresql_url: str | None, python: str | None) -> None:
        self._replacements = replacements
        self._postgresql_url = postgresql_url
        self._python = python

    def run(self, page: Path) -> None:
        for block in blocks(page):
            if block.runs:
                print(f"running {block}", flush=True)
                getattr(self, f"_run_{block.language}")(block, self._mapped(block.text))

    def _mapped(self, text: str) -> str:
        for placeholder, real in self._replacements:
            text = text.replace(placeholder, real)
        return text

    def _run_python(self, block: Block, text: str) -> None:
        if named := _FILE_NAME.match(text):
            Path(named["name"]).write_text(text)
            return
        program = self._directory_for(block) / f"{block.page.stem}_{block.line}.py"
        program.write_text("\n" * block.line + text)  # so tracebacks have the numbers of the page's lines
        output = Path(f"{program}.out")
        with chdir(program.parent):
            code = _forked(program, output) if self._python is None else _started(self._python, program, output)
        printed = output.read_text().splitlines()
        if code:
            raise AssertionError(f"{block} ended with {code}, after it printed {printed}")
        promised = [found["text"] for found in _PRINTED.finditer(text)]
        if promised and printed != promised:
            raise AssertionError(f"{block} promises to print {promised}, but printed {printed}")

    def _directory_for(self, block: Block) -> Path:
        if _SHARES_FILES.search(prose(block.page)):
            return Path.cwd()
        directory = Path(f"line_{block.line}").absolute()
        directory.mkdir()
        return directory

    def _run_bash(self, block: Block, text: str) -> None:
        script = f"{text}\nenv -0 > environment.after"
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True)
        variables = Path("environment.after").read_text().split("\0")
        for variable in variables:
            name, separator, value = variable.partition("=")
            if separator:
                os.environ[name] = value

    def _run_sql(self, block: Block, text: str) -> None:
        import psycopg

        assert self._postgresql_url is not None
        with psycopg.connect(self._postgresql_url, autocommit=True) as connection:
            connection.execute(text.encode())


def _forked(program: Path, output: Path) -> int | None:
    process = _forking.Process(target=_run_as_main, args=(program, output))
    process.start()
    process.join()
    return process.exitcode


def _run_as_main(program: Path, output: Path) -> None:
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
    ignored: list[Any] = []
    sys.unraisablehook = ignored.append
    sys.argv = [str(program)]
    runpy.run_path(str(program), run_name="__main__")
    gc.collect()  # whatever was not closed says so now
    if ignored:
        raise AssertionError(f"{program} leaves something behind: {[each.exc_value for each in ignored]}")


def _started(python: str, program: Path, output: Path) -> int:
    """What is left open makes Python write to the standard error, because warnings are errors."""
    with output.open("w") as file:
        ended = subprocess.run(
            [python, "-W", "error", str(program)], stdout=file, stderr=subprocess.PIPE, text=True, check=False
        )
    print(ended.stderr, file=sys.stderr, end="")
    return ended.returncode or "Exception ignored" in ended.stderr


def main(arguments: list[str]) -> int:
    page, settings = Path(arguments[0]), json.loads(arguments[1])
    python = settings.get("python")
    ours = str(Path(sys.executable).parent)
    others = [directory for directory in os.environ["PATH"].split(os.pathsep) if directory != ours]
    os.environ["PATH"] = os.pathsep.join([str(Path(python).parent) if python else ours, *others])
    for name in ("alembic.ini", "migrations"):
        Path(name).symlink_to(ROOT / name)
    tiktoken_loader.LOAD_TIMEOUT = 60.0
    TokenEstimator().prepare(60.0)  # so that coroutines count, too
    gc.freeze()  # so the collector of a forked program looks at the objects of that program only
    with forked_commands(Path(mkdtemp(dir="."))) if python is None else nullcontext() as commands:
        if commands is not None:
            os.environ["PATH"] = os.pathsep.join([str(commands.absolute()), os.environ["PATH"]])
        PageRun(settings["replacements"], settings["postgresql_url"], python).run(page)
    return 0
