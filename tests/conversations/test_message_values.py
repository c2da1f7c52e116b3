"""Every value in a message comes back equal, or is refused with its path."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from math import nan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    BinaryImage,
    CachePoint,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
)

from firefly_memory import InvalidEntryError
from firefly_memory.messages.storage import decoded, encoded
from tests.support.value_strategies import any_text, integers

# Values


LOOKALIKES: list[dict[str, Any]] = [
    {"kind": "image-url", "url": "https://example.org/a.png"},
    {"kind": "binary", "data": "YWJj", "media_type": "image/png", "vendor_metadata": {"b": b"AAAA"}, "t": (1, 2)},
    {"kind": "uploaded-file", "file_id": "f", "provider_name": "openai"},
    {"kind": "text-content", "content": "x"},
]
leaves = (
    st.none()
    | st.booleans()
    | integers
    | st.floats()
    | any_text
    | st.binary(max_size=5)
    | st.sampled_from([b"AAAA", b"\xff", CachePoint(), *LOOKALIKES])
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    metadata = st.none() | st.dictionaries(any_text, inner, max_size=2)
    kinds = {ImageUrl: "image/png", AudioUrl: "audio/wav", VideoUrl: "video/mp4", DocumentUrl: "text/plain"}
    files = (
        *(
            st.builds(kind, st.just("https://e.org"), media_type=st.just(media_type), vendor_metadata=metadata)
            for kind, media_type in kinds.items()
        ),
        st.builds(UploadedFile, st.just("f"), st.just("openai"), vendor_metadata=metadata),
        st.builds(BinaryContent, st.binary(max_size=3), media_type=_MEDIA_TYPES, vendor_metadata=metadata),
        st.builds(BinaryImage, st.binary(max_size=3), media_type=st.just("image/png"), vendor_metadata=metadata),
        st.builds(TextContent, st.text(max_size=3), metadata=inner),
    )
    return st.one_of(
        *files,
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(any_text, inner, max_size=3),
    )


_MEDIA_TYPES = st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/plain"])
values = st.recursive(leaves, _containers, max_leaves=8)
mappings = st.dictionaries(any_text, values, max_size=3)
pictures = st.builds(BinaryContent, st.binary(max_size=3), media_type=_MEDIA_TYPES, vendor_metadata=mappings)

ONE: dict[str, Any] = {"tool_name": st.just("t"), "tool_call_id": st.just("1")}
requests = st.builds(
    ModelRequest,
    st.tuples(
        st.builds(ToolReturnPart, content=values, metadata=values, **ONE)
        | st.builds(SystemPromptPart, st.just("x"), metadata=mappings)
        | st.builds(UserPromptPart, st.lists(pictures | st.builds(TextContent, st.just("x"), metadata=values)))
    ).map(list),
    metadata=mappings,
)
responses = st.builds(
    ModelResponse,
    st.tuples(
        st.builds(ToolCallPart, args=mappings, provider_details=mappings, **ONE)
        | st.builds(NativeToolCallPart, args=mappings, provider_details=mappings, **ONE)
        | st.builds(NativeToolReturnPart, content=values, metadata=values, provider_details=mappings, **ONE)
        | st.builds(TextPart, st.just("x"), provider_details=mappings)
        | st.builds(ThinkingPart, st.just("x"), provider_details=mappings)
        | st.builds(CompactionPart, st.just("x"), provider_name=st.just("p"), provider_details=mappings)
        | st.builds(FilePart, pictures, provider_details=mappings)
    ).map(list),
    provider_details=mappings,
    metadata=mappings,
)


def shape(value: Any) -> Any:
    """All that can be seen of a value, with the types of all that is in it."""
    kind = type(value).__name__
    if isinstance(value, (list, tuple)):
        return kind, [shape(item) for item in value]
    if isinstance(value, dict):
        return kind, [(key, shape(item)) for key, item in value.items()]
    if dataclasses.is_dataclass(value):
        # pydantic-ai reads a whole number of seconds, in ``usage``, as an integer.
        names = [field.name for field in dataclasses.fields(value) if field.name[0] != "_" and field.name != "usage"]
        return kind, [(name, shape(getattr(value, name))) for name in (*names, "media_type") if hasattr(value, name)]
    if isinstance(value, datetime):
        return value
    return kind, repr(value)


def has_half_a_character(value: Any) -> bool:
    return any(0xD800 <= ord(character) < 0xE000 for character in _texts(value))


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(_texts(key) + _texts(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "".join(map(_texts, value))
    if dataclasses.is_dataclass(value):
        return _texts([getattr(value, field.name) for field in dataclasses.fields(value)])
    return ""


@given(st.one_of(requests, responses))
def test_every_message_comes_back_equal_or_is_refused_with_its_path(message: Any) -> None:
    before = shape(message)
    if has_half_a_character(message):
        with pytest.raises(InvalidEntryError) as caught:
            encoded([message])
        assert re.match(r"raw_messages\[0\]\.(parts\[0\]\.)?[a-z_]+", caught.value.path)
    else:
        assert shape(decoded(*encoded([message]))[0]) == before
    assert shape(message) == before, "the caller's message is as it was"


# Values that were changed, or could not be read again


def returned(content: Any, metadata: Any = None) -> list[Any]:
    return [ModelRequest([ToolReturnPart("t", content, tool_call_id="1", metadata=metadata)])]


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        (returned({"a": [{"b\ud800": 1}]}), "raw_messages[0].parts[0].content['a'][0]"),
        (returned({"a": [1, "\ud800"]}), "raw_messages[0].parts[0].content['a'][1]"),
        (returned(1, {"a": {"\udfff": 1}}), "raw_messages[0].parts[0].metadata['a']"),
        (returned([ImageUrl("https://e.org/a", vendor_metadata={"\ud800": 1})]), "content[0].vendor_metadata"),
        (returned({1: "a", "1": "b"}), "raw_messages[0].parts[0].content"),
        (returned({"n": 10**4_300}), "raw_messages[0].parts[0].content['n']"),
        (returned([deep(200)]), "raw_messages[0].parts[0].content[0][0]"),
        (returned(["fine", object()]), "raw_messages[0].parts[0].content[1]"),
        ([*returned(1), ModelResponse([ToolCallPart("t", {"\ud800": 1})])], "raw_messages[1].parts[0].args"),
        ([ModelResponse([], provider_details={"\ud800": 1})], "raw_messages[0].provider_details"),
    ],
)
def test_a_value_that_could_not_be_read_back_is_refused_with_its_path(messages: list[Any], path: str) -> None:
    with pytest.raises(InvalidEntryError) as caught:
        encoded(messages)
    assert path in caught.value.path


def test_the_deepest_value_and_the_longest_integer_can_be_read_back() -> None:
    messages = returned([deep(178), 10**4_299])
    assert decoded(*encoded(messages)) == messages


class Mode(Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    raw: bytes


class Model(BaseModel):
    when: datetime
    ratio: float = nan


WHEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "as_json"),
    [
        ({1: {2.5: b"x"}}, {"1": {"2.5": b"x"}}),
        ({3}, [3]),
        (Mode.RED, "red"),
        (Point(1, b"\xff"), {"x": 1, "raw": "_w=="}),
        ([Model(when=WHEN, ratio=1.5)], [{"when": "2026-01-02T00:00:00Z", "ratio": 1.5}]),
        ([WHEN, Decimal("1.10"), UUID(int=5)], ["2026-01-02T00:00:00Z", "1.10", str(UUID(int=5))]),
    ],
)
def test_other_values_come_back_as_json_values(value: Any, as_json: Any) -> None:
    (message,) = decoded(*encoded(returned(value, {"of": value})))
    assert message.parts[0].content == as_json
    assert message.parts[0].metadata == {"of": as_json}


def test_the_details_of_a_validation_error_can_be_stored() -> None:
    class Strict(BaseModel):
        points: tuple[int, int]

    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({"points": (1, b"two")})
    details = caught.value.errors(include_url=False, include_context=False)
    message = ModelRequest([RetryFeedbackPart(details, retry=RetryInfo(cause="validation_error"))])
    (again,) = decoded(*encoded([message]))
    assert again.parts[0].content[0]["loc"] == ("points", 1)
    assert again == message
