"""``firefly-memory`` and ``alembic`` for scripts, in processes forked from this one, which has imported everything."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tests.support.workers import Main, become

_forking = multiprocessing.get_context("fork")

_CLIENT = """#!{python} -IS
import os, socket, sys

words = [os.getcwd(), sys.argv[0], str(len(sys.argv) - 1), *sys.argv[1:], *map("=".join, os.environ.items())]
said = os.fsencode("\\0".join(words))
with socket.socket(socket.AF_UNIX) as server:
    server.connect("\\0{name}")
    socket.send_fds(server, [len(said).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(said)
    sys.exit(int(server.recv(8)))
"""


@contextmanager
def forked_commands(directory: Path) -> Iterator[Path]:
    """The directory of the commands, to be put before the others of ``PATH``."""
    name = f"firefly-commands-{uuid4().hex}"
    for command in _mains():
        (directory / command).write_text(_CLIENT.format(python=sys.executable, name=name))
        (directory / command).chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")  # no file, whose path might be too long
        listener.listen()
        server = _forking.Process(target=_serve, args=(listener,))
        server.start()
    try:
        yield directory
    finally:
        server.kill()
        server.join()


def _mains() -> dict[str, Main]:
    import alembic.config

    import firefly_memory.cli

    return {"firefly-memory": firefly_memory.cli.main, "alembic": alembic.config.main}


def _serve(listener: socket.socket) -> None:
    _mains()  # imported once for all
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            try:
                _answer(connection)
            finally:
                os._exit(0)
        connection.close()


def _answer(connection: socket.socket) -> None:
    """Run one command on the files of its caller, and answer with the code that it ends with."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as said:
        words = os.fsdecode(said.read(int.from_bytes(length, "big"))).split("\0")
    cwd, program, count = words[:3]
    arguments, variables = words[3 : 3 + int(count)], words[3 + int(count) :]
    environment = dict(variable.split("=", 1) for variable in variables)
    main = _mains()[Path(program).name]
    process = _forking.Process(target=become, args=(main, arguments, files, cwd, environment, "default"))
    process.start()
    for file in files:
        os.close(file)
    process.join()
    connection.sendall(str(process.exitcode).encode())
