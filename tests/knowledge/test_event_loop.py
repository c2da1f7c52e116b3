"""An event loop goes on while a ``KnowledgeStore`` computes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from firefly_memory import (
    InMemoryStore,
)
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.knowledge.rows import row_of
from firefly_memory.search import searching, words
from firefly_memory.search.embedders.protocol import Purpose, Vector
from firefly_memory.search.words import LONGEST_QUESTION, question_words
from tests.support.knowledge_stores import Letters, letters, of_function


class Held:
    """An embedder whose thread waits for the test."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.begun.set()
        assert self.released.wait(60)
        return [letters(text) for text in texts]


class HeldLetters(Letters):
    def __init__(self, held: Held) -> None:
        self.held = held

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.held(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return self.held(["".join(text for text, _ in pieces)])[0]


@pytest.mark.parametrize("kind", ["static", "a function"])
@pytest.mark.parametrize("operation", ["add", "search", "embed_missing"])
async def test_an_event_loop_goes_on_while_a_text_is_embedded(kind: str, operation: str) -> None:
    held = Held()
    embedder = HeldLetters(held) if kind == "static" else of_function(held)
    store = InMemoryStore()
    if operation != "add":
        await KnowledgeStore(store, embedder=Letters() if operation == "search" else None).async_add("notes", "boot")
    knowledge = KnowledgeStore(store, embedder=embedder)
    calls = {
        "add": lambda: knowledge.async_add("notes", "boot"),
        "search": lambda: knowledge.async_search("notes", "boto", mode="semantic"),
        "embed_missing": knowledge.async_embed_missing,
    }
    task = asyncio.create_task(calls[operation]())
    while not held.begun.is_set():  # noqa: ASYNC110 - it is set in a thread
        await asyncio.sleep(0)
    for _ in range(100):  # turns of the loop
        await asyncio.sleep(0)
    assert not task.done()
    held.released.set()
    await task
    assert len(await knowledge.async_search("notes", "boto", mode="semantic")) == 1


async def test_an_event_loop_goes_on_while_a_text_is_cut_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released = threading.Event(), threading.Event()

    def held(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert released.wait(60)
        return row_of(*arguments, **options)

    monkeypatch.setattr("firefly_memory.knowledge.flows.row_of", held)
    knowledge = KnowledgeStore(embedder=None)
    task = asyncio.create_task(knowledge.async_add("notes", "boot"))
    while not begun.is_set():  # noqa: ASYNC110 - it is set in a thread
        await asyncio.sleep(0)
    assert not task.done()
    released.set()
    await task
    assert len(knowledge.list("notes")) == 1


async def test_an_event_loop_goes_on_while_a_long_question_is_cut_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def noted(text: str, language: str) -> list[str]:
        threads.append(threading.current_thread())
        return question_words(text, language)

    monkeypatch.setattr(searching, "question_words", noted)
    knowledge = KnowledgeStore(embedder=None)
    await knowledge.async_add("notes", "boat")
    assert len(await knowledge.async_search("notes", "boat " * 200_000, mode="text")) == 1
    assert threads
    assert threading.current_thread() not in threads


def test_of_a_long_question_that_is_embedded_only_the_first_words_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def noted(text: str, language: str) -> list[str]:
        asked.append(text)
        return question_words(text, language)

    monkeypatch.setattr(words, "question_words", noted)
    pieces = words.question_pieces(" ".join(f"w{number}" for number in range(20_000)), "english")
    assert len(pieces) == LONGEST_QUESTION
    assert len(asked) <= 2 * LONGEST_QUESTION
