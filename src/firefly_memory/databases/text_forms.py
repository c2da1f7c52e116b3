"""How a text may be written where it is stored."""

from __future__ import annotations

import json

from firefly_memory.identifiers import stored_text


def forms_of(text: str) -> list[str]:
    """The text as it is, as a stored name has it, and both as part of JSON, also of JSON inside JSON."""
    forms = dict.fromkeys((text, stored_text(text)))
    for _ in range(2):
        as_json = (json.dumps(each, ensure_ascii=escaped)[1:-1] for each in forms for escaped in (False, True))
        forms |= dict.fromkeys(as_json)
    return list(forms)
