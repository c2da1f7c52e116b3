"""YAML is read as plain values, or refused with what is wrong."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import ConfigurationError
from firefly_memory.yaml_text import MOST_VALUES, read_yaml


def levels(first: str, inner: str, count: int) -> str:
    """Lines that each repeat the line before ten times."""
    lines = [f"a{n}: &a{n} {inner.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, count + 1)]
    return "\n".join([f"a0: &a0 {first}", *lines])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: [1, true, x]", {"a": [1, True, "x"]}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: &x {p: 1}\nb: {<<: *x, q: 2}", {"a": {"p": 1}, "b": {"p": 1, "q": 2}}),
        ("a: {x: 1}\nb: {x: 1}", {"a": {"x": 1}, "b": {"x": 1}}),
        ("1: a\n'1': b", {1: "a", "1": "b"}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_a_document_is_read(text: str, value: Any) -> None:
    assert read_yaml(text, "file") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("a: \0", "unacceptable character #x0000"),
        ("a: \ud800", "unacceptable character #xd800"),
        ("a:\n\t- b", "cannot start any token"),
        ("a: *b", "undefined alias 'b'"),
        ("{[1]: 2}", "unhashable key"),
        ("!!bool x", "'x'"),
        ("!!timestamp x", "NoneType"),
        ("9" * 5000, "limit"),
        ("[" * 5_000, "recursion"),
    ],
)
def test_what_is_no_yaml_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(text, "file")
    assert str(caught.value).startswith("file: is not YAML: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        levels("[x]", "[{}]", 9),
        levels("{x: 1}", "{{<<: [{}]}}", 9),
        "&a [*a]",
        "&a {x: *a}",
        "&a {<<: *a}",
    ],
    ids=["lists", "merged mappings", "a list in itself", "a mapping in itself", "a mapping merged into itself"],
)
def test_aliases_that_grow_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^file: is too large: .* {MOST_VALUES:,} values$"):
        read_yaml(text, "file")


def test_aliases_below_the_bound_are_read() -> None:
    found = read_yaml(levels("[x]", "[{}]", 5), "file")
    assert found["a5"][9][9][9][9][9] == ["x"]


def test_a_key_that_is_there_twice_is_refused() -> None:
    for text, line in {"a: 1\nb: 2\na: 3": 3, "x:\n  y: {a: 1, 'a': 2}": 2}.items():
        with pytest.raises(
            ConfigurationError, match=f"^file: has the key 'a' twice in one mapping, again in line {line}$"
        ):
            read_yaml(text, "file")


@given(st.text("ab:-{}[]&*!<>|?,'\"#% \n\t0123\\~") | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigurationError):
        read_yaml(text, "file")
