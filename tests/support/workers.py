"""Processes of their own that have imported everything when they start, so that a test of eight need not wait for eight imports."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from functools import cache
from multiprocessing import reduction
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from tempfile import TemporaryFile
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


class Inherited:
    """An open file of this process that a process which it starts has as well."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _there, (reduction.DupFd(self._descriptor),)


def _there(passed_on: Any) -> int:
    descriptor: int = passed_on.detach()
    return descriptor


def start_command(
    main: Main,
    arguments: Sequence[str],
    files: Sequence[int],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    warnings: str = "error",
) -> ForkServerProcess:
    """Like ``subprocess.Popen`` with the command whose function is ``main``. ``files`` are its standard input, output and
    output of errors; ``warnings`` are what ``-W`` says."""
    given = (str(cwd or Path.cwd()), dict(os.environ if environment is None else environment), warnings)
    return _started(become, main, list(arguments), [Inherited(file) for file in files], *given, may_fork=True)


def end_of(process: ForkServerProcess) -> int:
    """The code it ends with."""
    process.join(_MOST_SECONDS)
    if process.exitcode is None:
        process.kill()
        raise AssertionError("it does not end")
    return process.exitcode


def run_command(
    main: Main, arguments: Sequence[str], cwd: Path, environment: dict[str, str], *, warnings: str = "error"
) -> subprocess.CompletedProcess[str]:
    """Like ``subprocess.run`` with the command whose function is ``main``."""
    with TemporaryFile() as out, TemporaryFile() as err, Path(os.devnull).open() as nothing:
        files = [file.fileno() for file in (nothing, out, err)]
        code = end_of(start_command(main, arguments, files, cwd=cwd, environment=environment, warnings=warnings))
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
        return subprocess.CompletedProcess(arguments, code, *printed)


def become(
    main: Main, arguments: list[str], files: list[int], cwd: str, environment: dict[str, str], action: Any
) -> None:
    """Go on as the command whose function is ``main``."""
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    # Of a terminal, they are written to line by line.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the process lives
    sys.stdout = open(1, "w", errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors=sys.stderr.errors, closefd=False)  # noqa: SIM115
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
