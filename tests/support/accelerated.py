"""PostgreSQL servers that have the extensions of accelerators, and stores of knowledge on them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from firefly_memory import PostgreSQLStore
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.search import searching
from firefly_memory.search.embedders.adapters import CallableEmbedder
from tests.support.databases import empty_postgresql
from tests.support.knowledge_stores import Letters
from tests.support.servers import EmbeddedPostgreSQL, Server

COLUMN = "vector_7ad8dbe5"
"""That of the embedder ``letters``."""

_UNPACKED = Path(__file__).parents[2] / ".cache" / "postgresql"  # see scripts/postgresql


class DebianPostgreSQL(Server):
    """PostgreSQL as Debian packages it, with pg_trgm and without pgvector. Runs as a user of its own for root."""

    user = "nobody" if os.getuid() == 0 else None

    def __init__(self) -> None:
        super().__init__()
        self.bin = _binaries()
        if _UNPACKED in self.bin.parents:
            libraries = sorted({str(library.parent) for library in _UNPACKED.rglob("*.so*")})
            self.environment = {"LD_LIBRARY_PATH": ":".join(libraries)}
        data = self.directory / "data"
        data.mkdir()
        self.directory.chmod(0o755)
        if self.user is not None:
            shutil.chown(data, self.user)
        subprocess.run(
            [str(self.bin / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale", "C"],
            check=True,
            capture_output=True,
            user=self.user,
            cwd="/",
            env={**os.environ, **self.environment},
        )

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self.bin / "postgres"), "-D", str(self.directory / "data"), "-p", str(self.port), *options]

    def ask(self) -> None:
        psycopg.connect(self.url, connect_timeout=2).close()


def _binaries() -> Path:
    places = [Path("/usr/lib/postgresql"), _UNPACKED / "usr" / "lib" / "postgresql"]
    found = [binary.parent for place in places for binary in sorted(place.glob("*/bin/postgres"))]
    if not found:
        raise RuntimeError("there is no PostgreSQL of Debian here; `make setup` gets it")
    return found[-1]


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A server for a test module."""
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module")
def wheel() -> Iterator[EmbeddedPostgreSQL]:
    """The wheel's server, which has pgvector."""
    server = EmbeddedPostgreSQL()
    with running(server):
        yield server


@pytest.fixture(scope="module")
def debian() -> Iterator[DebianPostgreSQL]:
    """Debian's server, which has pg_trgm."""
    server = DebianPostgreSQL()
    with running(server):
        yield server


@pytest.fixture
def url(wheel: EmbeddedPostgreSQL) -> Iterator[str]:
    """The URL of an empty database of the test's own, which may have pgvector."""
    with empty_postgresql(wheel.url) as url:
        yield url


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """So that a few documents are too many for an exact search."""
    monkeypatch.setattr(searching, "LARGEST_SCOPE", 20)
    return 20


def texts(count: int, seed: int = 1) -> list[str]:
    """Texts in which letters differ in their numbers."""
    random = Random(seed)
    return [f"{''.join(random.choices('abcdefghij', k=12))} {number}" for number in range(count)]


@contextmanager
def knowledge_in(url: str, count: int = 60, **options: Any) -> Iterator[tuple[PostgreSQLStore, KnowledgeStore]]:
    """A store with chunks that have vectors of the embedder ``letters``."""
    with PostgreSQLStore(url, **options) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.add("notes", texts(count))
        yield store, knowledge


def found(knowledge: KnowledgeStore, question: str = "abcabc", top_k: int = 10) -> list[tuple[str, float]]:
    """The hits by meaning."""
    return [(hit.text, round(hit.score, 3)) for hit in knowledge.search("notes", question, top_k, "semantic")]


def of_numbers(vectors: Callable[[str], Sequence[float]], dimensions: int, name: str = "numbers") -> CallableEmbedder:
    """An embedder that has the vectors of a function."""
    return CallableEmbedder(lambda texts: [list(vectors(text)) for text in texts], name=name, dimensions=dimensions)
