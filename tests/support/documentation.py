"""The documentation as programs: which blocks a page has, and how a page is run.

:func:`main`, in a process and a directory of its own, executes the blocks of one page in their order:

* ``python`` blocks share one namespace and one event loop, in which their ``await`` at the top level runs. What a line
  prints is compared with the comment behind it: ``print(1 + 1)  # 2``.
* A ``python`` block whose first line is ``# name.py`` becomes that file, for later blocks to import or run.
* ``bash`` blocks run in a directory with the ``alembic.ini`` and ``migrations`` of a checkout. What they export stays.
* ``sql`` blocks run on the page's PostgreSQL database.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firefly_memory import TokenEstimator
from firefly_memory.tokens import tiktoken_loader

ROOT = Path(__file__).resolve().parents[2]

RUN = {"python", "bash", "sql"}
SHOWN = {"ini", "javascript", "json", "text", "toml", "yaml"}

_FENCE = re.compile(r"(?P<indent>\s*)```(?P<language>.*)")
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->")
_FILE_NAME = re.compile(r"# (?P<name>\w+\.py)\n")
_PRINTED = re.compile(r"^\s*print\(.*\)  # (?P<text>.+)$", re.MULTILINE)

Replacements = list[tuple[str, str]]


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
        where = f"{self.page.relative_to(ROOT)}:{self.line}"
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


def prose(page: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


class PageRun:
    """One page, being run in the current directory."""

    def __init__(self, replacements: Replacements, postgresql_url: str | None) -> None:
        self._replacements = replacements
        self._postgresql_url = postgresql_url
        self._loop = asyncio.Runner()
        self._namespace: dict[str, Any] = {"__name__": "__main__"}

    def run(self, page: Path) -> None:
        with self._loop:
            for block in blocks(page):
                if block.runs:
                    print(f"running {block}", flush=True)
                    getattr(self, f"_run_{block.language}")(block, self._mapped(block.text))
        self._namespace.clear()
        gc.collect()  # whatever was not closed says so now

    def _mapped(self, text: str) -> str:
        for placeholder, real in self._replacements:
            text = text.replace(placeholder, real)
        return text

    def _run_python(self, block: Block, text: str) -> None:
        if named := _FILE_NAME.match(text):
            Path(named["name"]).write_text(text)
            return
        # Empty lines in front make tracebacks point into the page.
        source = "\n" * block.line + text
        code = compile(source, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with redirect_stdout(io.StringIO()) as output:
            result = eval(code, self._namespace)
            if inspect.iscoroutine(result):
                self._loop.run(result)
        promised = [found["text"] for found in _PRINTED.finditer(text)]
        printed = output.getvalue().splitlines()
        if promised and printed != promised:
            raise AssertionError(f"{block} promises to print {promised}, but printed {printed}")

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


def main(arguments: list[str]) -> int:
    page, settings = Path(arguments[0]), json.loads(arguments[1])
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in ("alembic.ini", "migrations"):
        Path(name).symlink_to(ROOT / name)
    tiktoken_loader.LOAD_TIMEOUT = 60.0
    TokenEstimator().prepare(60.0)  # so that coroutines count, too
    ignored: list[Any] = []
    sys.unraisablehook = ignored.append
    PageRun(settings["replacements"], settings["postgresql_url"]).run(page)
    if ignored:
        raise AssertionError(f"{page} leaves something behind: {[each.exc_value for each in ignored]}")
    return 0
