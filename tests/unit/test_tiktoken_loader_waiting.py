"""Which callers wait for a vocabulary, and which may download it. Each test has a process of its own."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from firefly_memory.tokens import tiktoken_files
from tests.support.tiktoken_process import Ended, Process, assert_short, connections, proxy
from tests.support.tiktoken_vocabularies import cached_as, fill_cache

FOR_EVER = threading.TIMEOUT_MAX
"""A time-out with which a caller that waits never comes back."""

IN_A_LOOP = """
import asyncio

async def beats_while(work):
    beats = 0
    task = asyncio.create_task(work)
    while not task.done():
        await asyncio.sleep(0)
        beats += 1
    return await task, beats
"""


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


def test_a_coroutine_does_not_wait_for_a_hanging_download(run: Process, tmp_path: Path) -> None:
    """A first turn is stored while a server that accepts and never answers is asked for the vocabulary."""
    ended = run(
        IN_A_LOOP
        + dedent("""
        import socket
        from firefly_memory import ConversationMemory

        async def main():
            memory = ConversationMemory(estimator=TokenEstimator(download=True))
            with socket.create_server(("127.0.0.1", 0)) as server:
                os.environ["HTTPS_PROXY"] = f"http://127.0.0.1:{server.getsockname()[1]}"
                first = await memory.async_add_turn("c", text, "")
                connection, _ = await asyncio.to_thread(server.accept)  # now the download hangs
                second, beats = await beats_while(memory.async_add_turn("c", text, ""))
                blocking = memory.add_turn("c", text, "")  # in a coroutine all the same
                print(*[kind_of(turn.token_estimate - 8) for turn in (first, second, blocking)], beats > 0)
                connection.close()

        asyncio.run(main())
        """),
        load_timeout=FOR_EVER,
        TIKTOKEN_CACHE_DIR=None,
        TMPDIR=str(tmp_path),
    )
    assert ended.printed == ["estimate estimate estimate True"]


def test_a_coroutine_does_not_wait_for_a_file_that_is_being_read(
    run: Process, tmp_path: Path, directory_of_vocabularies: Path
) -> None:
    name = cached_as("o200k_base")
    os.mkfifo(tmp_path / name)  # reading it hangs until somebody writes
    ended = run(
        IN_A_LOOP
        + dedent(f"""
        def write(pipe):
            with open({str(directory_of_vocabularies / name)!r}, "rb") as vocabulary, pipe:
                pipe.write(vocabulary.read())

        async def main():
            estimator = TokenEstimator()
            print(kind_of(estimator.estimate(text)))
            pipe = await asyncio.to_thread(open, {str(tmp_path / name)!r}, "wb")  # opens when the other end reads
            print(kind_of(estimator.estimate(text)))
            loaded, beats = await beats_while(asyncio.to_thread(lambda: (write(pipe), estimator.prepare())[1]))
            print(loaded, beats > 0, kind_of(estimator.estimate(text)))

        asyncio.run(main())
        """),
        load_timeout=FOR_EVER,
    )
    assert ended == Ended(["estimate", "estimate", "True True count"], [])


def test_a_coroutine_is_warned_of_a_download_that_failed(run: Process, offline: dict[str, Any]) -> None:
    ended = run(
        IN_A_LOOP
        + dedent("""
        async def main():
            estimator = TokenEstimator()
            print(kind_of(estimator.estimate(text)))
            loader, = [thread for thread in threading.enumerate() if thread.name == "firefly-memory-vocabulary"]
            await asyncio.to_thread(loader.join)
            print(kind_of(estimator.estimate(text)))

        asyncio.run(main())
        """),
        load_timeout=FOR_EVER,
        **offline,
    )
    assert ended.printed == ["estimate", "estimate"]
    assert len(ended.warnings) == 1


@pytest.mark.parametrize("directory", [None, ""])
def test_nothing_is_downloaded_unless_requested(
    run: Process, silence: socket.socket, tmp_path: Path, directory: str | None
) -> None:
    ended = run(
        """
        for estimator in (TokenEstimator(), TokenEstimator(model="gpt-4o")):
            print(kind_of(estimator.estimate(text)), estimator.prepare())
        print(TokenEstimator(encoding_name="gpt2").prepare())
        """,
        TIKTOKEN_CACHE_DIR=directory,
        TMPDIR=str(tmp_path),
        **proxy(silence),
    )
    assert ended.printed == ["estimate False", "estimate False", "False"]
    assert connections(silence) == 0
    (warning,) = ended.warnings
    assert "it is not on this machine; TokenEstimator(download=True) downloads it" in warning
    assert_short(warning)


def test_an_estimator_that_may_download_does_so_after_one_that_may_not(
    run: Process, silence: socket.socket, tmp_path: Path
) -> None:
    ended = run(
        """
        for download in (False, True, False):
            print(kind_of(TokenEstimator(download=download).estimate(text)))
        """,
        load_timeout=0.5,
        TIKTOKEN_CACHE_DIR=None,
        TMPDIR=str(tmp_path),
        **proxy(silence),
    )
    assert ended.printed == ["estimate", "estimate", "estimate"]
    assert connections(silence) == 1


def test_the_variable_for_managers_asks_for_a_download(run: Process, silence: socket.socket, tmp_path: Path) -> None:
    ended = run(
        """
        from firefly_memory import MemoryManager
        with MemoryManager.from_config() as manager:
            print(kind_of(manager.add_turn("c", text, "").token_estimate - 8))
        """,
        load_timeout=0.5,
        TIKTOKEN_CACHE_DIR=None,
        TMPDIR=str(tmp_path),
        FIREFLY_AGENTIC_MEMORY_DOWNLOAD_VOCABULARIES="true",
        **proxy(silence),
    )
    assert ended.printed == ["estimate"]
    assert connections(silence) == 1


@pytest.mark.parametrize("variable", ["DATA_GYM_CACHE_DIR", "TMPDIR"])
def test_a_vocabulary_in_tiktokens_cache_is_used_with_download_false(
    run: Process, silence: socket.socket, tmp_path: Path, variable: str
) -> None:
    directory = tmp_path / "data-gym-cache"
    directory.mkdir()
    fill_cache(directory)
    ended = run(
        "print(kind_of(TokenEstimator().estimate(text)))",
        TIKTOKEN_CACHE_DIR=None,
        **proxy(silence) | {variable: str(directory if variable == "DATA_GYM_CACHE_DIR" else tmp_path)},
    )
    assert ended == Ended(["count"], [])
    assert connections(silence) == 0


def test_a_damaged_cached_file_is_not_downloaded_with_download_false(
    run: Process, silence: socket.socket, tmp_path: Path
) -> None:
    damaged = tmp_path / "data-gym-cache" / cached_as("o200k_base")
    damaged.parent.mkdir()
    damaged.write_bytes(b"aGVsbG8= 0\n")
    ended = run(
        "print(kind_of(TokenEstimator().estimate(text)))",
        TIKTOKEN_CACHE_DIR=None,
        TMPDIR=str(tmp_path),
        **proxy(silence),
    )
    assert ended.printed == ["estimate"]
    assert connections(silence) == 0
    assert damaged.exists()


def test_the_files_of_encodings_are_those_that_tiktoken_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructors of the installed tiktoken run, up to the moment at which they read a file."""
    reads: dict[str, str | None] = {}

    def reading(url: str, expected_hash: str | None = None) -> bytes:
        reads[url] = expected_hash
        return b"\n" if url.endswith(".bpe") else b"{}" if url.endswith(".json") else b""

    monkeypatch.setattr("tiktoken.load.read_file_cached", reading)
    found = {}
    openai_public = import_module("tiktoken_ext.openai_public")
    for name, constructor in openai_public.ENCODING_CONSTRUCTORS.items():
        reads = {}
        with suppress(AssertionError):  # the files of gpt2 do not match each other
            constructor()
        found[name] = reads
    assert set(found) >= {"gpt2", "cl100k_base", "o200k_base"}
    assert {name: tiktoken_files.FILES[name] for name in found} == found
