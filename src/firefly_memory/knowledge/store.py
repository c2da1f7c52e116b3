"""``KnowledgeStore``: chunks of text in named collections, and the search over them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.knowledge.flows import KnowledgeFlows, Options
from firefly_memory.knowledge.rows import stored_space
from firefly_memory.knowledge.types import Chunk, ChunkPage, Hits, Names
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import MemoryStore
from firefly_memory.reprs import even_half_built
from firefly_memory.search.embedders.default import DEFAULT, Default, embedder_to_use
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Mode, checked_request
from firefly_memory.search.languages import checked_language
from firefly_memory.search.searching import NO_EMBEDDER, at_once, beside_the_loop
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore

Texts = str | Chunk | Iterable[str | Chunk]
"""What can be added: a text, a chunk, or several of these."""


class KnowledgeStore:
    """Texts that are found by what they say, in ``store`` or, without one, in memory.

    ``space`` is the tenant: chunks of another space are never seen. ``embedder`` turns texts into vectors for the
    search by meaning. By default it is the local one of the extra ``embeddings``, where that is installed; ``None``
    leaves the search by meaning out. ``language`` is that of the texts, ``"english"`` if nobody has said otherwise. The
    first chunk decides it for the whole database.
    """

    @answers_guesses
    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        space: str = "",
        embedder: Embedder | Default | None = DEFAULT,
        language: str | None = None,
    ) -> None:
        self.store: EntryStore = InMemoryStore() if store is None else adapt(store)
        options = Options(
            space=stored_space(space),
            embedder=embedder_to_use(embedder),
            language=None if language is None else checked_language(language),
            said={NO_EMBEDDER} if embedder is None else set(),  # who has chosen that knows it
            in_transaction=self.store.in_transaction,
        )
        self._options = options
        self._blocking = KnowledgeFlows(self.store.blocking, options, at_once)
        self._suspending = KnowledgeFlows(self.store.suspending, options, beside_the_loop)

    @even_half_built
    def __repr__(self) -> str:
        return f"KnowledgeStore({self.store!r}, embedder={self.embedder and self.embedder.name!r})"

    @property
    def embedder(self) -> Embedder | None:
        """What turns texts into vectors; ``None`` if search is for text only."""
        return self._options.embedder

    def add(self, collection: str, texts: Texts, *, source: Any = None, owner: str | None = None) -> Names:
        """Add texts to a collection, all of them or none, and return their ids.

        ``source`` says where they are from: a file, a conversation, any JSON value. ``owner`` is the canonical id of
        the person whose data they are. What is the same in all of its fields is one chunk, however often it is added.
        If the embedder fails, the texts are stored without vectors: the log says so, searches find them as text, and
        :meth:`embed_missing` makes the vectors later.
        """
        return run_without_loop(self._blocking.add(collection, texts, source, owner))

    async def async_add(self, collection: str, texts: Texts, *, source: Any = None, owner: str | None = None) -> Names:
        """Add texts to a collection, all of them or none, and return their ids.

        ``source`` says where they are from: a file, a conversation, any JSON value. ``owner`` is the canonical id of
        the person whose data they are. What is the same in all of its fields is one chunk, however often it is added.
        If the embedder fails, the texts are stored without vectors: the log says so, searches find them as text, and
        :meth:`embed_missing` makes the vectors later.
        """
        return await self._suspending.add(collection, texts, source, owner)

    def search(
        self,
        collection: str,
        query: str,
        top_k: int = 10,
        mode: Mode = "best",
        *,
        owner: str | None = None,
        explain: bool = False,
    ) -> Hits:
        """The chunks of a collection that say most about ``query``, best first.

        ``text`` compares words, ``semantic`` compares vectors, ``hybrid`` joins both, and ``best`` is hybrid where
        there are vectors. ``fuzzy`` wants the query itself in the text, and gives the newest first. Nothing in a query
        is syntax. Without ``owner`` only chunks that belong to nobody are searched; with it, those of this person as
        well. ``explain`` adds to each hit how it came about.
        """
        return run_without_loop(self._blocking.search(collection, checked_request(query, top_k, mode, explain), owner))

    async def async_search(
        self,
        collection: str,
        query: str,
        top_k: int = 10,
        mode: Mode = "best",
        *,
        owner: str | None = None,
        explain: bool = False,
    ) -> Hits:
        """The chunks of a collection that say most about ``query``, best first.

        ``text`` compares words, ``semantic`` compares vectors, ``hybrid`` joins both, and ``best`` is hybrid where
        there are vectors. ``fuzzy`` wants the query itself in the text, and gives the newest first. Nothing in a query
        is syntax. Without ``owner`` only chunks that belong to nobody are searched; with it, those of this person as
        well. ``explain`` adds to each hit how it came about.
        """
        return await self._suspending.search(collection, checked_request(query, top_k, mode, explain), owner)

    def list(self, collection: str, limit: int = 100, after: str | None = None) -> ChunkPage:
        """Up to ``limit`` chunks of everybody, oldest first, from the start or from ``after``, a page's ``next``."""
        return run_without_loop(self._blocking.list(collection, limit, after))

    async def async_list(self, collection: str, limit: int = 100, after: str | None = None) -> ChunkPage:
        """Up to ``limit`` chunks of everybody, oldest first, from the start or from ``after``, a page's ``next``."""
        return await self._suspending.list(collection, limit, after)

    def collections(self, limit: int = 100, after: str = "") -> Names:
        """Up to ``limit`` names of collections, in order, those after ``after``."""
        return run_without_loop(self._blocking.collections(limit, after))

    async def async_collections(self, limit: int = 100, after: str = "") -> Names:
        """Up to ``limit`` names of collections, in order, those after ``after``."""
        return await self._suspending.collections(limit, after)

    def count(self, collection: str | None = None) -> int:
        """How many chunks a collection has, or all of them together."""
        return run_without_loop(self._blocking.count(collection))

    async def async_count(self, collection: str | None = None) -> int:
        """How many chunks a collection has, or all of them together."""
        return await self._suspending.count(collection)

    def delete(self, collection: str, ids: Iterable[str] | None = None, *, source: Any = None) -> int:
        """Delete chunks of a collection, and return how many these were: those with these ids, those that were added
        with this ``source``, or all of them."""
        return run_without_loop(self._blocking.delete(collection, ids, source))

    async def async_delete(self, collection: str, ids: Iterable[str] | None = None, *, source: Any = None) -> int:
        """Delete chunks of a collection, and return how many these were: those with these ids, those that were added
        with this ``source``, or all of them."""
        return await self._suspending.delete(collection, ids, source)

    def embed_missing(self) -> int:
        """Make the vectors of all chunks of the store, in every space, that have none of this embedder; how many.

        It goes on where an earlier call stopped, and several processes may call it at once.
        """
        return run_without_loop(self._blocking.embed_missing())

    async def async_embed_missing(self) -> int:
        """Make the vectors of all chunks of the store, in every space, that have none of this embedder; how many.

        It goes on where an earlier call stopped, and several processes may call it at once.
        """
        return await self._suspending.embed_missing()
