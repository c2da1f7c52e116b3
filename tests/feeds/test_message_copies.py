"""Copies of messages."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firefly_memory.errors import InvalidEntryError
from firefly_memory.feeds.memories.message_copies import copied_message, copied_value

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=6,
)


def containers_of(value: Any) -> list[Any]:
    """The lists and dicts in a value, and the value itself."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    found = [each for item in inner for each in containers_of(item)]
    return [value, *found] if isinstance(value, (list, dict)) else found


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=3), _JSON, max_size=3))
def test_a_copy_is_equal_and_shares_no_list_and_no_dict(message: dict[str, Any]) -> None:
    copy = copied_message(message)
    assert copy == message
    assert [type(each) for each in copy.values()] == [type(each) for each in message.values()]
    assert not {id(each) for each in containers_of(copy)} & {id(each) for each in containers_of(message)}


@pytest.mark.parametrize("value", [{1, 2}, deque([1]), bytearray(b"1"), OrderedDict(a=[1])])
def test_other_containers_are_copied(value: Any) -> None:
    copy = copied_value(value, "content")
    assert copy == value
    assert type(copy) is type(value)
    assert copy is not value


class Uncopied:
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __deepcopy__(self, memo: object) -> Uncopied:
        raise OSError("no copies")


@pytest.mark.parametrize("value", [object(), threading.Lock(), Uncopied(), len, int])
def test_what_cannot_be_copied_is_the_same_object(value: Any) -> None:
    assert copied_value([value], "content")[0] is value


def test_any_mapping_becomes_a_dict() -> None:
    assert type(copied_message(MappingProxyType({"a": 1}))) is dict


def nested(levels: int) -> Any:
    value: Any = "innermost"
    for _ in range(levels):
        value = [value]
    return value


def test_a_value_may_have_500_levels() -> None:
    assert copied_value(nested(500), "content") == nested(500)
    with pytest.raises(InvalidEntryError, match="content: is nested deeper than 500 levels"):
        copied_value(nested(501), "content")


class Nested:
    """Is copied by Python's own function, which has less room."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nested)

    __hash__ = object.__hash__


def test_what_python_cannot_copy_for_its_depth_is_refused() -> None:
    with pytest.raises(InvalidEntryError, match="content: is nested deeper"):
        copied_value([Nested(nested(5_000))], "content")
