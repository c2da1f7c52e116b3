"""R1, the same value back, and R2, yours."""

from __future__ import annotations

import math
import struct
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from firefly_memory.entries.entry import MemoryEntry, MemoryScope
from firefly_memory.errors import InvalidEntryError
from firefly_memory.testing.checks import Subject, check


def same(one: Any, other: Any) -> bool:
    """Equal in type, value, bits and order of keys. Goes down without recursion, for deep values."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, dict):
            if list(left) != list(right):
                return False
            pairs += zip(left.values(), right.values(), strict=True)
        elif isinstance(left, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif isinstance(left, float):
            if struct.pack("d", left) != struct.pack("d", right):
                return False
        elif left != right:
            return False
    return True


def _deep(levels: int, key: str = "down") -> Any:
    value: Any = "the bottom \x00"
    for level in range(levels):
        value = [value] if level % 2 else {key: value, "level": level}
    return value


def _shown(value: Any) -> str:
    try:
        return ascii(value)[:80]
    except (ValueError, RecursionError):  # integers beyond what Python prints, depths beyond what it can follow
        return f"<a {type(value).__name__} too large to show>"


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, "", "text", [], {}, [[]], [{}], {"": ""},
    {"zebra": 1, "ant": 2, "bee": {"z": 1, "y": [{"b": 1, "a": 2}]}}, {"b": 1, "aa": 2}, {"aa": 1, "b": 2},
    "\x00", "a\x00b", "\ud800", "\udfff tail", "\ud83d\ude00", "\U0001f600", "e\u0301", "é", "漢字", "\u2028\ufeff\x7f",
    "\\u0000", "\\", "\\\x00\\", '"quoted"', "line\nbreak\ttab", "\x1b\x10", "%s $1 ? :name {}",
    {"\x00": 1}, {"\ud800": "\ud800"}, {"a.b": {"c.d": 1}}, {"$set": {"$ref": 1, "$id": 2}}, {"$": 1, ".": 2, " ": 3},
    {"~str": "x"}, {"~order": ["a"], "a": 1}, {"~dict": [[1, 2]]}, {"~": "~"}, "~str", ["~json", {"~json": "{"}],
    {"_id": 1, "entry_id": 2, "namespace": 3}, {"__class__": "x", "py/object": "y"}, {"é": 1, "e\u0301": 2, "E": 3, "e": 4},
    2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 10**30, -(10**400), 10**4299, -(7**5000),
    0.0, -0.0, 0.1, 1.0, -1.5, 1e15, 1e16, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 2.0**63, 123456789012345680.0, 1e100,
    [0, 0.0, -0.0, False, None, "", [], {}], [1, 1.0, True, "1"], {"n": None, "f": -0.0, "i": 2**70, "s": "\x00"},
    _deep(5), _deep(63), _deep(64), _deep(65), _deep(120), _deep(250), _deep(499),
    _deep(29, "$"), _deep(60, "$"), _deep(61, "~"), _deep(200, "\x00"), _deep(200, "\ud800"), _deep(499, "$"),
    "x" * 100_000, list(range(5_000)), {f"key {n}": n for n in range(500)}, {str(n % 7) + "k" * (n % 5): n for n in range(99)},
]  # fmt: skip


@check("R1")
async def every_json_value_comes_back_the_same(subject: Subject) -> None:
    namespace = subject.namespace()
    for value in VALUES:
        entry = MemoryEntry(content=value, metadata={"value": value}, key="k")
        await subject.view.save(namespace, entry)
        loaded = await subject.view.load_by_key(namespace, "k")
        assert loaded is not None
        assert same(loaded.content, value), f"content {_shown(value)} came back as {_shown(loaded.content)}"
        assert same(loaded.metadata, {"value": value}), f"metadata {_shown(value)} became {_shown(loaded.metadata)}"


@check("R1")
async def an_importance_of_minus_zero_is_zero(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.save(namespace, MemoryEntry(importance=-0.0))
    (entry,) = await subject.view.load(namespace)
    assert repr(entry.importance) == "0.0", "some places have no other zero"


@check("R1")
async def values_saved_together_come_back_the_same(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.save_many(namespace, [MemoryEntry(content=value) for value in VALUES])
    contents = await subject.contents(namespace)
    assert len(contents) == len(VALUES)
    assert all(same(content, value) for content, value in zip(contents, VALUES, strict=True))


@check("R1")
async def every_field_comes_back(subject: Subject) -> None:
    namespace = subject.namespace()
    entry = MemoryEntry(
        entry_id="an id / of ümlauts \x00 and \ud800",
        scope=MemoryScope.LONG_TERM,
        key="a key \\ % _ \x00",
        content={"answer": 42},
        metadata={"source": ["tool", None]},
        created_at=datetime(2001, 2, 3, 4, 5, 6, 789_012, timezone(timedelta(hours=5, minutes=45))),
        expires_at=datetime(2999, 12, 31, 23, 59, 59, 999_999, timezone(timedelta(hours=-11))),
        importance=0.123456789012345,
    )
    await subject.view.save(namespace, entry)
    (loaded,) = await subject.view.load(namespace)
    assert loaded == entry
    assert loaded.created_at.utcoffset() == timedelta(0)
    assert loaded.expires_at is not None
    assert loaded.expires_at.utcoffset() == timedelta(0)
    assert loaded.scope is MemoryScope.LONG_TERM


class _Colour(Enum):
    RED = "red"


class _Level(IntEnum):
    HIGH = 3


class _Name(StrEnum):
    ADA = "ada"


@dataclass
class _Point:
    x: int
    tags: tuple[str, ...]


class _Model(BaseModel):
    when: datetime
    raw: bytes
    inner: dict[str, Decimal]


class _Text(str):
    __slots__ = ()


NORMALISED: list[tuple[Any, Any]] = [
    ((1, (2, 3)), [1, [2, 3]]),
    (deque([1, 2]), [1, 2]),
    ({"b", "a", "c"}, ["a", "b", "c"]),
    (frozenset({2, 10, 1}), [1, 10, 2]),
    (_Colour.RED, "red"),
    (_Level.HIGH, 3),
    (_Name.ADA, "ada"),
    (_Text("plain"), "plain"),
    (datetime(2024, 5, 6, 7, 8, 9, 10, UTC), "2024-05-06T07:08:09.000010+00:00"),
    (datetime(2024, 5, 6), "2024-05-06T00:00:00"),  # noqa: DTZ001 - data, not an instant of ours
    (date(2024, 5, 6), "2024-05-06"),
    (time(7, 8), "07:08:00"),
    (timedelta(minutes=1.5), 90.0),
    (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (Decimal("1.10"), "1.10"),
    (PurePosixPath("a/b"), "a/b"),
    (b"\x00\xff", "AP8="),
    (bytearray(b"ab"), "YWI="),
    (memoryview(b"ab"), "YWI="),
    (_Point(1, ("x",)), {"x": 1, "tags": ["x"]}),
    (
        _Model(when=datetime(2024, 1, 1, tzinfo=UTC), raw=b"ab", inner={"d": Decimal("0.5")}),
        {"when": "2024-01-01T00:00:00Z", "raw": "ab", "inner": {"d": "0.5"}},
    ),
    (OrderedDict([("z", 1), ("a", 2)]), {"z": 1, "a": 2}),
    ({1: "int", 2.5: "float", None: "none", _Colour.RED: "enum", date(2024, 1, 2): "date"},
     {"1": "int", "2.5": "float", "null": "none", "red": "enum", "2024-01-02": "date"}),
    ({"nested": [{"deep": {"t": UUID(int=0)}}]},
     {"nested": [{"deep": {"t": "00000000-0000-0000-0000-000000000000"}}]}),
]  # fmt: skip


@check("R1")
async def other_python_values_are_normalised_as_documented(subject: Subject) -> None:
    namespace = subject.namespace()
    for given, expected in NORMALISED:
        await subject.view.save(namespace, MemoryEntry(content=given, metadata={"m": given}, key="k"))
        loaded = await subject.view.load_by_key(namespace, "k")
        assert loaded is not None
        assert same(loaded.content, expected), f"{given!r} became {loaded.content!r}"
        assert same(loaded.metadata, {"m": expected})


def _containing_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED: list[tuple[Any, str]] = [
    (math.nan, "content"),
    ({"rows": [1, {"price": math.inf}]}, "content['rows'][1]['price']"),
    ([-math.inf], "content[0]"),
    (object(), "content"),
    ({"a": {"b": object()}}, "content['a']['b']"),
    ({(1, 2): "tuple"}, "content[(1, 2)]"),
    ({math.nan: 1}, "content[nan]"),
    ({1: "int", "1": "text"}, "content"),
    ([lambda: None], "content[0]"),
    (1j, "content"),
    (_containing_itself(), "content[0][0]"),
    (_deep(501), "content"),
    (10**4300, "content"),
    ({"n": [-(10**4300)]}, "content['n'][0]"),
    (_Point(1, (math.nan,)), "content['tags'][0]"),  # type: ignore[arg-type]
]


@check("R1")
async def what_cannot_be_kept_is_refused_with_its_path(subject: Subject) -> None:
    namespace = subject.namespace()
    (entry,) = await subject.saved(namespace, "before")
    for value, path in REFUSED:
        for fields in ({"content": value}, {"metadata": {"content": value}}):
            broken = MemoryEntry(entry_id=entry.entry_id, **fields)
            try:
                await subject.view.save(namespace, broken)
            except InvalidEntryError as error:
                wanted = path if "content" in fields else path.replace("content", "metadata['content']", 1)
                assert str(error).startswith(wanted), f"{error} does not name {wanted}"
            else:
                raise AssertionError(f"{_shown(value)} should have been refused")
    assert await subject.contents(namespace) == ["before"]


@check("R2")
async def changing_a_saved_value_changes_nothing_in_the_store(subject: Subject) -> None:
    namespace = subject.namespace()
    content, metadata = {"list": [1, [2]]}, {"tags": ["a"]}
    entry = MemoryEntry(content=content, metadata=metadata)
    await subject.view.save(namespace, entry)
    content["list"].append(3)
    metadata["tags"].append("b")
    entry.importance = 1.0
    (loaded,) = await subject.view.load(namespace)
    assert (loaded.content, loaded.metadata, loaded.importance) == ({"list": [1, [2]]}, {"tags": ["a"]}, 0.5)


@check("R2")
async def changing_a_loaded_value_changes_nothing_in_the_store(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.saved(namespace, {"list": [1]}, key="k", metadata={"tags": ["a"]})
    first = await subject.view.load_by_key(namespace, "k")
    (second,) = await subject.view.load(namespace)
    assert first is not None
    for entry in (first, second):
        entry.content["list"].append("changed")
        entry.metadata["tags"].append("changed")
        entry.key = "changed"
    (loaded,) = await subject.view.load(namespace)
    assert (loaded.content, loaded.metadata, loaded.key) == ({"list": [1]}, {"tags": ["a"]}, "k")
