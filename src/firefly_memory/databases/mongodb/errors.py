"""PyMongo's errors, translated: one table, one context manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from bson.errors import BSONError, InvalidBSON
from pymongo import errors

from firefly_memory.databases.mongodb.quoted_documents import forget_documents, without_key
from firefly_memory.errors import (
    CorruptDataError,
    DatabaseConnectionError,
    DatabaseStoreError,
    FireflyMemoryError,
    InvalidEntryError,
    OutcomeUnknownError,
    SchemaMismatchError,
    StoreTimeoutError,
    outcome_unknown,
)

T = TypeVar("T")

DUPLICATE = 11000
"""The code of a write that a unique index refuses."""

_HISTORY = 5  # errors
_FRAMES = 50  # of each

_TOO_LARGE = {10334, 17419, 17420}  # BSONObjectTooLarge and what updates report instead

_NO_NUMBER = {14, 16554, 16556}
"""What the server says when it is to count with a field that holds no number."""

_CHECK = "`firefly-memory db check` names it, and the commands that mend it"

# Server error code: what it means, and whether the same call may succeed later.
_CODES: dict[int, tuple[type[DatabaseStoreError], str, bool]] = {
    13: (DatabaseStoreError, "the user lacks a privilege", False),
    18: (DatabaseConnectionError, "the server refused the login; check user, password and authSource", False),
    50: (StoreTimeoutError, "the operation took longer than allowed", True),
    112: (StoreTimeoutError, "another transaction holds what is to be written", True),
    85: (DatabaseStoreError, f"an index with other options is in the way; {_CHECK}", False),
    86: (DatabaseStoreError, f"an index of the same name but other keys is in the way; {_CHECK}", False),
    14031: (DatabaseStoreError, "the server is out of disk space", True),
}


@contextmanager
def translated(operation: str, db_name: str, what: str | None = None) -> Iterator[None]:
    """Turn whatever PyMongo raises in the block into an error of ours, with its cause. ``what`` is being written; where
    nothing of the caller's is, a value that does not fit was read, and is damaged."""
    try:
        yield
    except FireflyMemoryError as error:
        forget_documents(error)
        raise
    except (errors.PyMongoError, BSONError, OverflowError) as exc:
        raise _translated(exc, operation, db_name, what) from exc


@dataclass(slots=True)
class Writing:
    """A write under way. ``has_begun`` says that a part of it is done: then no failure means that nothing was."""

    has_begun: bool = False


@contextmanager
def written(
    operation: str, db_name: str, what: str | None = None, *, retryable: bool = True, has_begun: bool = False
) -> Iterator[Writing]:
    """:func:`translated` around a write. PyMongo has tried again what may be tried again; if the last answer is lost as
    well, nobody knows the outcome. ``retryable`` says whether the same call may then be made again without harm."""
    writing = Writing(has_begun)
    try:
        yield writing
    except FireflyMemoryError as error:
        forget_documents(error)
        is_decided = isinstance(error, (OutcomeUnknownError, CorruptDataError, SchemaMismatchError))
        if is_decided or not (writing.has_begun and isinstance(error, DatabaseStoreError)):
            raise
        raise outcome_unknown(error, retryable=retryable) from error.__cause__
    except (errors.PyMongoError, BSONError, OverflowError) as exc:
        failure = _translated(exc, operation, db_name, what)
        if isinstance(failure, DatabaseStoreError) and (writing.has_begun or _may_have_been_done(exc)):
            failure = outcome_unknown(failure, retryable=retryable)
        raise failure from exc


def _translated(exc: Exception, operation: str, db_name: str, what: str | None) -> FireflyMemoryError:
    _shorten_history(exc)
    failure = translate(exc, operation, db_name, what)
    forget_documents(exc)
    return failure


def _may_have_been_done(exc: Exception) -> bool:
    """Whether something was sent that the server may have done without an answer that arrived."""
    if not isinstance(exc, errors.PyMongoError):
        return False
    if exc.has_error_label("UnknownTransactionCommitResult") or isinstance(exc, errors.WriteConcernError):
        return True
    if exc.has_error_label("TransientTransactionError"):
        return False
    if isinstance(exc, (errors.ServerSelectionTimeoutError, errors.WaitQueueTimeoutError)):
        return False
    return isinstance(exc, errors.ConnectionFailure) or exc.timeout


async def despite_a_loss(call: Callable[[], Awaitable[T]]) -> T:
    """``call``, once more if its answer is lost: for a command that PyMongo does not try again, and that leaves the
    same data when it runs twice."""
    try:
        return await call()
    except errors.ServerSelectionTimeoutError:  # it has waited for a server the whole time-out
        raise
    except errors.ConnectionFailure as loss:
        try:
            return await call()
        except errors.ServerSelectionTimeoutError:  # which would say that nothing was sent
            raise loss from None


def _shorten_history(exc: BaseException) -> None:
    """PyMongo may try again thousands of times within the time-out, and its errors remember every one of them: printing
    such a traceback would take minutes."""
    for _ in range(_HISTORY):
        trace = exc.__traceback__
        for _ in range(_FRAMES):
            trace = trace and trace.tb_next
        if trace is not None:
            trace.tb_next = None
        earlier = exc.__cause__ or exc.__context__
        if earlier is None:
            return
        exc = earlier
    exc.__cause__ = exc.__context__ = None


def translate(exc: Exception, operation: str, db_name: str, what: str | None = None) -> FireflyMemoryError:
    if isinstance(exc, errors.BulkWriteError) and not exc.timeout:
        exc = _first_of(exc)
    code = getattr(exc, "code", None)
    if isinstance(exc, errors.DocumentTooLarge) or code in _TOO_LARGE or _is_too_large_to_insert(exc):
        return InvalidEntryError(
            what or "entry", f"is larger than the 16 MB MongoDB allows for a document ({_one_line(exc)})"
        )
    does_not_fit = what is None and isinstance(exc, (BSONError, OverflowError))
    if isinstance(exc, InvalidBSON) or does_not_fit or code in _NO_NUMBER:
        return CorruptDataError(operation, f"a document on {db_name}", _one_line(exc))
    if what is not None and isinstance(exc, (BSONError, OverflowError)):
        return InvalidEntryError(what, f"cannot be written as BSON ({_one_line(exc)})")
    if code in _CODES:
        kind, reason, retryable = _CODES[code]
        return kind(operation, f"{reason} ({_one_line(exc)})", retryable=retryable)
    if isinstance(exc, errors.ServerSelectionTimeoutError):
        return DatabaseConnectionError(operation, f"no server of {db_name} answered ({_one_line(exc)})", retryable=True)
    if isinstance(exc, errors.PyMongoError) and exc.timeout:
        return StoreTimeoutError(operation, f"{db_name} did not answer in time", retryable=True)
    if isinstance(exc, errors.ConnectionFailure):
        return DatabaseConnectionError(
            operation, f"the connection to {db_name} was lost ({_one_line(exc)})", retryable=True
        )
    retryable = isinstance(exc, errors.PyMongoError) and exc.has_error_label("RetryableWriteError")
    return DatabaseStoreError(operation, _one_line(exc), retryable=retryable)


def _first_of(exc: errors.BulkWriteError) -> errors.OperationFailure:
    """What has gone wrong: the error itself says no more than that something has."""
    for found in (*exc.details.get("writeConcernErrors", ()), *exc.details.get("writeErrors", ())):
        labels = exc.details.get("errorLabels", [])
        return errors.WriteError(found["errmsg"], found.get("code"), {**found, "errorLabels": labels})
    return exc


def _is_too_large_to_insert(exc: Exception) -> bool:
    return isinstance(exc, errors.WriteError) and str(exc).startswith(
        "object to insert too large"
    )  # no code of its own


def _one_line(error: Exception) -> str:
    text = without_key(str(error).partition(", full error:")[0]).partition(", Timeout:")[0]
    return (text.strip().splitlines() or [type(error).__name__])[0]


def duplicate_in(exc: errors.BulkWriteError) -> dict[str, Any] | None:
    """What the unique index has refused; ``None`` for another error."""
    refusal = {"code": None, **(exc.details.get("writeErrors") or [{}])[0]}
    is_taken = refusal["code"] == DUPLICATE and not exc.details.get("writeConcernErrors")
    return refusal if is_taken else None
