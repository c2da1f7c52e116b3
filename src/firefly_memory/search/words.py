"""The words of a text, as the index has them and as a question asks for them.

A word is a run of letters, digits and their marks, without case and stemmed, so that ``Moved`` and ``moving`` are one
word, and ``went`` and ``go`` are one. A symbol such as an emoji is a word of its own. Runs of scripts without spaces
between words, such as Chinese, Japanese and Thai, are cut into pieces of one to three characters. Nothing else is left:
a word is never a part of a query language, whatever the text was.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from firefly_memory.search.irregular import IRREGULAR
from firefly_memory.search.kept import Kept
from firefly_memory.search.languages import UNSTEMMED, stop_words
from firefly_memory.search.searchable import folded

FORM = 2
"""The number of these rules. An index of words with another number has to be made again."""

LONGEST_WORD = 64
"""Characters of a word that count."""


LONGEST_QUESTION = 256
"""Words of a question that count, stop words left aside. A database has to count the documents of each."""


class Piece(NamedTuple):
    """A word of a question, or a run of a script without spaces."""

    text: str
    """As it is in the question."""
    words: tuple[str, ...]
    """As the index has them."""


def index_words(text: str, language: str) -> list[str]:
    """The words of a document in their order, each as often as it is there."""
    return words_of_folded(folded(text), language)


def words_of_folded(text: str, language: str) -> list[str]:
    """:func:`index_words` of a text that is folded already."""
    stems = _stems(language)
    if text.isascii():
        return list(map(stems.__getitem__, text.translate(_KINDS).split()))
    found: list[str] = []
    for part in _parts(text):
        if _is_unspaced(part):
            found.extend(_pieces(part, 1))
        else:
            found.append(stems[part])
    return found


def question_words(text: str, language: str) -> list[str]:
    """The words that a question asks for, each once, up to :data:`LONGEST_QUESTION`.

    Stop words are left out unless there is nothing else.
    """
    every: dict[str, None] = {}
    kept: dict[str, None] = {}
    left_out = stop_words(language)
    for part in _parts(folded(text)):
        for word in _asked_words(part, language):
            every[word] = None
            if part not in left_out:
                kept[word] = None
            if len(kept) == LONGEST_QUESTION:
                return list(kept)
    return list(kept or every)


def question_pieces(text: str, language: str) -> list[Piece]:
    """A question piece by piece, without stop words unless there is nothing else. Case counts for some embedders, so it
    stays."""
    left_out = stop_words(language)
    runs = text.translate(_KINDS).split()
    chosen = islice((run for run in runs if folded(run) not in left_out), LONGEST_QUESTION)
    return [Piece(run, tuple(question_words(run, language))) for run in list(chosen) or runs[:LONGEST_QUESTION]]


def _asked_words(part: str, language: str) -> Iterator[str]:
    if _is_unspaced(part):
        yield from _pieces(part, min(len(part), 2))
    else:
        yield _stems(language)[part]


def _parts(text: str) -> Iterator[str]:
    """The words of scripts with spaces, and whole runs of scripts without, of a text that is folded."""
    for run in text.translate(_KINDS).split():
        if run.isascii():
            yield run
        else:
            yield from filter(None, _UNSPACED.split(run))


def _is_unspaced(part: str) -> bool:
    return _UNSPACED.match(part) is not None


def _pieces(run: str, shortest: int) -> Iterator[str]:
    for length in range(shortest, 4):
        for start in range(len(run) - length + 1):
            yield run[start : start + length]


class _Kinds(dict[int, int | str]):
    """What becomes of each character, looked up once: it stays, it is a word of its own, or it separates words."""

    def __missing__(self, code: int) -> int | str:
        kind = self[code] = _kind(code)
        return kind


def _kind(code: int) -> int | str:
    character = chr(code)
    category = unicodedata.category(character)
    if category == "So" and character != "\N{REPLACEMENT CHARACTER}":
        return f" {character} "
    if category in {"Cf", "Me"} or _VARIATION.match(character):  # joiners, marks of direction, keycaps
        return " " if character == "\N{ZERO WIDTH SPACE}" else ""
    return code if category[0] in "LNM" else " "


_KINDS = _Kinds()
_VARIATION = re.compile("[\ufe00-\ufe0f\u180b-\u180d\U000e0100-\U000e01ef]")

_UNSPACED = re.compile(
    "(["
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\uaa60-\uaa7f\u1780-\u17ff"  # Burmese, Khmer
    "]+)"
)


_CHANGED_IN_ENGLISH = re.compile(
    "(?:e|[^us]s|ous|ness|[^aeiou]y|li|iti|nci|ogi|al|ful|ll|ed|ing|ic|ism|ion|er|ator|ogist|ant|ent)$"
)
"""Every ending that a rule of English takes away or replaces. A word without any is its own stem: more than a third of
the words of English texts, and most numbers and foreign words. The stemmer takes fifty times as long to tell it."""


class _Stemmers(threading.local):
    """A stemmer keeps the word that it works on, so each thread has its own."""

    def __init__(self) -> None:
        self.by_language: dict[str, Any] = {}


_stemmers = _Stemmers()


@cache
def _stems(language: str) -> Kept[str]:
    """The stem of each word in a language."""
    return Kept(partial(_stem, language), LONGEST_WORD)


def _stem(language: str, run: str) -> str:
    word = run[:LONGEST_WORD]
    if language == UNSTEMMED:
        return word
    is_its_own = language == "english" and not _CHANGED_IN_ENGLISH.search(word)
    stem = word if is_its_own else _regular_stem(language, word)
    return _irregular_stems(language).get(stem, stem)


@cache
def _irregular_stems(language: str) -> dict[str, str]:
    """The stem of each irregular form, with the stem of its word."""
    stems = [
        [_regular_stem(language, form) for form in line.split()] for line in IRREGULAR.get(language, "").split(";")
    ]
    return {stem: word for word, *forms in filter(None, stems) for stem in forms}


def _regular_stem(language: str, word: str) -> str:
    stemmer = _stemmers.by_language.get(language)
    if stemmer is None:
        # Not snowballstemmer.stemmer(): with PyStemmer installed it is another version of the algorithms.
        module = import_module(f"snowballstemmer.{language}_stemmer")
        stemmer = _stemmers.by_language[language] = getattr(module, f"{language.capitalize()}Stemmer")()
    stemmed: str = stemmer.stemWord(word)
    return stemmed or word
