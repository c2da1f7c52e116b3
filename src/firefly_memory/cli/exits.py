"""What a command ends with, for pipelines to branch on."""

from __future__ import annotations

from enum import IntEnum

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


INTERRUPTED = 130
"""As shells report it."""

WORDS = {
    Exit.DONE: "done",
    Exit.FAILED: "it could not be done",
    Exit.USAGE: "the command was called wrongly",
    Exit.BEHIND: "the schema is missing or behind, or there is no SQLite file: run `firefly-memory db upgrade`",
    Exit.AHEAD: "the schema is ahead, and this version cannot use it: a newer firefly-memory migrated it",
    Exit.DRIFT: "something is not as it should be",
    Exit.UNREACHABLE: "the database cannot be reached",
    Exit.BUSY: "somebody else holds a lock for too long; nothing was changed, try again",
}
"""What each means in the help of a command that has no words of its own for it."""


def exit_of(error: BaseException) -> Exit:
    """The code for an error."""
    match error:
        case ConfigurationError() | InvalidEntryError() | MissingDependencyError():
            return Exit.USAGE
        case SchemaMismatchError():
            return Exit.BEHIND if error.found is None or _is_known(error.found) else Exit.AHEAD
        case DatabaseConnectionError():
            return Exit.UNREACHABLE
        case StoreTimeoutError():
            return Exit.BUSY
        case _:
            return Exit.FAILED


def _is_known(revision: str) -> bool:
    from firefly_memory.databases.sql.schema import revisions

    return revision in revisions.revisions()
