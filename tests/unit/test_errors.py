"""Every error composes its message, keeps its parts and survives pickling."""

from __future__ import annotations

import pickle

import pytest

from firefly_memory import errors

ERRORS = [
    errors.ConfigurationError("no such thing"),
    errors.MissingDependencyError("PostgreSQL", "asyncpg", "postgres"),
    errors.InvalidEntryError("content['a']", "is bad"),
    errors.ConflictError("expected 3"),
    errors.EntryOwnershipError("id", "namespace"),
    errors.NotSupportedError("not here"),
    errors.DatabaseStoreError("save", "it broke", retryable=True),
    errors.DatabaseConnectionError("save", "it is gone", retryable=True),
    errors.StoreTimeoutError("save", "it took too long", retryable=True),
    errors.OutcomeUnknownError("save", "it is not there now", retryable=True),
    errors.ReplyLostError("save_if", "the connection was lost"),
    errors.ReplyOverdueError("save_if", "no answer in time"),
    errors.StoreClosedError("load"),
    errors.SchemaMismatchError("initialize", None, "0001", "alembic upgrade head"),
    errors.SchemaMismatchError("initialize", "0000", "0001", "alembic upgrade head"),
    errors.SchemaMismatchError("load", None, "0001", "alembic upgrade head", nothing="there is no file"),
    errors.CorruptDataError("load", "file x", "not JSON"),
    errors.StaleConversationError("chat", 3, 5),
    errors.TurnConflictError("chat", 3, "turn_id 3"),
    errors.UnknownConversationError("chat"),
    errors.TurnsDroppedError("chat", 3),
    errors.UnknownFlushError("chat", "0192"),
    errors.UnknownRecordError("fact", "0192", "default"),
    errors.SchemaMismatchError("load", None, "0001", "alembic upgrade head", "initialize()"),
    errors.StepError("extract", "it broke"),
    errors.ErasedError("append_turn"),
    errors.LanguageModelError("openai:gpt-4o-mini", "no answer"),
    errors.ConditionError("message.content < 3", "TypeError"),
    errors.EmbedderError("openai:text-embedding-3-small", "no answer"),
    errors.MissingDependencyError("agents", "pydantic-ai-slim>=2.60", "agents", "2.0.1"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: errors.FireflyMemoryError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_every_error_is_tested_here() -> None:
    classes = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)}
    assert classes - {errors.FireflyMemoryError} == {type(error) for error in ERRORS}


def test_error_messages_say_what_to_do() -> None:
    assert "pip install 'firefly-memory[postgres]'" in str(ERRORS[1])
    assert str(ERRORS[2]) == "content['a']: is bad"
    assert str(ERRORS[6]) == "save failed: it broke"
    assert "is missing" in str(ERRORS[13])
    assert "run: alembic upgrade head" in str(ERRORS[13])
    assert "is at 0000, this version needs 0001" in str(ERRORS[14])
    assert "there is no file, this version needs 0001; run: alembic" in str(ERRORS[15])
    assert "left as it is" in str(ERRORS[16])
    assert "needs pydantic-ai-slim>=2.60; 2.0.1 is installed" in str(ERRORS[-1])


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (errors.ConfigurationError, ValueError),
        (errors.MissingDependencyError, ImportError),
        (errors.InvalidEntryError, ValueError),
        (errors.NotSupportedError, NotImplementedError),
        (errors.DatabaseConnectionError, ConnectionError),
        (errors.StoreTimeoutError, TimeoutError),
        (errors.EntryOwnershipError, errors.ConflictError),
        (errors.CorruptDataError, errors.DatabaseStoreError),
    ],
)
def test_errors_are_also_subclasses_of_builtin_errors(kind: type[Exception], also: type[Exception]) -> None:
    assert issubclass(kind, (also,))
    assert issubclass(kind, errors.FireflyMemoryError)
