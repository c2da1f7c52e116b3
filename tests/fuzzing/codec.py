"""Stored documents that were bent, and values of any kind: the codec refuses them in its own words, or is right."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from firefly_memory.codec import BSON, DOCUMENT, JSONB, PORTABLE, TEXT, DecodeError, Form
from firefly_memory.errors import InvalidEntryError
from firefly_memory.testing.rules.values import same
from tests.fuzzing.limits import bounded
from tests.fuzzing.mutations import bent, bent_bytes, odd_values
from tests.support.backends import Place
from tests.support.value_strategies import json_values

FORMS = {"text": TEXT, "jsonb": JSONB, "document": DOCUMENT, "bson": BSON, "portable": PORTABLE}


class _Colour(enum.Enum):
    RED = "red"


_values = (
    json_values
    | odd_values
    | st.recursive(
        st.sampled_from(
            [b"x", Decimal("NaN"), Fraction(1, 3), UUID(int=1), _Colour.RED, object(), int, 1j, float("nan")]
        )
        | st.datetimes()
        | st.dates()
        | st.times()
        | st.timedeltas()
        | st.binary(max_size=4)
        | st.decimals(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
            | st.tuples(inner)
            | st.frozensets(st.text(max_size=3), max_size=3)
        ),
        max_leaves=8,
    )
)


@contextmanager
def bodies(_: Place, backends: Collection[str] | None = None) -> Iterator[dict[str, Callable[[st.DataObject], None]]]:
    yield {name: _body(form) for name, form in FORMS.items() if not backends or name in backends}


def _body(form: Form) -> Callable[[st.DataObject], None]:
    def body(data: st.DataObject) -> None:
        with bounded():
            if data.draw(st.booleans()):
                _encode(form, data.draw(_values))
            else:
                _decode(form, data)

    return body


def _encode(form: Form, value: Any) -> None:
    try:
        stored = form.encode(value)
    except InvalidEntryError as error:
        str(error)
        return
    restored = form.decode(stored)
    again = form.decode(form.encode(restored))
    assert same(restored, again), "a value that came back is another one when it is stored again"


def _decode(form: Form, data: st.DataObject) -> None:
    stored = form.encode(data.draw(json_values))
    if isinstance(stored, str):
        changed: Any = bent_bytes(data.draw, stored.encode()).decode("utf-8", "replace")
    else:
        changed = bent(data.draw, [stored])
    try:
        restored = form.decode(changed)
    except DecodeError:
        return
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RecursionError):
        return  # what every reader of rows takes for damage
    with suppress(InvalidEntryError):  # deeper, or longer, than what may be saved
        assert same(form.decode(form.encode(restored)), restored), "what was read is another value when it is saved"
