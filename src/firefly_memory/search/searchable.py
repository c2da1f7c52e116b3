"""Texts as they are searched: one normal form for what is stored and for what is asked."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, date, datetime
from typing import Any

from firefly_memory.search.languages import month_name


def searchable(text: str) -> str:
    """The form in which texts are compared: NFKC, without case, and runs of white space, ``_`` and ``-`` as one space.

    Every database can store it: NUL and lone surrogates become U+FFFD. It takes time in proportion to the text.
    """
    return with_single_spaces(folded(text))


def with_single_spaces(text: str) -> str:
    """A folded text, as it is compared."""
    return " ".join(text.replace("_", " ").replace("-", " ").split())


def folded(text: str) -> str:
    """``text`` normalized by NFKC and without case."""
    if text.isascii():
        return text.lower().replace("\0", _REPLACEMENT)
    storable = _NOT_STORABLE.sub(_REPLACEMENT, text)
    decomposed = unicodedata.normalize("NFD", _with_short_runs_of_marks(storable))
    once = unicodedata.normalize("NFKC", decomposed.casefold())
    return unicodedata.normalize("NFKC", once.casefold()).replace("i\N{COMBINING DOT ABOVE}", "i")  # of a Turkish İ


def value_text(value: Any) -> str:
    """A JSON value as it is searched: a string as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def document_text(text: str, who: str | None = None) -> str:
    """A document as people read it and as it is embedded: ``who: text``."""
    return f"{who}: {text}" if who else text


def indexed_text(text: str, who: str | None = None, at: date | None = None, language: str = "english") -> str:
    """What the index of words is made of: the document with its date written out, ``8 May 2023 Anna: I moved``.

    A question with the date or the name then finds it. An instant counts by its date in UTC.
    """
    document = document_text(text, who)
    if at is None:
        return document
    day = at.astimezone(UTC).date() if isinstance(at, datetime) and at.tzinfo is not None else at
    return f"{day.day} {month_name(day.month, language)} {day.year} {document}"


_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NOT_STORABLE = re.compile(r"[\0\ud800-\udfff]")

_MARKS_IN_A_RUN = 30
"""As many as Unicode's stream-safe format has. No language needs more, and the time of ``unicodedata.normalize`` grows
with the square of such a run."""


def _with_short_runs_of_marks(text: str) -> str:
    marks = "".join(sorted(each for each in set(text) if unicodedata.combining(each)))
    if not marks:
        return text
    return re.sub(rf"([{re.escape(marks)}]{{{_MARKS_IN_A_RUN}}})[{re.escape(marks)}]+", r"\1", text)
