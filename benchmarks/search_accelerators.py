"""How fast, and how exact, a search by meaning is with pgvector: `python -m benchmarks.search_accelerators`.

The vectors are those of many subjects, each with some noise, as the vectors of texts are: uniform noise would have no
neighbours worth finding. *Recall* is the part of the ten nearest vectors that the index finds. Times are medians in
milliseconds, of blocking calls in a warm process. Hits are compared with those of the exact search.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg

from benchmarks.search_texts import Language
from firefly_memory import PostgreSQLStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.rows import row_of, scope_of
from firefly_memory.search import searching
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.search.fusion import DEPTH
from firefly_memory.search.signatures import signature_bytes, vector_bytes
from firefly_memory.service import enable_accelerator
from tests.support.servers import EmbeddedPostgreSQL

_DIMENSIONS = 256
_OF_A_SUBJECT = 500
_NOISE = 0.5
_QUESTIONS = 100
_COMPARED = 10
_AT_ONCE = 10_000
_SETTINGS = {"maintenance_work_mem": "2GB", "shared_buffers": "2GB", "max_wal_size": "8GB"}

LIMIT = 30.0
LEAST_RECALL = 0.95

_COLUMNS = (
    "id, space, collection, owner, source, text, said_at, created_at, scope, who, group_id, position, searchable, "
    "words, newest"
)


class Subjects(StaticEmbedder):
    """Makes vectors of subjects. A question is the number of a vector."""

    name = "subjects"
    dimensions = _DIMENSIONS

    def __init__(self, size: int) -> None:
        self._random = np.random.default_rng(1911)
        self._centres = self._random.standard_normal((max(20, size // _OF_A_SUBJECT), _DIMENSIONS))
        self.questions = self.vectors(_QUESTIONS)

    def vectors(self, count: int) -> Any:
        noise = self._random.standard_normal((count, _DIMENSIONS)) * _NOISE
        return (self._centres[self._random.integers(0, len(self._centres), count)] + noise).astype("<f4")

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [self.questions[int(text.split()[-1])] for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return self.embed([" ".join(text for text, _ in pieces)])[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_accelerators", description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="chunks with vectors")
    size = parser.parse_args().size
    with ExitStack() as running:
        server = EmbeddedPostgreSQL(password=None, small_disk=False, **_SETTINGS)
        running.callback(server.remove)
        server.start()
        store = running.enter_context(PostgreSQLStore(server.url))
        for line in _measured(store, server.url, size):
            print(line, flush=True)


def _measured(store: PostgreSQLStore, url: str, size: int) -> Iterator[str]:
    embedder = Subjects(size)
    knowledge = KnowledgeStore(store, embedder=embedder)
    knowledge.add("vectors", "The first chunk says which language the words are of: 0")
    with psycopg.connect(url, autocommit=True) as connection:
        began = time.perf_counter()
        exact = _Exact(embedder)
        for some in _filled(connection, embedder, size):
            exact.add(*some)
        yield f"{size:,} chunks of {_DIMENSIONS} dimensions were written in {time.perf_counter() - began:.0f} s"
        connection.execute("VACUUM ANALYZE")
        began = time.perf_counter()
        enable_accelerator(store, "pgvector", embedder=embedder)
        yield f"pgvector was enabled in {time.perf_counter() - began:.0f} s"
        sizes = "SELECT pg_size_pretty(pg_relation_size(indexrelid)) FROM pg_index JOIN pg_class ON oid = indexrelid"
        (row,) = connection.execute(f"{sizes} WHERE relname LIKE 'idx_chunks_vector%'".encode()).fetchall()
        yield f"its index has {row[0]}"
        connection.execute("VACUUM ANALYZE")
    found = [_nearest(store, embedder, number) for number in range(_QUESTIONS)]
    recall = statistics.mean(exact.recall(number, ids) for number, ids in enumerate(found))
    yield f"recall@10 {recall:.3f}, at least {LEAST_RECALL} {'ok' if recall >= LEAST_RECALL else 'MISSED'}"
    for mode in ("semantic", "hybrid"):
        times = [_time(knowledge, number, mode) for _ in range(2) for number in range(_QUESTIONS)][_QUESTIONS:]
        median = statistics.median(times)
        verdict = "" if mode != "semantic" else f", at most {LIMIT:g} {'ok' if median <= LIMIT else 'MISSED'}"
        yield f"{mode} over {size:,}: {median:.1f} ms, the slowest of {_QUESTIONS} {max(times):.1f} ms{verdict}"
    common = statistics.mean(_in_common(knowledge, number) for number in range(_COMPARED))
    yield f"{common:.2f} of 10 hits are those of the exact search"


class _Exact:
    """The ten nearest vectors of each question, found by comparing all of them."""

    def __init__(self, embedder: Subjects) -> None:
        self._questions = _of_length_one(embedder.questions)
        self._best: list[list[tuple[float, str]]] = [[] for _ in range(_QUESTIONS)]

    def add(self, ids: Sequence[str], vectors: Any) -> None:
        cosines = self._questions @ _of_length_one(vectors).T
        for number, row in enumerate(cosines):
            near = np.argpartition(-row, min(10, len(row) - 1))[:10]
            self._best[number] = sorted([*self._best[number], *((float(row[n]), ids[n]) for n in near)])[-10:]

    def recall(self, number: int, found: Sequence[str]) -> float:
        return len({name for _, name in self._best[number]}.intersection(found)) / 10


def _of_length_one(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _filled(connection: Any, embedder: Subjects, size: int) -> Iterator[tuple[list[str], Any]]:
    """Write chunks and vectors as the store does, faster: what was written, page by page."""
    language, now = Language(), datetime.now(UTC)
    for first in range(0, size, _AT_ONCE):
        count = min(_AT_ONCE, size - first)
        rows = [
            row_of(
                replace(language.chunk(number), text=f"{language.text()} {number}"),
                space="",
                collection="vectors",
                owner=None,
                source=None,
                position=number % 20,
                created_at=now,
                language="english",
            )
            for number in range(first, first + count)
        ]
        vectors = embedder.vectors(count)
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY firefly_memory.memory_chunks ({_COLUMNS}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row([_column(row, name) for name in _COLUMNS.split(", ")])
            with cursor.copy("COPY firefly_memory.memory_chunks_vectors (id, embedder, vector) FROM STDIN") as copy:
                for row, vector in zip(rows, vectors, strict=True):
                    copy.write_row((row.id, embedder.name, vector_bytes(vector)))
            signatures = "COPY firefly_memory.memory_chunks_signatures (scope, embedder, id, signature) FROM STDIN"
            with cursor.copy(signatures) as copy:
                for row, vector in zip(rows, vectors, strict=True):
                    copy.write_row((row.scope, embedder.name, row.id, signature_bytes(vector)))
        yield [row.id for row in rows], vectors


def _column(row: Any, name: str) -> Any:
    value = getattr(row, name)
    return list(value) if name == "words" else value


def _nearest(store: PostgreSQLStore, embedder: Subjects, number: int) -> Sequence[str]:
    index = store.blocking.log(KNOWLEDGE_LOG).index
    vector = vector_bytes(embedder.questions[number])
    found = run_without_loop(index.nearest([scope_of("", "vectors", None)], embedder.name, vector, DEPTH))
    assert found is not None
    return found.ids


def _time(knowledge: KnowledgeStore, number: int, mode: Any) -> float:
    began = time.perf_counter()
    knowledge.search("vectors", _question(number), 10, mode)
    return (time.perf_counter() - began) * 1_000


_LANGUAGE = Language(seed=7)
_QUESTION = [_LANGUAGE.question() for _ in range(_QUESTIONS)]


def _question(number: int) -> str:
    return f"{_QUESTION[number]} {number}"


def _in_common(knowledge: KnowledgeStore, number: int) -> float:
    near = knowledge.search("vectors", _question(number), 10, "semantic")
    with patch.object(searching, "LARGEST_SCOPE", 10**9):
        exact = knowledge.search("vectors", _question(number), 10, "semantic")
    return float(len({hit.id for hit in near} & {hit.id for hit in exact}))


if __name__ == "__main__":
    main()
