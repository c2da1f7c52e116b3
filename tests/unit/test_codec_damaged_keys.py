"""Stored documents that were changed by hand: the codec reports damage and never returns another value."""

from __future__ import annotations

from typing import Any

import pytest

from firefly_memory.codec import BSON, DOCUMENT, PORTABLE, DecodeError, Form


@pytest.mark.parametrize("form", [DOCUMENT, BSON, PORTABLE], ids=["document", "bson", "portable"])
@pytest.mark.parametrize("key", [1, None, 1.5, True])
def test_a_key_that_is_not_a_text_is_damage(form: Form, key: Any) -> None:
    with pytest.raises(DecodeError, match="a key is no text"):
        form.decode({"~dict": [["$a", 1], [key, 2]]})
