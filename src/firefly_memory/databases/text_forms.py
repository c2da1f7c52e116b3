"""How a text may be written where it is stored, so that it is found there."""

from __future__ import annotations

import json

from firefly_memory.identifiers import stored_text


def forms_of(text: str) -> tuple[str, ...]:
    """The text, its stored form, and both inside of JSON, with and without escapes beyond ASCII."""
    forms: dict[str, None] = {}
    for each in (text, stored_text(text)):
        as_json = [json.dumps(each, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
        forms |= dict.fromkeys((each, *as_json))
    return tuple(forms)
