"""``MemoryService``: facts that outlive conversations, and the people whom they are about."""

from __future__ import annotations

from firefly_memory.identifiers import original_name
from firefly_memory.likely_names import answers_guesses
from firefly_memory.longterm.fact_flows import FactFlows
from firefly_memory.longterm.fact_methods import FactMethods
from firefly_memory.longterm.options import Options
from firefly_memory.longterm.people_flows import PeopleFlows
from firefly_memory.longterm.people_methods import PeopleMethods
from firefly_memory.longterm.places import stored_space
from firefly_memory.protocols import MemoryStore
from firefly_memory.reprs import even_half_built
from firefly_memory.search.embedders.default import DEFAULT, Default, embedder_to_use
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.languages import checked_language
from firefly_memory.search.searching import NO_EMBEDDER, at_once, beside_the_loop
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore


class MemoryService(FactMethods, PeopleMethods):
    """Long-term memory in ``store`` or, without one, in memory: facts, and the people whom they are about.

    A *fact* has a key and a scope: ``global`` facts are for everybody, others for one agent, one person or one session.
    A *person* is named by a ``user_id``: ``channel:id``, such as ``telegram:12345``. ``space`` is the tenant: facts and
    people of another space are never seen.

    ``embedder`` turns facts into vectors for the search by meaning. By default it is the local one of the extra
    ``embeddings``, where that is installed; ``None`` leaves the search by meaning out. ``language`` is that of the
    facts, ``"english"`` if nobody has said otherwise. The first fact decides it for the whole database.
    """

    @answers_guesses
    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        space: str = "default",
        embedder: Embedder | Default | None = DEFAULT,
        language: str | None = None,
    ) -> None:
        self.store: EntryStore = InMemoryStore() if store is None else adapt(store)
        self._options = Options(
            space=stored_space(space),
            embedder=embedder_to_use(embedder),
            language=None if language is None else checked_language(language),
            said={NO_EMBEDDER} if embedder is None else set(),  # who has chosen that knows it
            in_transaction=self.store.in_transaction,
        )
        blocking, suspending = self.store.blocking, self.store.suspending
        self._blocking_facts = FactFlows(blocking, self._options, at_once)
        self._suspending_facts = FactFlows(suspending, self._options, beside_the_loop)
        self._blocking_people = PeopleFlows(blocking, self._options, self._blocking_facts)
        self._suspending_people = PeopleFlows(suspending, self._options, self._suspending_facts)

    @even_half_built
    def __repr__(self) -> str:
        return f"MemoryService({self.store!r}, space={self.space!r})"

    @property
    def space(self) -> str:
        """The tenant."""
        return original_name(self._options.space)

    @property
    def embedder(self) -> Embedder | None:
        """What turns facts into vectors; ``None`` if search is for text only."""
        return self._options.embedder
