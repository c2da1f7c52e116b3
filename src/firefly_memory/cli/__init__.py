"""The command ``firefly-memory``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version

from firefly_memory.cli import archive, copy, database, doctor
from firefly_memory.cli.exits import Exit, exit_of
from firefly_memory.cli.facets import register_facets_of
from firefly_memory.cli.target import advised
from firefly_memory.errors import FireflyMemoryError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what it ends with is in :class:`Exit`. Errors are one line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        register_facets_of(arguments)
    except FireflyMemoryError as error:
        return _failed(argparse.Namespace(json="--json" in arguments), str(error), exit_of(error))
    parser = argparse.ArgumentParser(prog="firefly-memory", description="Look after the memories of agents.")
    parser.add_argument("--version", action="version", version=f"firefly-memory {version('firefly-memory')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    archive.add_to(commands)
    copy.add_to(commands)
    database.add_to(commands)
    doctor.add_to(commands)
    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.run(parsed) or Exit.DONE)
    except FireflyMemoryError as error:
        return _failed(parsed, advised(str(error), parsed), exit_of(error))
    except BrokenPipeError:
        sys.stderr.close()  # or Python complains once more when it ends
        return Exit.FAILED
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _failed(parsed, f"{file}{error.strerror or error}", Exit.FAILED)
    except KeyboardInterrupt:
        print("firefly-memory: interrupted", file=sys.stderr)
        return 130  # as shells report it


def _failed(parsed: argparse.Namespace, message: str, code: Exit) -> int:
    if getattr(parsed, "json", False):
        print(json.dumps({"error": message, "exit_code": int(code)}))
    print(f"firefly-memory: {message}", file=sys.stderr)
    return code
