"""The kind of a text: whether it asks, and whether it names a number, a time, or a person or place.

The kinds are one word of the index. A text that asks counts less than its answer, and "how many" is answered by a
number. A change of these rules raises :data:`~firefly_memory.search.words.FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from firefly_memory.search.words import index_words

ASKS, NUMBER, TIME, NAME = "antp"
_KINDS = "_is_"
"""No text contains a word that begins so, and the word of no scope does."""


class _Language(NamedTuple):
    numbers: str
    times: str
    asked: dict[str, str]
    """What a question has that asks for a kind, as a regular expression."""


_LANGUAGES = {
    "english": _Language(
        numbers="""
            two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
            eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half dozen
            once twice
        """,
        times="""
            January February March April June July August September October November December Monday Tuesday Wednesday
            Thursday Friday Saturday Sunday spring summer autumn winter Christmas Easter today tomorrow tonight
            yesterday minute hour day week weekend month year morning noon afternoon evening night midnight first third
            fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth
            seventeenth eighteenth nineteenth twentieth thirtieth
        """,
        asked={
            NUMBER: "how (many|much|long|old|often|far|high|tall|deep|heavy|big|large|fast|late|early)",
            TIME: "when|(what|which) (date|day|time|month|year|season)|how (long|often|late|early)",
            NAME: "who|whom|whose|where|name|named|called",
        },
    )
}
"""Other languages have no such list: for their texts it is only known whether they ask."""


def kinds_of(text: str, words: Iterable[str], language: str) -> list[str]:
    """The word for the kinds of a text that has these words of the index; none for a text of no kind."""
    found = ASKS if _ends_with_question(text) else ""
    if language in _LANGUAGES:
        numbers, times = _stems(language)
        if _DIGIT.search(text) or not numbers.isdisjoint(words):
            found += NUMBER + TIME  # half past three, 1999
        elif not times.isdisjoint(words):
            found += TIME
        if any(times.isdisjoint(index_words(name[0], language)) for name in _NAME.finditer(text)):
            found += NAME
    return [_KINDS + found] if found else []


def kinds_among(words: Sequence[str]) -> str:
    """The kinds of a document. Their word stands first, or behind that of the scope."""
    return next((word[len(_KINDS) :] for word in words[:2] if word.startswith(_KINDS)), "")


def kinds_asked(question: str, language: str) -> str:
    """The kinds of the texts that may answer a question."""
    kinds = _LANGUAGES[language].asked.items() if language in _LANGUAGES else ()
    return "".join(kind for kind, asked in kinds if re.search(rf"\b({asked})\b", question.lower()))


@cache
def _stems(language: str) -> tuple[frozenset[str], frozenset[str]]:
    lists = _LANGUAGES[language]
    return frozenset(index_words(lists.numbers, language)), frozenset(index_words(lists.times, language))


def _ends_with_question(text: str) -> bool:
    """Whether no letter and no digit is behind a question mark."""
    for character in reversed(text):
        if character in _QUESTION_MARKS or character.isalnum():
            return not character.isalnum()
    return False


_DIGIT = re.compile("[0-9]")
# A name inside a sentence. The capital comes first: so the letters that are none are passed over at once.
_NAME = re.compile(r"""[A-ZÀ-ÖØ-Þ](?<=[^.!?:"“\s]\s.)(?!(?<=M)ay\b)[^\W\d_A-Z]\w*""")
_QUESTION_MARKS = "?\uff1f\u061f\u037e\u2047\u2048\u2049"  # also Chinese, Arabic, Greek, and double ones
