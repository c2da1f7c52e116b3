"""Processes of their own that have imported everything when they start, so that a test of eight need not wait for eight imports."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import chdir
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORTED = "tests.support.imported_by_workers"
_MOST_SECONDS = 120

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["pytest", IMPORTED])


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


def ended(target: Callable[..., None], *arguments: object) -> int:
    """The exit code of a process of its own that calls ``target``."""
    process = _started(target, *arguments)
    process.join(_MOST_SECONDS)
    assert process.exitcode is not None, "it does not end"
    return process.exitcode


def _started(target: Callable[..., None], *arguments: object) -> ForkServerProcess:
    process = _forking.Process(target=target, args=arguments, daemon=True)
    with chdir(ROOT):
        process.start()
    return process


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
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    warnings.simplefilter("error")
    try:
        importlib.import_module(module).main()
    finally:
        sys.stdout.flush()
