"""What the rules of knowledge are checked with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

from firefly_memory.knowledge.store import KnowledgeStore
from firefly_memory.knowledge.types import StoredChunk
from firefly_memory.testing.checks import Memory, Subject

TEXTS = [
    "text", " a ", "a\x00b", "\x00a", "\ud800 half", "\udfff", "\ud83d\ude00", "\U0001f600", "e\u0301", "é", "漢字", "ไทย",
    "\u2028\ufeff\x7f!", "\\u0000", "\\", "\\\x00\\", '"quoted"', "line\nbreak\ttab", "\x1b\x10", "\x100", "%s $1 ? :name {}",
    "NULL", "null", "{}", "'; DROP TABLE memory_chunks; --", "שלום עולם", "مرحبا", "!?", "word " * 3_000,
]  # fmt: skip

NAMES = [
    "a/b", "a_b", "a\\b", "a%b", "a*b", "a?b", "a.b", "a b", "a-b", "ab", "AB", "Ab", "a", "../a", "~", "é", "e\u0301", "ß",
    "SS", "ss", "İ", "i", "I", "ı", "Ａ", " a", "a\n", "a\x00", "\ud800", "\x10", "\x100", "'", '"', "$where", "{}", "漢",
]  # fmt: skip

INSTANT = datetime(2024, 2, 29, 23, 59, 59, 999_999, timezone(timedelta(hours=5, minutes=45)))

OPERATORS = [
    "alpha AND gamma", "alpha OR gamma", "NOT alpha", "alpha NOT beta", "alpha NEAR gamma", "NEAR(alpha beta, 2)", "alpha*",
    "alph*", "^alpha", "alpha + beta", "words:alpha", "words : alpha", "{words searchable} : alpha", "- words : alpha",
    '"alpha', '"alpha beta"', '""', '"', "alpha^2", "(alpha", "alpha)", "()", "-alpha", "+alpha", "NULL", "*",
    "alpha & beta", "alpha | gamma", "!alpha", "alpha:*", "alpha:AB", "alpha <-> beta", "alpha <2> beta", "&", "|", "!", "<->",
    "'alpha'", "'", "''", "\\'", "alpha or", "%", "_", "%alpha%", "al_ha", "alpha\\", "\\", "\\%", "[a-z]+", "[", "al[p]ha", ".*",
    "al.ha", "^", "$", "^alpha$", "(?i)ALPHA", "alpha|gamma", "a{2}", "(", "alpha\\b", "\\d", "\\Qalpha\\E", "/alpha/i",
    "$where", "$regex", '{"$ne": 1}', '{"$gt": ""}', "$text", '-"alpha beta"', "alpha $or beta", "\x00", "alpha\x00", "\ud800",
    "alpha\ud800beta", ":name", "%s", "%(name)s", "$1", "?", "'; DROP TABLE memory_chunks; --", "--", "/*", "{alpha,beta}",
    '{"alpha"}', "{NULL}", "rowid", "words", "rank", "memory_chunks_words",
]  # fmt: skip
"""What means something to FTS5, ``tsquery``, ``LIKE``, regular expressions, MongoDB, arrays, or parameters of SQL."""


def somebody() -> str:
    return f"person {uuid4().hex}"


@asynccontextmanager
async def chunks_in(subject: Subject, space: str = "") -> AsyncIterator[Memory]:
    """The chunks of a space of this run's own, deleted at the end."""
    knowledge = subject.memory(KnowledgeStore, space=f"{space}{uuid4().hex}", embedder=None)
    try:
        yield knowledge
    finally:
        with suppress(Exception):  # a check may have failed because of the store
            while names := await knowledge.collections():
                for name in names:
                    await knowledge.delete(name)


async def listed(knowledge: Memory, collection: str, limit: int = 100) -> list[StoredChunk]:
    """The chunks of a collection, read page by page."""
    chunks: list[StoredChunk] = []
    after = None
    while True:
        page = await knowledge.list(collection, limit, after)
        chunks += page
        after = page.next
        if after is None:
            return chunks


async def texts_in(knowledge: Memory, collection: str) -> list[str]:
    return [each.text for each in await listed(knowledge, collection)]


async def found_in(knowledge: Memory, collection: str, question: str, mode: str = "text", **options: Any) -> list[str]:
    """The texts of the hits, best first."""
    return [hit.text for hit in await knowledge.search(collection, question, 1_000, mode, **options)]
