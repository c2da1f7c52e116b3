"""What a command ends with, for pipelines to branch on."""

from __future__ import annotations

from enum import IntEnum

from firefly_memory.databases.sql.schema import revisions
from firefly_memory.errors import (
    ConfigurationError,
    DatabaseConnectionError,
    InvalidEntryError,
    MissingDependencyError,
    SchemaMismatchError,
    StoreTimeoutError,
)


class Exit(IntEnum):
    """Exit codes, the same for every command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BEHIND = 3
    AHEAD = 4
    DRIFT = 5
    UNREACHABLE = 6
    BUSY = 7


def exit_of(error: BaseException) -> Exit:
    """The code for an error."""
    match error:
        case ConfigurationError() | InvalidEntryError() | MissingDependencyError():
            return Exit.USAGE
        case SchemaMismatchError():
            return Exit.BEHIND if error.found is None or error.found in revisions.revisions() else Exit.AHEAD
        case DatabaseConnectionError():
            return Exit.UNREACHABLE
        case StoreTimeoutError():
            return Exit.BUSY
        case _:
            return Exit.FAILED
