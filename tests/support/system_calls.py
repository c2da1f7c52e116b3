"""What a Python process asks of the operating system, seen by strace, and what happens where the system refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_UNPACKED = ROOT / ".cache" / "strace"  # see scripts/strace
_LIBRARIES = sorted({str(library.parent) for library in _UNPACKED.rglob("*.so*")})

WRITES = frozenset({"write", "pwrite64", "ftruncate"})
SYNCS = frozenset({"fsync", "fdatasync"})
RENAMES = frozenset({"rename", "renameat", "renameat2"})
_LINE = re.compile(r"\d+ +(?P<name>\w+)\((?P<arguments>.*)\) += ")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"\d+ +<\.\.\. \w+ resumed>")
_OPEN_FILE = re.compile(r"(?P<number>\d+)<(?P<path>[^>]*)>")


@dataclass(frozen=True)
class SystemCall:
    """One call: ``ordinal`` counts the calls of this name in the process, from 1. A rename has the path of its target."""

    name: str
    path: str
    ordinal: int
    refused: bool
    text: str


def calls_of(module: str, *arguments: str, log: Path, refuse: SystemCall | None = None) -> list[SystemCall]:
    """Run ``python -m module`` and return its writes, syncs and renames. ``refuse`` meets a full disk."""
    log.unlink(missing_ok=True)
    names = sorted(WRITES | SYNCS | RENAMES)
    command = [_strace(), "--seccomp-bpf", "-f", "-y", "-s", "40", "-o", str(log), "-e", f"trace={','.join(names)}"]
    if refuse is not None:
        command += ["-e", f"inject={refuse.name}:error=ENOSPC:when={refuse.ordinal}"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    if _LIBRARIES:
        environment["LD_LIBRARY_PATH"] = ":".join(_LIBRARIES)
    finished = subprocess.run(
        [*command, sys.executable, "-m", module, *arguments],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return list(_parsed(log.read_text().splitlines()))


def _whole(lines: list[str]) -> Iterator[str]:
    """Each call in one line, where it ended: strace splits a call during which another thread did something."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.partition(" ")[0]
        if line.endswith(_UNFINISHED):
            begun[thread] = line.removesuffix(_UNFINISHED)
        elif (resumed := _RESUMED.match(line)) is not None:
            yield begun.pop(thread) + line[resumed.end() :]
        else:
            yield line


def _parsed(lines: list[str]) -> Iterator[SystemCall]:
    counts: Counter[str] = Counter()
    for line in _whole(lines):
        if (found := _LINE.match(line)) is not None:
            name, arguments = found["name"], found["arguments"]
            counts[name] += 1
            yield SystemCall(name, _path(name, arguments), counts[name], line.endswith("(INJECTED)"), arguments)


def _path(name: str, arguments: str) -> str:
    if name in RENAMES:
        return arguments.rpartition('"')[0].rpartition('"')[2]
    open_file = _OPEN_FILE.match(arguments)
    assert open_file is not None, f"{name}({arguments})"
    return open_file["path"]


def _strace() -> str:
    found = shutil.which("strace", path=f"{_UNPACKED}/usr/bin:{os.environ['PATH']}")
    if found is None:
        raise RuntimeError("there is no strace here; `make setup` gets it")
    return found
