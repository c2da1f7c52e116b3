"""The command ``firefly-memory``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from firefly_memory.cli import archive
from firefly_memory.errors import ConfigurationError, FireflyMemoryError, InvalidEntryError, MissingDependencyError

EXIT_FAILED = 1
EXIT_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it did its work, 1 if it could not, 2 if it was called wrongly. Errors are one line."""
    parser = argparse.ArgumentParser(prog="firefly-memory", description="Look after the memories of agents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    archive.add_to(commands)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except FireflyMemoryError as error:
        print(f"firefly-memory: {error}", file=sys.stderr)
        wrongly = isinstance(error, (ConfigurationError, InvalidEntryError, MissingDependencyError))
        return EXIT_USAGE if wrongly else EXIT_FAILED
    except BrokenPipeError:
        sys.stderr.close()  # or Python complains once more when it ends
        return EXIT_FAILED
    except OSError as error:
        print(f"firefly-memory: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("firefly-memory: interrupted", file=sys.stderr)
        return 130  # as shells report it
    return 0
