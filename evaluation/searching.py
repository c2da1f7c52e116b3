"""The conversations in a store, and the search over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evaluation.corpus import Conversation, Question
from firefly_memory import EntryStore
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Mode

Search = Callable[[str, Mode], list[str]]
"""The ids of the first turns that a question finds in a mode."""

Scope = tuple[Search, Sequence[Question]]
"""Questions, and the search that they are asked of."""

MODES: tuple[Mode, ...] = ("fuzzy", "text", "semantic", "hybrid")

TOGETHER = "together"


class Corpus:
    """Each conversation as a collection of its own, and all of them as one more."""

    def __init__(self, store: EntryStore, embedder: Embedder, conversations: Sequence[Conversation]) -> None:
        self._knowledge = KnowledgeStore(store, space="evaluation", embedder=embedder)
        self._turn_of: dict[str, str] = {}
        for each in conversations:
            self._add(each.name, [each])
        self._add(TOGETHER, conversations)

    def each_by_itself(self, asked: Iterable[Conversation]) -> list[Scope]:
        """The questions of some conversations, each asked of its conversation."""
        return [(self._search(each.name), each.questions) for each in asked]

    def in_one_scope(self, asked: Iterable[Conversation]) -> list[Scope]:
        """The questions of some conversations, asked of all conversations."""
        return [(self._search(TOGETHER), [question for each in asked for question in each.questions])]

    def _add(self, collection: str, conversations: Iterable[Conversation]) -> None:
        turns = [turn for each in conversations for turn in each.turns]
        chunks = [Chunk(turn.text, turn.who, turn.day, turn.session, turn.position) for turn in turns]
        self._turn_of.update(zip(self._knowledge.add(collection, chunks), (turn.id for turn in turns), strict=True))

    def _search(self, collection: str) -> Search:
        def search(question: str, mode: Mode) -> list[str]:
            return [self._turn_of[hit.id] for hit in self._knowledge.search(collection, question, 10, mode)]

        return search
