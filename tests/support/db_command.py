"""``firefly-memory db`` in this process, and what it said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firefly_memory.cli import main
from firefly_memory.schema import REVISIONS

LATER = REVISIONS[1:]
SECRET = "correct-horse"
"""A password, which no command shows."""


class Db:
    """The command, and what it said the last time."""

    def __init__(self, capture: pytest.CaptureFixture[str], *given: str) -> None:
        self._capture = capture
        self._given = given
        self.out = self.err = ""

    def __call__(self, action: str, *arguments: str) -> int:
        try:
            code = main(["db", action, *arguments, *self._given])
        except SystemExit as ended:  # a usage error, or help
            code = int(ended.code or 0)
        self.out, self.err = self._capture.readouterr()
        assert "Traceback" not in self.err
        assert SECRET not in self.out + self.err
        return code

    def json(self, action: str, *arguments: str) -> dict[str, Any]:
        self(action, *arguments, "--json")
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found
