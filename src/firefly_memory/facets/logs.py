"""How a store is asked for the operations of a facet, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import NotSupportedError
from firefly_memory.facets.declaration import Absent, load
from firefly_memory.facets.groups import Facet
from firefly_memory.facets.registry import facet_named

L = TypeVar("L")


class Purged(NamedTuple):
    """What one batch of a clean-up did."""

    deleted: int
    more: bool
    """Whether there may be more to delete."""


@dataclass(frozen=True, slots=True)
class LogOf(Generic[L]):
    """Asks a store for the operations of a facet: ``view.log(CONVERSATION_LOG)``. The type says what they are."""

    facet: str

    def declared(self, store: str) -> Any:
        """What makes them for a kind of stores, an entry of :class:`Operations`."""
        facet = facet_named(self.facet)
        log = load(facet.operations, store)
        if log is None:
            raise NotSupportedError(f"{facet.title} cannot be kept in {STORES[store]}; {_stores_with(facet)} can")
        return log


class HasLogs(Protocol):
    """A :class:`~firefly_memory.protocols.StoreView`, as far as facets are concerned."""

    def log(self, of: LogOf[L]) -> L:
        """The operations of a facet; ``NotSupportedError`` if the store lacks the facet."""
        ...


def log_if_there(view: HasLogs, of: LogOf[L]) -> L | None:
    """The operations of a facet, or ``None`` if the store lacks the facet."""
    try:
        return view.log(of)
    except NotSupportedError:
        return None


_making = ForkSafeLock()


class FacetLogs:
    """The operations of the facets in one store and mode: of each facet once, when it is first asked for."""

    def __init__(self, kind: str, make: Callable[[Any], Any]) -> None:
        """``kind`` is the entry of :class:`Operations` for such a store, and ``make`` makes what it names."""
        self._kind = kind
        self._make = make
        self._made: dict[LogOf[Any], Any] = {}

    def __call__(self, of: LogOf[L]) -> L:
        made = self._made.get(of)
        if made is None:
            with _making:  # what it keeps in memory must be kept once
                made = self._made.get(of)
                if made is None:
                    made = self._made[of] = self._make(of.declared(self._kind))
        return made  # type: ignore[no-any-return]

    def made(self) -> Iterable[Any]:
        """Those that have been asked for."""
        return self._made.values()


STORES = {
    "sql": "SQLiteStore and PostgreSQLStore",
    "mongodb": "MongoDBStore",
    "in_memory": "InMemoryStore",
    "in_files": "FileStore",
    "over_entries": "a store with the five methods only",
}
"""The stores that each entry of :class:`Operations` is for."""


def _stores_with(facet: Facet) -> str:
    if isinstance(facet.operations, Absent):
        return "none"
    kept = [kind for kind in STORES if not isinstance(getattr(facet.operations, kind), Absent)]  # loads no driver
    *others, last = [name for kind in kept for name in STORES[kind].split(" and ")]
    return f"{', '.join(others)} and {last}" if others else last
