"""How things are bent: values anywhere inside a document, bytes anywhere in a text."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

ODD_TEXTS = [
    "", "~", "~~", "~str", "~float", "~int", "nan", "1e999", "-1", "9" * 5000, "\x00", "\ud800", "\x10", "\x10d800", "working:",
    "conversation:", "fact:", "2024-01-01", "2024-01-01T00:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
    "{}", "[]", "null", '{"~float": "1e999"}', '{"~": 1}', "x" * 10_000,
]  # fmt: skip

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, [], {}, [[]],
    [None], {"~float": "nan"}, {"~float": "1e999"}, {"~int": "9" * 5000}, {"~": {}}, {"~keys": [1]}, {"~json": "[" * 100_000}, {"~bytes": "*"}, {"": ""},
    *ODD_TEXTS,
]  # fmt: skip


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


_DEEPEST = 300
"""Levels that Python copies and writes wherever it is called from, so that a seed has the same examples every time."""

odd_texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=20)

odd_values = (
    st.sampled_from(ODD)
    | st.text(max_size=20)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(0, _DEEPEST).map(_nested)
)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside ``document``, itself left out, and what is inside of many others."""
    steps: Any = ()
    if len(path) == _DEEPEST // 10:
        return
    if isinstance(document, dict):
        steps = document.keys()
    elif isinstance(document, list):
        steps = range(len(document))
    for step in steps:
        yield (*path, step)
        yield from places(document[step], (*path, step))


def bent(draw: Any, document: Any, odd: st.SearchStrategy[Any] = odd_values) -> Any:
    """A copy of ``document`` that differs in one place, or somewhat more."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        ways = list(places(document))
        if not ways:
            return copy.deepcopy(draw(odd))
        *way, last = draw(st.sampled_from(ways))
        parent = document
        for step in way:
            parent = parent[step]
        match draw(st.sampled_from(["replace", "remove", "rename", "double", "swap"])):
            case "replace":
                parent[last] = copy.deepcopy(draw(odd))  # which is bent in turn, or decoded in place
            case "remove":
                del parent[last]
            case "rename" if isinstance(parent, dict):
                parent[draw(odd_texts)] = parent.pop(last)
            case "double" if isinstance(parent, list):
                parent.insert(last, copy.deepcopy(parent[last]))
            case _:
                other = draw(st.sampled_from(list(parent) if isinstance(parent, dict) else range(len(parent))))
                parent[last], parent[other] = parent[other], parent[last]
    return document


def bent_bytes(draw: Any, data: bytes) -> bytes:
    """``data`` with a few bytes flipped, cut out, put in or doubled, or without its end."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        match draw(st.sampled_from(["flip", "cut", "insert", "nest", "double", "end"])):
            case "flip" if start < len(data):
                data = data[:start] + bytes([data[start] ^ (1 << draw(st.integers(0, 7)))]) + data[start + 1 :]
            case "cut":
                data = data[:start] + data[end:]
            case "insert":
                data = data[:start] + draw(st.binary(max_size=8)) + data[start:]
            case "nest":
                data = data[:start] + b"[" * draw(st.sampled_from([100, 300, 100_000])) + data[start:]
            case "double":
                data = data[:end] + data[start:]
            case _:
                data = data[:start]
    return data
