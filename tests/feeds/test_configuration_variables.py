"""Variables in a configuration are filled in after it is read, and no error shows their values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.memory_configuration import facts, load, problem


def in_a_worker(value: str, **more: Any) -> dict[str, Any]:
    """The facts of a worker with such a namespace."""
    return facts(load(f"memory:\n  $preset: worker\n  agent_key: w\n  namespace: {value}\n", **more))


@pytest.mark.parametrize(
    ("value", "namespace"),
    [
        ("${JOB_ID}", "job_7"),
        ("a-${JOB_ID}-${ROLE}", "a-job_7-worker"),
        ("${JOB_ID}${JOB_ID}", "job_7job_7"),
        ("${JOB_ID:-other}", "job_7"),
        ("${NONE:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("a${NONE:-}", "a"),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-$ROLE}", "$ROLE"),
        ("$JOB_ID", "$JOB_ID"),
        ("$$", "$$"),
        ("a}b", "a}b"),
    ],
)
def test_variables_are_filled_in(value: str, namespace: str) -> None:
    assert in_a_worker(value)["namespace"] == namespace


def test_the_context_comes_before_the_environment() -> None:
    assert in_a_worker("${JOB_ID}", context={"JOB_ID": "of_context"})["namespace"] == "of_context"
    assert in_a_worker("${JOB_ID}", context={"JOB_ID": 3})["namespace"] == "3"
    assert in_a_worker("${JOB_ID}", context={"JOB_ID": None})["namespace"] == "job_7"
    assert in_a_worker("${X}", context={"X": "x"}, env={})["namespace"] == "x"


def test_without_env_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEED_OF_A_TEST", "of_the_process")
    assert in_a_worker("${FEED_OF_A_TEST}", env=None)["namespace"] == "of_the_process"
    assert problem("memory: {$preset: worker, agent_key: '${FEED_OF_A_TEST}'}", env={})


@pytest.mark.parametrize(
    "value", ["a: [b, *c]\n---\n!!python/object:x", "${ROLE}", "${", "}", "{$preset: manager}", "- x", "#", "null", "'"]
)
def test_a_value_of_a_variable_stays_data(value: str) -> None:
    assert in_a_worker("${VALUE}", env={"VALUE": value})["namespace"] == value
    assert in_a_worker("'${VALUE}'", context={"VALUE": value})["namespace"] == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${NONE}", "the variable NONE is not set, or is empty; give it in the context or in the environment"),
        ("${EMPTY}", "the variable EMPTY is not set, or is empty"),
        ("${}", "${} is no variable: write ${NAME} or ${NAME:-default}"),
        ("${:-x}", "${:-x} is no variable"),
        ("${A B}", "${A B} is no variable"),
        ("${1A}", "${1A} is no variable"),
        ("${JOB_ID-x}", "${JOB_ID-x} is no variable"),
        ("${JOB_ID:?x}", "${JOB_ID:?x} is no variable"),
        ("${JOB_ID", "the variable ${JOB_ID has no closing brace"),
        ("${NONE:-${JOB_ID}}", "a variable, or a brace, cannot be inside ${…}, as in ${NONE:-${JOB_ID}"),
        ("${JOB_ID:-{x}}", "a variable, or a brace, cannot be inside ${…}"),
        ("${${JOB_ID}}", "a variable, or a brace, cannot be inside ${…}"),
        ("${LIST}", "LIST in the context must be text or a whole number, not list"),
        ("${FLAG}", "FLAG in the context must be text or a whole number, not bool"),
    ],
)
def test_a_variable_that_cannot_be_filled_in_is_named(value: str, expected: str) -> None:
    context = {"LIST": [], "FLAG": True}
    for text, path in {
        f"memory:\n  type: SharedInMemoryMemory\n  config:\n    agent_key: '{value}'": "memory.config.agent_key: ",
        f"memory:\n  $preset: manager\n  agent_key: a\n  subordinates: ['{value}']": "memory.subordinates: ",
        f"memory:\n  type: '{value}'": "memory.type: ",
        f"memory:\n  $preset: '{value}'": "memory.$preset: ",
    }.items():
        found = problem(text, context=context)
        assert found.startswith((path + expected, expected)), found


def test_a_key_has_no_variables() -> None:
    assert problem("memory: {$preset: worker, '${ROLE}': x}").startswith(
        "memory: unknown argument '${ROLE}'; known are "
    )
    assert problem("memory: {type: InMemoryMemory, config: {'${ROLE}': x}}").startswith(
        "memory.config: unknown argument '${ROLE}'"
    )
    assert (
        problem("'${ROLE}': {type: InMemoryMemory}")
        == "the configuration: has neither memory at the top nor spec.memory"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory: {type: '${SECRET}'}", "memory.type: unknown type '${SECRET}'; known are InMemoryMemory, "),
        ("memory: {$preset: '${SECRET}'}", "Unknown memory preset: '${SECRET}'. Available: standalone, worker, manager"),
        ("memory: {type: InMemoryMemory, config: {max_tokens: '${SECRET}'}}", "memory.config.max_tokens: must be a whole number"),
        ("memory: {type: InMemoryMemory, config: {agent_key: ['${SECRET}']}}", "memory.config.agent_key: must be text"),
        ("memory: {type: InMemoryMemory, config: {secret: '${SECRET}'}}", "memory.config: unknown argument 'secret'"),
        ("memory: {$preset: worker, agent_key: '${SECRET}', owner: '${SECRET}'}", "the preset 'worker' keeps an owner only in a message store"),
        ("memory: {$preset: manager, agent_key: a, subordinates: '${SECRET}'}", "memory.subordinates: must be a list"),
    ],
)  # fmt: skip
def test_no_error_shows_the_value_of_a_variable(text: str, expected: str) -> None:
    assert problem(text).startswith(expected)


def test_a_name_that_is_too_long_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="is 5000 characters long") as caught:
        load("memory: {$preset: worker, agent_key: '${LONG}'}", env={"LONG": "x" * 5000})
    assert "xx" not in str(caught.value)
