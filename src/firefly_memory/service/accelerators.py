"""The accelerators of a SQL database: switched on and off, and looked at."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, TypeVar, cast

from firefly_memory.databases.sql.schema.accelerators import Progress, Wanted
from firefly_memory.databases.sql.schema.switching import Work, disable, enable
from firefly_memory.errors import ConfigurationError, NotSupportedError
from firefly_memory.search.embedders.default import DEFAULT, Default, embedder_to_use
from firefly_memory.search.embedders.protocol import Embedder

T = TypeVar("T")

NAMES = ("pgvector", "pg_trgm")
"""All that there are."""

OF_EMBEDDERS = ("pgvector",)
"""Those that are for the vectors of one embedder."""

EXACT_ONLY = "{} has exact search only: there is no accelerator for it; pgvector and pg_trgm are for PostgreSQL"


class Administered(Protocol):
    """A database that lends a connection with the rights of a migration."""

    def administer(self, work: Work[T]) -> T: ...

    async def async_administer(self, work: Work[T]) -> T: ...


def administered(store: Any) -> Administered:
    """The database of a store; ``NotSupportedError`` if it has no accelerators, or is in somebody's transaction."""
    if getattr(store, "in_transaction", False):
        raise NotSupportedError("an index is not built inside a transaction; use the store that was bound")
    database = getattr(store, "database", None)
    if not hasattr(database, "administer"):
        raise NotSupportedError(EXACT_ONLY.format(type(store).__name__))
    return cast("Administered", database)


def checked_name(name: str) -> str:
    """``name`` if it is one of an accelerator."""
    if name not in NAMES:
        raise ConfigurationError(f"there is no accelerator {name!r}; there are {', '.join(NAMES)}")
    return name


def enabling(name: str, kind: str, embedder: Embedder | Default | str | None, progress: Progress | None) -> Work[None]:
    """Switches it on."""
    wanted = _wanted(checked_name(name), embedder)
    return partial(enable, wanted=wanted, kind=kind, progress=progress)


def disabling(name: str, kind: str, embedder: Embedder | str | None) -> Work[None]:
    """Switches it off: without an embedder, for all."""
    its_name = embedder if embedder is None or isinstance(embedder, str) else embedder.name
    return partial(disable, wanted=Wanted(name=checked_name(name), embedder=its_name, dimensions=None), kind=kind)


def _wanted(name: str, embedder: Embedder | Default | str | None) -> Wanted:
    if name not in OF_EMBEDDERS:
        given = embedder if isinstance(embedder, str) else None
        return Wanted(name=name, embedder=given, dimensions=None)
    used = embedder_to_use(DEFAULT if isinstance(embedder, str) else embedder)
    if isinstance(embedder, str):
        dimensions = used.dimensions if used is not None and used.name == embedder else None
        return Wanted(name=name, embedder=embedder, dimensions=dimensions)
    if used is None:
        raise ConfigurationError(
            f"{name} is for the vectors of one embedder, and no default embedder is installed; name it"
        )
    return Wanted(name=name, embedder=used.name, dimensions=used.dimensions)
