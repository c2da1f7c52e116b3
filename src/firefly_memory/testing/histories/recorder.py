"""Histories in files: a line when an operation begins and one when it ends, so that a killed process leaves both."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from firefly_memory.errors import FireflyMemoryError, OutcomeUnknownError, StaleConversationError
from firefly_memory.testing.histories.operation import Kind, Operation, Outcome

SUFFIX = ".jsonl"


class Recorder:
    """Writes the operations of one worker to ``directory``; ``on_begin`` is called when one begins."""

    def __init__(self, directory: Path, worker: str, on_begin: Callable[[], object] = lambda: None) -> None:
        self._worker = worker
        self._on_begin = on_begin
        self._begun = 0
        self._file = (directory / f"{worker}{SUFFIX}").open("w", encoding="utf-8", buffering=1)

    def close(self) -> None:
        self._file.close()

    async def record(
        self, kind: Kind, target: str, call: Callable[[], Awaitable[Any]], arguments: dict[str, Any]
    ) -> Operation:
        """Make the call and write down when, and what came of it. Its errors are outcomes, and are not raised."""
        self._on_begin()
        self._begun += 1
        begun: dict[str, Any] = {"worker": self._worker, "kind": kind, "target": target, "arguments": arguments}
        begun["begin"] = time.monotonic_ns()
        self._write({"number": self._begun, **begun})
        try:
            ended: dict[str, Any] = {"result": await call(), "outcome": Outcome.DONE}
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is an outcome
            ended = _ended_with(error)
        ended["end"] = time.monotonic_ns()
        self._write({"number": self._begun, **ended})
        return _operation(begun | ended)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(f"{json.dumps(line)}\n")


def _ended_with(error: Exception) -> dict[str, Any]:
    # Only errors of the library say whether something was written.
    is_clear = isinstance(error, FireflyMemoryError) and not isinstance(error, OutcomeUnknownError)
    ended: dict[str, Any] = {"outcome": Outcome.FAILED if is_clear else Outcome.UNKNOWN}
    ended["error"] = f"{type(error).__name__}: {error}"
    if isinstance(error, StaleConversationError):
        ended["turns_seen"] = error.turns
    return ended


def _operation(fields: dict[str, Any]) -> Operation:
    kind, outcome = Kind(fields["kind"]), Outcome(fields.get("outcome", Outcome.UNKNOWN))
    return Operation(**{**fields, "kind": kind, "outcome": outcome})


def read_history(directory: Path) -> list[Operation]:
    """All operations that were recorded in ``directory``, in the order in which they began."""
    found = [each for path in sorted(directory.glob(f"*{SUFFIX}")) for each in _read(path)]
    return sorted(found, key=lambda each: each.begin)


def _read(path: Path) -> list[Operation]:
    fields: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):  # a process that is killed may leave half a line
            read = json.loads(line)
            fields.setdefault(read.pop("number"), {}).update(read)
    return [_operation(each) for each in fields.values()]
