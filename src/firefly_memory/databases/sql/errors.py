"""Driver errors, translated: one table per driver, one context manager."""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import exc as errors

from firefly_memory.databases.sql.schema import revisions
from firefly_memory.databases.sql.schema.metadata import POSTGRESQL_SCHEMA
from firefly_memory.errors import (
    ConfigurationError,
    CorruptDataError,
    DatabaseConnectionError,
    DatabaseStoreError,
    FireflyMemoryError,
    InvalidEntryError,
    SchemaMismatchError,
    StoreTimeoutError,
    outcome_unknown,
)

_ENDED = {"57P01", "57P05"}
"""Of connections that an administrator, or a time-out for those at rest, ends. Not 57P02: a crash comes at any time."""

UNDEFINED_TABLE = {"42P01", "3F000"}

_ELSEWHERE = 'prepared statements get lost; behind a pooler in transaction mode: pass pooler="transaction"'

_NO_SLOT = "53300"

_DATA_EXCEPTION = "22"
"""Its errors quote the value itself: ``invalid input syntax for type integer: "…"``."""

_QUOTING = frozenset({"detail", "context", "message", "internal_query"})
"""Attributes of asyncpg's errors, and of SQLAlchemy's copies of them."""

# SQLSTATE, or its first two characters: what it means, and whether the same call may succeed later.
_POSTGRESQL: dict[str, tuple[type[DatabaseStoreError], str, bool]] = {
    "08": (DatabaseConnectionError, "the connection to the server was lost", True),
    "57P": (DatabaseConnectionError, "the server is shutting down or starting up", True),
    "28": (DatabaseConnectionError, "the server refused the login; check user, password and encryption", False),
    "3D000": (DatabaseConnectionError, "the database does not exist", False),
    _NO_SLOT: (DatabaseConnectionError, "the server has no free connection slot; lower pool_size", True),
    "53": (DatabaseStoreError, "the server is out of disk space, memory or another resource", True),
    "57014": (StoreTimeoutError, "the statement was cancelled or took longer than the server allows", True),
    "55P03": (StoreTimeoutError, "another transaction holds the row", True),
    "40": (DatabaseStoreError, "the transaction collided with another one", True),
    "42501": (DatabaseStoreError, "the role lacks a privilege", False),
    "25006": (DatabaseStoreError, "the server is read-only, such as a standby", True),
    "26000": (DatabaseStoreError, _ELSEWHERE, False),
    "42P05": (DatabaseStoreError, _ELSEWHERE, False),
    "25P02": (DatabaseStoreError, "the surrounding transaction has already failed; roll it back", False),
}

_SQLITE: dict[int, tuple[type[DatabaseStoreError], str, bool]] = {
    sqlite3.SQLITE_BUSY: (StoreTimeoutError, "another process kept the file locked", True),
    sqlite3.SQLITE_LOCKED: (StoreTimeoutError, "another connection kept the file locked", True),
    sqlite3.SQLITE_FULL: (DatabaseStoreError, "there is no space left on the device", True),
    sqlite3.SQLITE_READONLY: (DatabaseConnectionError, "the file or its directory is read-only", False),
    sqlite3.SQLITE_CANTOPEN: (DatabaseConnectionError, "the file cannot be opened; check its directory", False),
    sqlite3.SQLITE_PERM: (DatabaseConnectionError, "permission denied", False),
    sqlite3.SQLITE_IOERR: (DatabaseStoreError, "the disk reports an error", True),
    sqlite3.SQLITE_TOOBIG: (DatabaseStoreError, "the value is larger than SQLite allows", False),
}
_SQLITE_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class DatabaseName(NamedTuple):
    """A database as errors speak of it, without any password, and the PostgreSQL schema of ours in it."""

    name: str
    schema_name: str | None = None

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database."""
        return None if self.schema_name is not None or self.name == ":memory:" else Path(self.name)

    def command(self, action: str) -> str:
        """The command for a shell."""
        named = None if self.schema_name == POSTGRESQL_SCHEMA else self.schema_name
        other = "" if named is None else f" --schema {shlex.quote(named)}"
        return f"firefly-memory db {action}{other}"

    def is_missing(self, operation: str) -> SchemaMismatchError:
        """There is no file, which whoever migrates makes."""
        return SchemaMismatchError(
            operation, None, revisions.head(), self.command("upgrade"), nothing=f"there is no file {self.file}"
        )

    def is_not_current(self, operation: str, found: str | None) -> SchemaMismatchError:
        otherwise = "initialize(migrate=True) as a role that may create tables"
        return SchemaMismatchError(operation, found, revisions.head(), self.command("upgrade"), otherwise)


@dataclass(slots=True)
class Doubt:
    """Whether an attempt may have written something and its answer was lost."""

    retryable: bool
    """Of the error that says so."""
    exists: bool = False

    def about(self, error: FireflyMemoryError) -> FireflyMemoryError:
        """``error``, or that the outcome is not known."""
        if not self.exists or not isinstance(error, DatabaseStoreError) or isinstance(error, SchemaMismatchError):
            return error
        return outcome_unknown(error, retryable=self.retryable)


@contextmanager
def translated(operation: str, db_name: DatabaseName, doubt: Doubt | None = None) -> Iterator[None]:
    """Turn whatever a driver or SQLAlchemy raises in the block into an error of ours, with the driver's as its cause.

    None of these quotes what is stored, or what was to be.
    """
    try:
        yield
    except FireflyMemoryError:
        raise
    except Exception as exc:
        cause = driver_error(exc)
        error = translate(cause, operation, db_name)
        if error is None:
            raise
        quote_nothing(exc)
        raise (error if doubt is None else doubt.about(error)) from cause


def driver_error(exc: Exception) -> Exception:
    """What the driver raised, without the layers that SQLAlchemy put around it."""
    return _layers(exc)[-1]


def _layers(exc: Exception) -> list[Exception]:
    layers = [exc]
    while isinstance(exc, (errors.DBAPIError, errors.EmulatedDBAPIException)):
        inner = exc.__cause__ if exc.orig is None else exc.orig
        if not isinstance(inner, Exception):
            break
        exc = inner
        layers.append(exc)
    return layers


def quote_nothing(exc: Exception) -> None:
    """Take out of a driver's error, and of SQLAlchemy's around it, what quotes rows and parameters."""
    *around, innermost = _layers(exc)
    said = getattr(innermost, "diag", None)  # psycopg's and psycopg2's
    primary, hint = getattr(said, "message_primary", None), getattr(said, "message_hint", None)
    if _quotes_a_value(innermost):
        innermost.args = (_without_the_value(innermost),)
    elif primary:
        innermost.args = (f"{primary}\nHINT:  {hint}" if hint else primary,)
    for each in (*around, innermost):
        if isinstance(each, errors.StatementError):
            each.hide_parameters, each.params = True, None
        else:
            vars(each).update(dict.fromkeys(_QUOTING & vars(each).keys()))
    for each in around:
        each.args = (f"{type(innermost).__module__}.{type(innermost).__name__}: {innermost}",)


def _quotes_a_value(error: Exception) -> bool:
    return (sqlstate(error) or "").startswith(_DATA_EXCEPTION)


def _without_the_value(error: Exception) -> str:
    kind = type(error).__name__
    return f"a rule, an index or a trigger of the database refused a value: {kind}, SQLSTATE {sqlstate(error)}"


def sqlstate(exc: Exception) -> str | None:
    """What PostgreSQL's server calls the error, or ``None`` where it did not come from there."""
    cause = driver_error(exc)
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)  # psycopg2's word for it
    return code if isinstance(code, str) else None


def is_lost(exc: Exception) -> bool:
    """Whether PostgreSQL's server said that the connection is of no more use: it ends, or what was prepared on it does
    not fit the tables any more."""
    code = sqlstate(exc) or ""
    return code[:2] == "08" or code[:3] == "57P" or _is_outdated(exc)


def was_undone(exc: BaseException) -> bool:
    """Whether PostgreSQL ended the connection and said why: it does so at rest, or after it has undone what was under
    way. After a commit it closes the connection without a word."""
    if not isinstance(exc, Exception):
        return False
    said: BaseException | None = driver_error(exc)
    while said is not None:  # asyncpg has the server's words in the cause of its own
        if getattr(said, "sqlstate", None) in _ENDED:
            return True
        said = said.__cause__
    return _is_outdated(exc)


def _is_outdated(exc: Exception) -> bool:
    """Whether a table was changed after the statement had been prepared. Words depend on the server's language."""
    cause = driver_error(exc)
    function = getattr(cause, "server_source_function", None)  # asyncpg's name for it
    function = function or getattr(getattr(cause, "diag", None), "source_function", None)
    return sqlstate(exc) == "0A000" and function == "RevalidateCachedQuery"


def is_full(exc: Exception) -> bool:
    """Whether PostgreSQL, or a pooler, has no room for another connection now."""
    return sqlstate(exc) == _NO_SLOT or (sqlstate(exc) is None and _FULL_IN_WORDS.search(str(exc)) is not None)


def is_an_answer(exc: BaseException) -> bool:
    """Whether the database itself answered, and goes on; after anything else, such as a cancelled task, nobody knows
    what state the connection is in."""
    if isinstance(exc, (FireflyMemoryError, sqlite3.Error)):
        return True
    if not isinstance(exc, Exception):
        return False
    return isinstance(driver_error(exc), sqlite3.Error) or (sqlstate(exc) is not None and not is_lost(exc))


def is_duplicate(exc: Exception) -> bool:
    """Whether a unique index refused a row."""
    code = getattr(driver_error(exc), "sqlite_errorcode", None)
    return sqlstate(exc) == "23505" or code in (
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    )


def translate(exc: Exception, operation: str, db_name: DatabaseName) -> FireflyMemoryError | None:
    """Our error for a driver's ``exc``; ``None`` for what is no trouble with the database, such as a bug."""
    if isinstance(exc, errors.TimeoutError):
        return StoreTimeoutError(operation, "no pooled connection became free in time; raise pool_size", retryable=True)
    if isinstance(exc, sqlite3.Error):
        return _from_sqlite(exc, operation, db_name)
    code = sqlstate(exc)
    if code is not None:
        return _from_postgresql(code, exc, operation, db_name)
    if isinstance(exc, TimeoutError):
        return StoreTimeoutError(operation, f"{db_name.name} did not answer in time", retryable=True)
    if isinstance(exc, (OSError, errors.SQLAlchemyError)) or _is_from_driver(exc):
        return _without_sqlstate(exc, operation, db_name)
    return None


def _from_postgresql(code: str, error: Exception, operation: str, db_name: DatabaseName) -> FireflyMemoryError:
    if code in UNDEFINED_TABLE:
        return db_name.is_not_current(operation, None)
    if code == "54000":
        return _too_large(error)
    if _is_outdated(error):
        reason = f"the tables have been changed since the statement was prepared ({_one_line(error)})"
        return DatabaseStoreError(operation, reason, retryable=True)
    for length in (5, 3, 2):
        if code[:length] in _POSTGRESQL:
            kind, reason, retryable = _POSTGRESQL[code[:length]]
            return kind(operation, f"{reason} ({_one_line(error)})", retryable=retryable)
    return DatabaseStoreError(operation, _one_line(error))


def _too_large(error: Exception) -> InvalidEntryError:
    if "idx_" in str(error) or "_pkey" in str(error):  # the index is named in every language
        names = "namespace, key and entry_id"
        return InvalidEntryError(names, "are together too long for an index of PostgreSQL, about 2,650 bytes in UTF-8")
    return InvalidEntryError("content or metadata", f"is larger than JSONB allows ({_one_line(error)})")


def _from_sqlite(error: sqlite3.Error, operation: str, db_name: DatabaseName) -> FireflyMemoryError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
    if code in _SQLITE_DAMAGE:
        return CorruptDataError(operation, db_name.name, _one_line(error))
    if "no such table" in str(error):
        return db_name.is_not_current(operation, None)
    kind, reason, retryable = _SQLITE.get(code, (DatabaseStoreError, "SQLite refused", False))
    return kind(operation, f"{db_name.name}: {reason} ({_one_line(error)})", retryable=retryable)


_FULL_IN_WORDS = re.compile("too many (clients|connections)|remaining connection slots|no more connections allowed")

# libpq tells of a refused connection in words only.
_IN_WORDS = (
    (re.compile(r"invalid connection option|invalid \w+ value|invalid .*sslmode"), None),
    (
        re.compile("password authentication failed|authentication failed|no pg_hba.conf entry|no password supplied"),
        "28",
    ),
    (re.compile('role ".*" does not exist|is not permitted to log in'), "28"),
    (re.compile('database ".*" does not exist'), "3D000"),
    (_FULL_IN_WORDS, _NO_SLOT),
    (
        re.compile(
            "server does not support SSL|SSL required|certificate verify failed|root certificate file|"
            "does not match host name"
        ),
        "28",
    ),
)


def _without_sqlstate(error: Exception, operation: str, db_name: DatabaseName) -> FireflyMemoryError:
    text = str(error)
    for words, code in _IN_WORDS:
        if words.search(text):
            if code is None:
                return ConfigurationError(f"the PostgreSQL URL cannot be used: {_one_line(error)}")
            return _from_postgresql(code, error, operation, db_name)
    return DatabaseConnectionError(operation, f"{db_name.name}: {_one_line(error)}", retryable=True)


def _is_from_driver(error: Exception) -> bool:
    """Errors of these drivers without an SQLSTATE come from the client side: the connection is gone."""
    drivers = {"asyncpg", "psycopg", "psycopg2"}
    return any(kind.__module__.partition(".")[0] in drivers for kind in type(error).__mro__)


def _one_line(error: Exception) -> str:
    if _quotes_a_value(error):
        return _without_the_value(error)
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
