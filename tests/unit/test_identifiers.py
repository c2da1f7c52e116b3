"""Ids, namespaces and keys."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

import pytest
from hypothesis import given

from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import MAX_LENGTH, new_entry_id, original_name, stored_name, stored_text
from tests.support.value_strategies import names


@given(names, names)
def test_stored_names_are_different_where_names_are_and_fit_everywhere(one: str, other: str) -> None:
    stored = stored_name("key", one)
    assert original_name(stored) == one
    stored.encode("utf-8")
    assert "\x00" not in stored
    assert (stored == stored_name("key", other)) == (one == other)
    assert stored_name("key", one + other).startswith(stored_text(one))


def test_ordinary_names_are_stored_as_they_are() -> None:
    for name in ("working:session-42", "a\\b", "%", "../x", "é", "\U0001f600", "x" * MAX_LENGTH):
        assert stored_name("namespace", name) == name


class _Name(StrEnum):
    ADA = "ada"


def test_subclasses_of_str_become_text() -> None:
    assert type(stored_name("key", _Name.ADA)) is str


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "must not be empty"),
        ("x" * 513, "513 characters"),
        (None, "must be text, not NoneType"),
        (b"x", "not bytes"),
    ],
)
def test_other_names_are_refused(name: str, problem: str) -> None:
    with pytest.raises(InvalidEntryError, match=problem) as caught:
        stored_name("namespace", name)
    assert caught.value.path == "namespace"


def test_new_ids_are_uuids_of_version_7_that_grow() -> None:
    ids = [new_entry_id() for _ in range(10_000)]
    assert ids == sorted(ids)
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert {str(uuid.UUID(each)) for each in ids} == set(ids)


def test_new_ids_are_different_in_threads_and_in_a_forked_child() -> None:
    with ThreadPoolExecutor(8) as threads:
        ids = {
            each for batch in threads.map(lambda _: [new_entry_id() for _ in range(2_000)], range(8)) for each in batch
        }
    assert len(ids) == 16_000
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "\n".join(new_entry_id() for _ in range(50)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = set(os.read(reading, 10_000).decode().split())
    os.close(reading)
    os.close(writing)
    assert len(theirs) == 50
    assert not theirs & {new_entry_id() for _ in range(50)}
