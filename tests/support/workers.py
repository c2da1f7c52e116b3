"""Processes of their own that have imported everything when they start, so that a test of eight need not wait for eight imports."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
IMPORTED = "tests.support.imported_by_workers"
_MOST_SECONDS = 120

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["pytest", IMPORTED])
_one_at_a_time = threading.Lock()


class Worker:
    """Runs ``main()`` of a module with ``arguments``, and is used like a ``subprocess.Popen`` with pipes of text.

    Its parent is a server without threads or connections, which has only imported modules: what a worker opens is its own.
    """

    def __init__(self, module: str, *arguments: object) -> None:
        theirs_in, ours_in = multiprocessing.Pipe(duplex=False)
        ours_out, theirs_out = multiprocessing.Pipe(duplex=False)
        given = (module, [str(argument) for argument in arguments], dict(os.environ), theirs_in, theirs_out)
        self._process = _started(_run, *given)
        for end in (theirs_in, theirs_out):
            end.close()
        self.stdin = os.fdopen(_taken_from(ours_in), "w")
        self.stdout = os.fdopen(_taken_from(ours_out))

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int | None:
        self._process.join(_MOST_SECONDS)
        return self.returncode

    def communicate(self, said: str = "") -> str:
        """Let it read ``said`` and no more, and return what it prints until its end."""
        with self.stdin, self.stdout:
            self.stdin.write(said)
            self.stdin.close()
            printed = self.stdout.read()
        self.wait()
        return printed


Main = Callable[[list[str]], object]


def run_command(
    main: Main, arguments: Sequence[str], cwd: Path, environment: dict[str, str], *, warnings: str = "error"
) -> subprocess.CompletedProcess[str]:
    """Like ``subprocess.run`` with the command whose function is ``main``; ``warnings`` are what ``-W`` says."""
    with TemporaryDirectory() as directory:
        out, err = f"{directory}/out", f"{directory}/err"
        process = _started(_command, main, list(arguments), str(cwd), environment, warnings, out, err, may_fork=True)
        process.join(_MOST_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise AssertionError(f"it does not end: {arguments}")
        return subprocess.CompletedProcess(arguments, process.exitcode, Path(out).read_text(), Path(err).read_text())


def _command(
    main: Main, arguments: list[str], cwd: str, environment: dict[str, str], action: Any, out: str, err: str
) -> None:
    for descriptor, path in ((1, out), (2, err)):
        with Path(path).open("w") as file:
            os.dup2(file.fileno(), descriptor)
    os.chdir(cwd)
    sys.path[:0] = [cwd, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ.clear()
    os.environ.update(environment)
    warnings.resetwarnings()
    warnings.simplefilter(action)
    sys.exit(main(arguments))  # type: ignore[arg-type]


def _started(target: Callable[..., None], *arguments: object, may_fork: bool = False) -> ForkServerProcess:
    process = _forking.Process(target=target, args=arguments, daemon=not may_fork)
    start_server()
    process.start()
    return process


def one_process() -> ProcessPoolExecutor:
    """A process of its own for functions of other modules, which has imported everything."""
    start_server()
    return ProcessPoolExecutor(1, mp_context=_forking)


def start_server() -> None:
    """Start the server that forks processes, which has imported everything, for ``forkserver`` as a start method."""
    with _one_at_a_time:
        _run_server()


@cache
def _run_server() -> None:
    with chdir(ROOT):  # where it finds the modules
        ensure_running()


def _taken_from(connection: Connection) -> int:
    descriptor = os.dup(connection.fileno())
    connection.close()
    return descriptor


def _run(module: str, arguments: list[str], environment: dict[str, str], given: Connection, shown: Connection) -> None:
    os.dup2(given.fileno(), 0)
    os.dup2(shown.fileno(), 1)
    given.close()
    shown.close()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    warnings.simplefilter("error")
    try:
        importlib.import_module(module).main()
    finally:
        sys.stdout.flush()
