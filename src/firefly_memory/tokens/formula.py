"""The formula that estimates the tokens of a text without a vocabulary.

The formula reads the text as bytes, in a few passes that all run in C. It counts words, the long words of languages
other than English, digits, punctuation and the characters of each script, and multiplies each count by a rate. The
rates were fitted to o200k_base and cl100k_base on some 2,000 texts in 70 languages and 35 kinds of code and data. The
fit weighs an estimate that is too low eight times as much as one that is too high. ``docs/tokens.md`` lists the errors
on texts that were not part of the fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Rates:
    """The rates of the formula that differ between vocabularies."""

    six_letters: float
    """Tokens for each six letters in a row, unless the text is English."""
    by_kind: tuple[tuple[bytes, float], ...]
    """Tokens for each character of these kinds."""


# The first byte of a character's UTF-8 decides its kind. Three scripts need two bytes to be recognised: the two bytes
# are replaced by one byte that UTF-8 does not use.
_TWO_BYTE_SCRIPTS = (
    (b"\xe1\xba", b"\xf8"),  # Vietnamese
    (b"\xe1\xbb", b"\xf8"),
    (b"\xe0\xa4", b"\xf9"),  # Devanagari
    (b"\xe0\xa5", b"\xf9"),
    (b"\xe0\xb8", b"\xfa"),  # Thai
    (b"\xe0\xb9", b"\xfa"),
)
_CONTINUATION = bytes(range(0x80, 0xC0))

_LETTERS_AND_DIGITS = (
    (0x30, 0x39, b"0"),
    (0x41, 0x5A, b"A"),
    (0x61, 0x7A, b"a"),
    (0x0A, 0x0A, b"n"),
    (0x20, 0x20, b" "),
)

_SCRIPTS = (  # first and last byte, kind, tokens of a character in o200k_base and in cl100k_base
    (0xC2, 0xC2, b"s", 1.0, 1.2),  # signs of Latin-1
    (0xC3, 0xCB, b"l", 0.55, 1.3),  # Latin: é ł ş; added to the word that contains the letter
    (0xCC, 0xCC, b"s", 1.0, 1.2),  # accents as separate characters
    (0xCD, 0xCF, b"g", 0.46, 1.1),  # Greek
    (0xD0, 0xD3, b"c", 0.43, 0.78),  # Cyrillic
    (0xD4, 0xD6, b"i", 0.62, 2.1),  # Armenian
    (0xD7, 0xD7, b"h", 0.5, 1.2),  # Hebrew
    (0xD8, 0xDB, b"r", 0.43, 0.92),  # Arabic
    (0xDC, 0xE1, b"i", 0.62, 2.1),  # the scripts of India and its neighbours, Georgian, Ethiopic
    (0xE2, 0xE2, b"s", 1.0, 1.2),  # signs: quotation marks, dashes, arrows, boxes
    (0xE3, 0xE3, b"j", 0.75, 1.1),  # Japanese syllables, the punctuation of East Asia
    (0xE4, 0xE9, b"z", 0.9, 1.27),  # Chinese characters
    (0xEA, 0xED, b"k", 0.85, 1.4),  # Korean
    (0xEE, 0xEF, b"s", 1.0, 1.2),  # the wide forms of ASCII
    (0xF0, 0xF7, b"e", 1.8, 3.1),  # emoji
    (0xF8, 0xF8, b"l", 0.55, 1.3),
    (0xF9, 0xF9, b"d", 0.44, 1.25),
    (0xFA, 0xFA, b"t", 0.44, 1.0),
)

_kinds = bytearray(b"." * 256)  # . is punctuation
for _first, _last, _kind, *_ in (*_LETTERS_AND_DIGITS, *_SCRIPTS):
    _kinds[_first : _last + 1] = _kind * (_last + 1 - _first)
_KIND_OF_BYTE = bytes(_kinds)
_RUN_OF_KIND = bytes(ord("a") if kind in b"aAl" else kind if kind == ord("0") else ord(" ") for kind in range(256))

_O200K = Rates(0.9, tuple({kind: rate for _, _, kind, rate, _ in _SCRIPTS}.items()))
_CL100K = Rates(1.5, tuple({kind: rate for _, _, kind, _, rate in _SCRIPTS}.items()))

# These words are a seventh of the words of an English text. A long English word is one token; a long word of another
# language is several.
_ENGLISH = (" the ", " of ", " and ", " to ", " you ", " that ")
_ENGLISH_SHARE = 0.09

_OLDER_MODELS = re.compile(r"(?:^|[:/])(?:gpt-(?:4|3\.?5)(?![.\do])|gpt-?2|text-|code-|davinci|babbage)")


def rates_for(encoding_name: str | None, model: str | None) -> Rates:
    """The rates of o200k_base, or those of older vocabularies, which split most scripts into more tokens."""
    if encoding_name is not None:
        is_older = not encoding_name.startswith("o200k")
    else:
        is_older = model is not None and _OLDER_MODELS.search(model.lower()) is not None
    return _CL100K if is_older else _O200K


def estimated(text: str, tokens_per_word: float, rates: Rates) -> int:
    """The estimated tokens of ``text``; at least 1."""
    data = text.encode("utf-8", "surrogatepass")
    is_ascii = len(data) == len(text)
    kinds = _kinds_of_characters(data, is_ascii)
    runs = kinds.translate(_RUN_OF_KIND)
    words = runs.count(b" a") + runs.count(b"0a") + runs.startswith(b"a")
    numbers = runs.count(b" 0") + runs.count(b"a0") + runs.startswith(b"0")
    tokens = (
        tokens_per_word * words
        + 1.8 * numbers
        + runs.count(b"000")
        + 1.5 * kinds.count(b" 0")
        + 0.3 * kinds.count(b".")
        + 1.2 * (kinds.count(b"n") - kinds.count(b"nn"))
        + 0.13 * kinds.count(b"  ")
    )
    if sixes := runs.count(b"aaaaaa"):
        english = min(1, sum(map(text.count, _ENGLISH)) / (_ENGLISH_SHARE * words))
        tokens += (1 - english) * (rates.six_letters * sixes + 3 * runs.count(b"a" * 12))
        tokens += 1.6 * runs.count(b"a" * 16)  # in every language longer than a word
    if not is_ascii:
        tokens += sum(rate * kinds.count(kind) for kind, rate in rates.by_kind)
    return max(1, ceil(tokens))


def _kinds_of_characters(data: bytes, is_ascii: bool) -> bytes:
    """One byte for each character: its kind. Long rulers and runs of spaces or empty lines count once."""
    if not is_ascii:
        for two_bytes, one_byte in _TWO_BYTE_SCRIPTS:
            data = data.replace(two_bytes, one_byte)
    kinds = data.translate(_KIND_OF_BYTE, _CONTINUATION)
    kinds = kinds.replace(b"aA", b"a_A")  # camelCase is two words
    for ruler in (b"." * 16, b" " * 16, b"nnnn"):
        kinds = kinds.replace(ruler, ruler[:1])
    return kinds
