"""Stores that commands are told of by options, and what commands say of them."""

from __future__ import annotations

from typing import Any

import pytest

from firefly_memory import connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit

Options = list[str]


def opened(options: Options) -> Any:
    names = {"--schema": "schema_name", "--database": "database"}
    given = dict(zip(options[2::2], options[3::2], strict=True))
    options_of_store: Any = {names[name]: value for name, value in given.items()}
    return connect(options[1], **options_of_store)


def ran(
    capsys: pytest.CaptureFixture[str], arguments: list[str], options: Options, code: int = Exit.DONE
) -> tuple[list[str], str]:
    """The lines of its output, and what it says beside it."""
    assert main([*arguments, *options]) == code
    said = capsys.readouterr()
    return said.out.splitlines(), said.err
