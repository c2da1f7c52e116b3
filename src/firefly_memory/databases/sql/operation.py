"""What an operation of a SQL store is, and what happens when the server's answer to it is lost.

A connection may break after the server has done the work and before its answer arrives. Then nobody knows whether the
work was done. Each operation says here what is right in that case; one that does not say cannot be defined.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.sql.session import Session

P = ParamSpec("P")
T = TypeVar("T")

Work = Callable[Concatenate[Session, P], T]
"""A plain function over a session."""


class OnLostReply(Enum):
    """What to do with an operation that has no function of its own for this case."""

    REPEAT = "repeat"
    """Run it again: the second time gives the same answer and leaves the same data, whatever others do meanwhile."""
    REPORT = "report"
    """Raise ``OutcomeUnknownError``: a second run could give another answer, or undo what others did meanwhile."""


REPEAT = OnLostReply.REPEAT
REPORT = OnLostReply.REPORT


class UndecidedError(Exception):
    """A function that looks after a lost answer cannot tell whether the work was done."""


class Operation(Generic[P, T]):
    """A function over a session, its name in errors, and what to do after a lost answer.

    ``on_lost_reply`` may be a function with the same arguments: it finds out whether the work was done, does it if it
    was not, and returns what the first run would have returned; or it raises :class:`UndecidedError`.
    ``retryable`` says whether a caller who does not know the outcome may make the same call again without harm.
    ``grouping``, whose ways to write are operations, is given to a write that callers of one event loop may make
    together.
    """

    def __init__(
        self,
        work: Work[P, T],
        name: str,
        on_lost_reply: OnLostReply | Work[P, T],
        retryable: bool,
        grouping: Grouping | None = None,
    ) -> None:
        update_wrapper(self, work)
        self.work = work
        self.name = name
        self.on_lost_reply = on_lost_reply
        self.retryable = retryable
        self.grouping = grouping

    def __call__(self, session: Session, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.work(session, *args, **kwargs)

    @property
    def after_lost_reply(self) -> Work[P, T] | None:
        """What to run in its place after a lost answer; ``None`` if there is nothing."""
        match self.on_lost_reply:
            case OnLostReply.REPEAT:
                return self.work
            case OnLostReply.REPORT:
                return None
            case find_out:
                return find_out


class _Decorator(Protocol):
    def __call__(self, work: Work[P, T], /) -> Operation[P, T]: ...


@overload
def operation(
    *, on_lost_reply: OnLostReply, retryable: bool = True, name: str | None = None, grouping: Grouping | None = None
) -> _Decorator: ...


@overload
def operation(
    *, on_lost_reply: Work[P, T], retryable: bool = True, name: str | None = None, grouping: Grouping | None = None
) -> Callable[[Work[P, T]], Operation[P, T]]: ...


def operation(
    *, on_lost_reply: Any, retryable: bool = True, name: str | None = None, grouping: Grouping | None = None
) -> Any:
    """Make an :class:`Operation` of a function; ``name`` if the function's own is not what callers know."""

    def decorate(work: Work[..., Any]) -> Operation[..., Any]:
        return Operation(work, name or work.__name__, on_lost_reply, retryable, grouping)

    return decorate


def reads(work: Work[P, T]) -> Operation[P, T]:
    """Make an :class:`Operation` of a function that only reads."""
    return Operation(work, work.__name__, REPEAT, retryable=True)
