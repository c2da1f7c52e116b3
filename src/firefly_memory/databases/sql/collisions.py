"""Operations that PostgreSQL aborts in favour of other transactions, and that are run again."""

from __future__ import annotations

from typing import ParamSpec, TypeVar

from firefly_memory.databases.sql.errors import sqlstate
from firefly_memory.databases.sql.executor import Method
from firefly_memory.errors import DatabaseStoreError

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 20  # each failed attempt means that another writer succeeded
_ABORTED_BEFORE = "25P02"
"""The state of an operation in a transaction that an earlier operation has lost."""


def again_after_collision(method: Method[P, T]) -> Method[P, T]:
    """``method``, which is called again if PostgreSQL aborted it in favour of another transaction. Transactions that
    lock the same rows may deadlock, and stricter isolation levels abort instead of waiting. In a transaction of the
    caller's nothing can be tried again: the caller gets the error."""

    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        collision: DatabaseStoreError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return await method(*args, **kwargs)
            except DatabaseStoreError as error:
                state = _state_of(error)
                if collision is not None and state == _ABORTED_BEFORE:
                    raise collision from collision.__cause__
                if state[:2] != "40":
                    raise
                collision = error
        assert collision is not None
        raise collision

    return call


def _state_of(error: DatabaseStoreError) -> str:
    cause = error.__cause__
    return sqlstate(cause) or "" if isinstance(cause, Exception) else ""
