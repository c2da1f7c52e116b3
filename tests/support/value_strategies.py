"""Hypothesis strategies for what a user may store."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

any_text = st.text(st.characters(exclude_categories=()))  # surrogates and U+0000 included
integers = st.integers() | st.integers(-(2**80), 2**80)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | integers | floats | any_text
awkward_keys = any_text | st.sampled_from(["", ".", "$", "$ref", "~", "~str", "~order", "~dict", "a.b", "_id", "\x00"])
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(awkward_keys, inner, max_size=5), max_leaves=20
)
names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=20)
