"""The codec alone: the values that each form keeps, and its errors about damage. The conformance suite tests R1."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import bson
import pytest
from hypothesis import example, given

from firefly_memory.codec import BSON, DOCUMENT, JSONB, MAX_DEPTH, PORTABLE, TEXT, DecodeError, Form
from firefly_memory.errors import InvalidEntryError
from firefly_memory.testing.rules.values import NORMALISED, VALUES, same
from tests.support.value_strategies import json_values


def as_jsonb(text: str) -> str:
    """What PostgreSQL's JSONB makes of JSON text: keys sorted by length and bytes, numbers as decimals."""

    def reordered(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: reordered(value[key]) for key in sorted(value, key=lambda key: (len(key.encode()), key.encode()))
            }
        return [reordered(item) for item in value] if isinstance(value, list) else value

    assert "\\u0000" not in text.replace("\\\\", "")
    return json.dumps(reordered(json.loads(text)), ensure_ascii=False)


@given(json_values)
@example({"b": 1, "a": [{"d": 1, "c": -0.0}]})
@example({"~order": ["x"], "b": 1, "a": 2})
@example("\ud83d\ude00")
def test_every_stored_form_returns_the_same_value(value: Any) -> None:
    assert same(TEXT.decode(TEXT.encode(value)), value)
    assert same(JSONB.decode(as_jsonb(JSONB.encode(value))), value)
    assert same(BSON.decode(bson.decode(bson.encode({"value": BSON.encode(value)}))["value"]), value)
    assert same(DOCUMENT.decode(json.loads(json.dumps(DOCUMENT.encode(value)))), value)
    assert same(PORTABLE.decode(json.loads(json.dumps(PORTABLE.encode(value)))), value)


@pytest.mark.parametrize("form", [TEXT, JSONB], ids=["text", "jsonb"])
def test_plain_values_are_stored_plainly(form: Form) -> None:
    assert form.encode({"a": 1, "bb": [True, None, "ü", 1.5]}) == '{"a":1,"bb":[true,null,"ü",1.5]}'


def test_only_values_that_the_stored_form_would_lose_are_escaped() -> None:
    assert TEXT.encode({"bb": -0.0, "a": "\x00"}) == '{"bb":-0.0,"a":"\\u0000"}'
    assert json.loads(JSONB.encode({"bb": -0.0, "a": "\x00"})) == {
        "bb": {"~float": "-0.0"},
        "a": {"~str": "\\u0000"},
        "~order": ["bb", "a"],
    }
    assert BSON.encode({"$ref": 1, "n": 2**63}) == {"~dict": [["$ref", 1], ["n", {"~int": "0x8000000000000000"}]]}


def test_the_order_of_keys_survives_edits_by_hand() -> None:
    assert list(JSONB.decode('{"a": 1, "new": 2, "b": 3, "~order": ["b", "a"]}')) == ["b", "a", "new"]
    assert list(JSONB.decode('{"a": 1, "~order": ["b", "a"]}')) == ["a"]
    assert JSONB.decode('{"~order": ["b", "a"]}') == {}
    assert list(JSONB.decode('[{"a": 1, "b": 2, "~order": ["b", "a"]}]')[0]) == ["b", "a"]
    assert list(JSONB.decode('{"a": 1, "b": 2, "~order": [["b"], null, 7]}')) == ["a", "b"]
    assert list(JSONB.decode('{"a": 1, "b": 2, "~order": 5}')) == ["a", "b"]


@pytest.mark.parametrize(
    "damaged",
    ["", "{", "nul", '{"a": NaN}', "[1,]", '{"~int": "not hex"}', '{"~float": []}', '{"~dict": [1]}', '{"~what": 1}',
     '{"~float": "1e999"}', '{"~float": "nan"}', '{"~json": "[1e999]"}', '{"~json": "[NaN]"}',
     '{"~int": "0x' + "f" * 3600 + '"}', '{"~int": "-0x' + "f" * 100_000 + '"}', "1" * 4301, '{"~json": "' + "1" * 4301 + '"}',
     '{"~str": 5}', '{"~json": "{"}', '"\\ud800"', '[{"~dict": [["a"]]}]'],
)  # fmt: skip
def test_damage_is_an_error_and_never_a_guess(damaged: str) -> None:
    with pytest.raises(DecodeError):
        TEXT.decode(damaged)


def test_a_foreign_bson_type_is_an_error() -> None:
    with pytest.raises(DecodeError, match="ObjectId"):
        BSON.decode({"a": bson.ObjectId()})


def test_an_encoded_value_shares_nothing_with_the_original() -> None:
    value = {"list": [1, {"a": []}]}
    for form in (DOCUMENT, BSON, PORTABLE):
        encoded = form.encode(value)
        encoded["list"][1]["a"].append(2)
        assert value == {"list": [1, {"a": []}]}
    stored = {"list": [{"~int": "0x1"}]}
    assert PORTABLE.decode(stored) == {"list": [1]}
    assert stored == {"list": [{"~int": "0x1"}]}


def test_every_stored_form_keeps_the_values_of_the_conformance_suite() -> None:
    for value in VALUES:
        assert same(JSONB.decode(JSONB.encode(value)), value)
        assert same(BSON.decode(BSON.encode(value)), value)
    for given_value, expected in NORMALISED:
        assert same(TEXT.decode(TEXT.encode(given_value)), expected)
        assert same(BSON.decode(BSON.encode(given_value)), expected)


def test_nesting_is_limited_and_the_error_shows_a_short_path() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    TEXT.encode(value)
    with pytest.raises(InvalidEntryError, match="nested deeper than 500") as caught:
        TEXT.encode([value])
    assert len(str(caught.value)) < 300


def test_an_almost_full_stack_raises_a_clear_error() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]

    def deep_down(levels: int) -> str:
        encoded: str = deep_down(levels - 1) if levels else TEXT.encode(value)
        return encoded

    with pytest.raises(InvalidEntryError, match="room left on Python's stack"):
        deep_down(700)


def test_a_key_that_python_cannot_print_is_refused() -> None:
    with pytest.raises(InvalidEntryError, match="key"):
        TEXT.encode({10**5000: 1})


@pytest.mark.parametrize(
    "form", [TEXT, JSONB, BSON, DOCUMENT, PORTABLE], ids=["text", "jsonb", "bson", "doc", "portable"]
)
def test_the_longest_integers_are_those_that_python_prints(form: Form) -> None:
    longest = 10**4300 - 1
    for value in (longest, -longest):
        assert form.decode(form.encode([value])) == [value]
    for value in (longest + 1, -longest - 1):
        for content in ([value], [{value}], {"n": IntLike(value)}):
            with pytest.raises(InvalidEntryError, match="more than 4,300 digits"):
                form.encode(content)


class IntLike(int):
    """An integer of another type."""


@pytest.mark.parametrize("other", [(), (1,), ("a", "b")], ids=["alone", "with one", "with two"])
@pytest.mark.parametrize("kind", [frozenset, tuple], ids=["sets", "sets in tuples"])
def test_sets_in_sets_are_encoded_in_bounded_time(kind: Any, other: tuple[Any, ...]) -> None:
    nested: Any = frozenset({"the bottom"})
    for _ in range(40):
        nested = frozenset({kind([nested]), *other})
    began = process_time()
    for form in (TEXT, BSON):
        assert same(form.decode(form.encode(nested)), as_lists(nested))
    assert process_time() - began < 2, "not twice as long with each level"
    for _ in range(10_000):
        nested = frozenset({kind([nested]), *other})
    with pytest.raises(InvalidEntryError, match="nested"):
        TEXT.encode(nested)


def as_lists(nested: Any) -> Any:
    """Members sorted by their JSON text, as documented."""
    if not isinstance(nested, (frozenset, tuple)):
        return nested
    members = [as_lists(member) for member in nested]
    return sorted(members, key=json.dumps) if isinstance(nested, frozenset) else members


def test_a_set_of_escaped_values_comes_back_equal() -> None:
    members = {"\ud800", "\\", 2**70, -0.0, frozenset({10**4200, ("~str", "\x00")})}
    for form in (TEXT, JSONB, BSON, PORTABLE):
        again = form.decode(form.encode(members))
        assert {frozenset(map(str, each)) if isinstance(each, list) else str(each) for each in again} == {
            "\ud800", "\\", str(2**70), "-0.0", frozenset({str(10**4200), "['~str', '\\x00']"})
        }  # fmt: skip
