"""Processes that start out knowing no vocabulary, and servers that send them none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.support.documentation import ROOT

PREPARATION = """
import os, sys, threading, time
from firefly_memory.tokens import formula, tiktoken_loader
from firefly_memory.tokens import TokenEstimator

tiktoken_loader.LOAD_TIMEOUT = {load_timeout}
text = "Nobody answers, and yet there has to be a number."

def kind_of(number):
    return "estimate" if number == formula.estimated(text, 1.33, formula.rates_for(None, None)) else "count"
"""

# What the text of the preparation has in o200k_base is not what the formula says of it, so that they can be told apart.


@dataclass
class Ended:
    printed: list[str]
    warnings: list[str]


class Process:
    """Runs code in a process whose TIKTOKEN_CACHE_DIR is ``directory``, unless the environment is given another."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self, code: str, *options: str, load_timeout: float = 60, **environment: str | None) -> Ended:
        inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        given = {"TIKTOKEN_CACHE_DIR": str(self._directory), "PYTHONPATH": str(ROOT / "src"), **environment}
        ended = subprocess.run(
            [
                sys.executable,
                "-W",
                "always",
                *options,
                "-c",
                PREPARATION.format(load_timeout=load_timeout) + dedent(code),
            ],
            env={name: value for name, value in {**inherited, **given}.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return Ended(ended.stdout.splitlines(), [line for line in ended.stderr.splitlines() if "Warning:" in line])


def assert_short(warning: str) -> None:
    message = warning.partition("Warning: ")[2]
    assert 0 < len(message) < 140


def proxy(server: socket.socket) -> dict[str, Any]:
    url = f"http://user:secret@127.0.0.1:{server.getsockname()[1]}"
    return {"HTTPS_PROXY": url, "https_proxy": url}


def connections(server: socket.socket) -> int:
    server.settimeout(0)
    number = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return number
        number += 1
