"""Every error this library raises.

Each class composes its message from its arguments, so that a message is worded once and an
exception survives pickling. The driver's own error is always in ``__cause__``.
"""

from __future__ import annotations

from functools import partial
from typing import Any


class FireflyMemoryError(Exception):
    """The root: ``except FireflyMemoryError`` catches whatever this library raises on purpose."""

    result: Any = None
    """Of an agent's run whose turn was not stored: the run's result, which is the caller's all the same."""


class ConfigurationError(FireflyMemoryError, ValueError):
    """A URL, option or environment variable cannot be used as it is."""


class MissingDependencyError(FireflyMemoryError, ImportError):
    """An optional package is needed; the message names the extra that brings it, or the version that is ``found``."""

    def __init__(self, purpose: str, package: str, extra: str, found: str | None = None) -> None:
        super().__init__(purpose, package, extra, found)
        self.purpose = purpose
        self.package = package
        self.extra = extra
        self.found = found

    def __str__(self) -> str:
        if self.found is not None:
            return f"{self.purpose} needs {self.package}; {self.found} is installed; run: pip install '{self.package}'"
        return (
            f"{self.purpose} needs the package {self.package!r}, which is not installed; "
            f"run: pip install 'firefly-memory[{self.extra}]'"
        )


class InvalidEntryError(FireflyMemoryError, ValueError):
    """A value, id, key or namespace was refused; nothing was written.

    ``path`` says where the offender is, for example ``content['rows'][3]['price']``.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class ConflictError(FireflyMemoryError):
    """An expected owner, revision or uniqueness did not hold; nothing was written."""


class EntryOwnershipError(ConflictError):
    """The ``entry_id`` belongs to an entry of another namespace (rule R3)."""

    def __init__(self, entry_id: str, namespace: str) -> None:
        super().__init__(entry_id, namespace)
        self.entry_id = entry_id
        self.namespace = namespace

    def __str__(self) -> str:
        return (
            f"entry_id {self.entry_id!r} already belongs to an entry outside namespace {self.namespace!r}; "
            "save under another entry_id, or delete the other entry first"
        )


class ErasedError(ConflictError):
    """The person, or the conversation, was erased: nothing was written, or is begun. The message names nobody."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation = operation

    def __str__(self) -> str:
        return (
            f"{self.operation}: this belongs to a person whose data was erased, and is refused; "
            "readmit(store, owner) allows new data of this person"
        )


class StaleConversationError(ConflictError):
    """The conversation has turns that the author of a new one had not seen; ``turns`` is how many it has."""

    def __init__(self, conversation_id: str, expected: int, turns: int) -> None:
        super().__init__(conversation_id, expected, turns)
        self.conversation_id = conversation_id
        self.expected = expected
        self.turns = turns

    def __str__(self) -> str:
        return (
            f"conversation {self.conversation_id!r} has {self.turns} turns, not {self.expected}; "
            f"read what is new and try again with expected_turns={self.turns}"
        )


class TurnConflictError(ConflictError):
    """The turn of that number or idempotency key is there already, with other content."""

    def __init__(self, conversation_id: str, turn_id: int, given: str) -> None:
        super().__init__(conversation_id, turn_id, given)
        self.conversation_id = conversation_id
        self.turn_id = turn_id
        self.given = given

    def __str__(self) -> str:
        return (
            f"conversation {self.conversation_id!r} has another turn {self.turn_id} for {self.given}; "
            "a retry must bring the same content"
        )


class TurnsDroppedError(FireflyMemoryError, LookupError):
    """What was asked for needs turns that are no longer stored: a strategy deleted them, or an
    ``InMemoryStore(max_turns_kept=…)`` dropped them. ``turns`` is how many, from the first on."""

    def __init__(self, conversation_id: str, turns: int) -> None:
        super().__init__(conversation_id, turns)
        self.conversation_id = conversation_id
        self.turns = turns

    def __str__(self) -> str:
        return (
            f"the first {self.turns} turns of conversation {self.conversation_id!r} were dropped after they were "
            "summarized, and cannot be restored; a larger max_turns_kept, or another store, keeps them, and so does a "
            "strategy without delete=True"
        )


class UnknownConversationError(FireflyMemoryError, KeyError):
    """There is no such conversation."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(conversation_id)
        self.conversation_id = conversation_id

    def __str__(self) -> str:
        return f"there is no conversation {self.conversation_id!r}"


class UnknownFlushError(FireflyMemoryError, KeyError):
    """The conversation has no such flush."""

    def __init__(self, conversation_id: str, flush_id: str) -> None:
        super().__init__(conversation_id, flush_id)
        self.conversation_id = conversation_id
        self.flush_id = flush_id

    def __str__(self) -> str:
        return f"conversation {self.conversation_id!r} has no flush {self.flush_id!r}; list_flushes() lists them"


class UnknownRecordError(FireflyMemoryError, KeyError):
    """Long-term memory has no such fact, or no such person, in the space."""

    def __init__(self, kind: str, name: str, space: str) -> None:
        super().__init__(kind, name, space)
        self.kind = kind
        self.name = name
        self.space = space

    def __str__(self) -> str:
        return f"there is no {self.kind} {self.name!r} in the space {self.space!r}"


class NotSupportedError(FireflyMemoryError, NotImplementedError):
    """This backend, or this way of opening it, cannot do what was asked."""


class DatabaseStoreError(FireflyMemoryError):
    """A store could not do its work.

    ``operation`` is what was attempted, ``retryable`` whether the same call may succeed later.
    """

    def __init__(self, operation: str, reason: str, *, retryable: bool = False) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason
        self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.operation} failed: {self.reason}"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), retryable=self.retryable), (self.operation, self.reason)


class DatabaseConnectionError(DatabaseStoreError, ConnectionError):
    """The server or file cannot be reached, or the connection was lost."""


class StoreTimeoutError(DatabaseStoreError, TimeoutError):
    """The store did not answer, or no connection or lock was free, within the time-out."""


class OutcomeUnknownError(DatabaseStoreError):
    """A write was sent and its answer was lost: it may or may not have been done.

    Read what is stored before you write again. ``retryable`` says whether the same call may be repeated without a look:
    it leaves the same data if it was done already, unless others have written meanwhile.
    """

    def __init__(self, operation: str, reason: str, *, retryable: bool = False) -> None:
        super().__init__(operation, reason, retryable=retryable)

    def __str__(self) -> str:
        return f"{self.operation} may or may not have been done, read before you write again: {self.reason}"


class ReplyLostError(OutcomeUnknownError, DatabaseConnectionError):
    """The connection was lost after a write was sent and before its answer came."""


class ReplyOverdueError(OutcomeUnknownError, StoreTimeoutError):
    """The answer to a write did not come within the time-out."""


def outcome_unknown(error: DatabaseStoreError, *, retryable: bool) -> OutcomeUnknownError:
    """``error``, as that of a write which may have been done all the same."""
    kind: type[OutcomeUnknownError] = OutcomeUnknownError
    if isinstance(error, DatabaseConnectionError):
        kind = ReplyLostError
    elif isinstance(error, StoreTimeoutError):
        kind = ReplyOverdueError
    return kind(error.operation, error.reason, retryable=retryable)


class StoreClosedError(DatabaseStoreError):
    """The store was used after ``close()``."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation, "the store has been closed; open a new one")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.operation,)


class SchemaMismatchError(DatabaseStoreError):
    """The database's schema is not the one this version of the library needs.

    ``found`` and ``expected`` say what is there and what should be, ``command`` is what to run. ``nothing`` says in
    words that there is no file either.
    """

    def __init__(
        self, operation: str, found: str | None, expected: str, command: str, otherwise: str = "", nothing: str = ""
    ) -> None:
        self.found = found
        self.expected = expected
        self.command = command
        self.otherwise = otherwise
        self.nothing = nothing
        state = "is missing or incomplete" if found is None else f"is at {found}"
        state = nothing or f"the schema {state}"
        other = otherwise and f", or {otherwise}"
        super().__init__(operation, f"{state}, this version needs {expected}; run: {command}{other}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.operation, self.found, self.expected, self.command, self.otherwise, self.nothing)


class CorruptDataError(DatabaseStoreError):
    """Stored data cannot be read back. It stays where it is; ``where`` says where that is."""

    def __init__(self, operation: str, where: str, problem: str) -> None:
        self.where = where
        self.problem = problem
        super().__init__(operation, f"{where} is damaged ({problem}); it has been left as it is")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.operation, self.where, self.problem)


class EmbedderError(FireflyMemoryError):
    """An embedder failed, or gave back something else than a vector for each text. No vector was stored."""

    def __init__(self, embedder: str, problem: str) -> None:
        super().__init__(embedder, problem)
        self.embedder = embedder
        self.problem = problem

    def __str__(self) -> str:
        return f"the embedder {self.embedder!r} failed: {self.problem}"


class LanguageModelError(FireflyMemoryError):
    """A language model failed, or its answer cannot be used. Nothing was stored."""

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(model, problem)
        self.model = model
        self.problem = problem

    def __str__(self) -> str:
        return f"the language model {self.model!r} failed: {self.problem}"


class ConditionError(FireflyMemoryError):
    """A condition of a memory strategy could not be evaluated for a message. Nothing was left out or changed."""

    def __init__(self, expression: str, problem: str) -> None:
        super().__init__(expression, problem)
        self.expression = expression
        self.problem = problem

    def __str__(self) -> str:
        return f"the condition {self.expression!r} cannot be evaluated: {self.problem}"


class StepError(FireflyMemoryError):
    """A step of a pipeline, or of reasoning, failed; ``step`` is its name, and what was done before is kept."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(step, reason)
        self.step = step
        self.reason = reason

    def __str__(self) -> str:
        return f"step {self.step!r} failed: {self.reason}"
