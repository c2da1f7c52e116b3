"""What is stored after eight processes add to one conversation at once, and after a process is killed in a run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from benchmarks.comparison.contender import MESSAGES_OF_A_TURN, Contender, Place
from benchmarks.comparison.contenders import CONTENDERS
from benchmarks.comparison.places import Places
from benchmarks.one_turn import ANSWER

Work = Callable[[Contender], Coroutine[Any, Any, int]]

_FORKS = get_context("forkserver")
_PROCESSES = 8
_TURNS = 100
_COMPLETE = 3
"""Turns before the one in which the process is killed."""
_ONE = "one"
_BACKGROUND_WRITES = 0.5
"""Seconds before the kill: time for what a library writes while it waits for its model."""


async def concurrent(places: Places) -> list[dict[str, Any]]:
    rows = []
    for name, make in CONTENDERS.items():
        if make.backend == "memory":
            continue
        contender = make(places.new(make, "add"))
        await contender.open()
        await contender.fill(_ONE, 1)
        workers = [_started(_add, name, contender.place) for _ in range(_PROCESSES)]
        refused = [answers.recv() for _, answers in workers]
        stored = (await contender.stored(_ONE)).count("answer") - 1
        await contender.close()
        added = _PROCESSES * _TURNS
        rows.append({"contender": name, "turns": added, "errors": sum(refused), "lost": added - sum(refused) - stored})
    return rows


async def killed(places: Places) -> list[dict[str, Any]]:
    rows = []
    for name, make in CONTENDERS.items():
        if make.backend == "memory":
            continue
        contender = make(places.new(make, "die"))
        process, _ = _started(_die, name, contender.place)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        await contender.open()
        stored = await contender.stored(_ONE)
        complete = _COMPLETE * MESSAGES_OF_A_TURN
        resumed = await contender.resume(_ONE) and len(await contender.stored(_ONE)) == complete + MESSAGES_OF_A_TURN
        await contender.close()
        rows.append(
            {"contender": name, "complete_turns": stored[:complete].count("answer"), "of_the_run": stored[complete:]}
            | {"resumes": resumed}
        )
    return rows


def _started(work: Work, name: str, place: Place) -> tuple[BaseProcess, Connection]:
    """A process with a connection of its own, which has loaded the contenders already; and what it answers."""
    _FORKS.set_forkserver_preload(["benchmarks.comparison.contenders"])
    answers, answer = Pipe(duplex=False)
    process = _FORKS.Process(target=_in_process, args=(work, name, place, answer))
    process.start()
    return process, answers


def _in_process(work: Work, name: str, place: Place, answer: Connection) -> None:
    answer.send(asyncio.run(work(CONTENDERS[name](place))))


async def _add(contender: Contender) -> int:
    refused = 0
    await contender.open()
    for _ in range(_TURNS):
        try:
            await contender.turn(_ONE)
        except Exception as error:  # noqa: BLE001
            print(f"{contender.name}: {error}", file=sys.stderr)
            refused += 1
    await contender.close()
    return refused


async def _die(contender: Contender) -> int:
    await contender.open()
    for _ in range(_COMPLETE):
        await contender.run(_ONE, _at_once)
    await contender.run(_ONE, _never)
    raise AssertionError("the process was to be killed")


async def _at_once() -> str:
    return ANSWER


async def _never() -> str:
    await asyncio.sleep(_BACKGROUND_WRITES)
    os.kill(os.getpid(), signal.SIGKILL)
    return ANSWER
