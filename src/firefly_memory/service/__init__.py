"""List, show, search, count and delete what a store keeps, of every facet: what the command line stands on.

A row is a dict of JSON values with an ``id``. ``kind`` is the noun of a resource, such as ``"entries"`` or
``"conversations"``; :func:`resources` says which ones a store has, and by which fields its rows can be selected.
Every function exists twice: ``list(store, …)`` and ``await async_list(store, …)``. None of them makes or migrates a
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.sql.schema.accelerators import Accelerator, AcceleratorState
from firefly_memory.databases.sql.schema.switching import states
from firefly_memory.looking import Field, Resource, Row, Size
from firefly_memory.protocols import MemoryStore
from firefly_memory.search.embedders.default import DEFAULT, Default
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Hit, Mode
from firefly_memory.search.keeping import IndexState
from firefly_memory.search.searching import at_once, beside_the_loop
from firefly_memory.service import indexes
from firefly_memory.service.accelerators import administered, disabling, enabling
from firefly_memory.service.registered import readers_in
from firefly_memory.service.rows import (
    MOST_ROWS,
    RowPage,
    Stats,
    count_rows,
    delete_rows,
    get_row,
    list_rows,
    stats_of,
)
from firefly_memory.service.searching import Asked, search_rows
from firefly_memory.stores.adapter import adapt

__all__ = [
    "MOST_ROWS",
    "Accelerator",
    "AcceleratorState",
    "Field",
    "IndexState",
    "Resource",
    "Row",
    "RowPage",
    "Size",
    "Stats",
    "accelerators",
    "async_accelerators",
    "async_count",
    "async_delete",
    "async_delete_vectors",
    "async_disable_accelerator",
    "async_embed_missing",
    "async_enable_accelerator",
    "async_get",
    "async_index_states",
    "async_list",
    "async_rebuild_indexes",
    "async_search",
    "async_stats",
    "count",
    "delete",
    "delete_vectors",
    "disable_accelerator",
    "embed_missing",
    "enable_accelerator",
    "get",
    "index_states",
    "list",
    "rebuild_indexes",
    "resources",
    "search",
    "stats",
]

_Where = Mapping[str, Any] | None


def resources(store: MemoryStore) -> tuple[Resource, ...]:
    """What the store keeps, in the order of the registry."""
    return tuple(resource for resource, _ in readers_in(adapt(store).blocking))


def list(  # noqa: A001 - is called as service.list()
    store: MemoryStore,
    kind: str,
    *,
    where: _Where = None,
    order: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> RowPage:
    """Up to ``limit`` rows, from the start or from ``after``, the ``next`` of an earlier page.

    ``where`` selects by fields: ``{"namespace": "notes"}``. After the name of a field, ``~`` stands for "contains",
    whatever the case of the letters, ``>=`` for "at least" and ``<`` for "less than": ``{"content~": "paris"}``.
    ``order`` is one of the resource's orders. A cursor of another kind, order or selection, or one that was made up,
    is an ``InvalidEntryError``.
    """
    return run_without_loop(list_rows(adapt(store).blocking, kind, where, order, after, limit))


async def async_list(
    store: MemoryStore,
    kind: str,
    *,
    where: _Where = None,
    order: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> RowPage:
    """Up to ``limit`` rows, from the start or from ``after``, the ``next`` of an earlier page.

    ``where`` selects by fields: ``{"namespace": "notes"}``. After the name of a field, ``~`` stands for "contains",
    whatever the case of the letters, ``>=`` for "at least" and ``<`` for "less than": ``{"content~": "paris"}``.
    ``order`` is one of the resource's orders. A cursor of another kind, order or selection, or one that was made up,
    is an ``InvalidEntryError``.
    """
    return await list_rows(adapt(store).suspending, kind, where, order, after, limit)


def get(store: MemoryStore, kind: str, row_id: str) -> Row | None:
    """One row with all its fields, or ``None`` if there is none with this id."""
    return run_without_loop(get_row(adapt(store).blocking, kind, row_id))


async def async_get(store: MemoryStore, kind: str, row_id: str) -> Row | None:
    """One row with all its fields, or ``None`` if there is none with this id."""
    return await get_row(adapt(store).suspending, kind, row_id)


def count(store: MemoryStore, kind: str, *, where: _Where = None) -> Size:
    """How many rows there are, or how many of them ``where`` selects."""
    return run_without_loop(count_rows(adapt(store).blocking, kind, where))


async def async_count(store: MemoryStore, kind: str, *, where: _Where = None) -> Size:
    """How many rows there are, or how many of them ``where`` selects."""
    return await count_rows(adapt(store).suspending, kind, where)


def delete(store: MemoryStore, kind: str, ids: Iterable[str] | None = None, *, where: _Where = None) -> int:
    """Delete the rows with these ids, or all that ``where`` selects, and return how many there were.

    A conversation goes with its turns and its facts. Rows are deleted one batch after the other: what was interrupted
    is simply started again.
    """
    return run_without_loop(delete_rows(adapt(store).blocking, kind, ids, where))


async def async_delete(store: MemoryStore, kind: str, ids: Iterable[str] | None = None, *, where: _Where = None) -> int:
    """Delete the rows with these ids, or all that ``where`` selects, and return how many there were.

    A conversation goes with its turns and its facts. Rows are deleted one batch after the other: what was interrupted
    is simply started again.
    """
    return await delete_rows(adapt(store).suspending, kind, ids, where)


def search(
    store: MemoryStore,
    kind: str,
    question: str,
    top_k: int = 10,
    mode: Mode = "best",
    *,
    where: Mapping[str, str] | None = None,
    explain: bool = False,
    embedder: Embedder | Default | None = DEFAULT,
) -> tuple[Hit, ...]:
    """The rows of a kind that say most about ``question``, best first, at most ``top_k`` of them.

    ``where`` has a text for each filter: ``{"collection": "notes", "owner": "ann"}``. The ``search`` of a
    :class:`Resource` says which filters a kind needs, and which others it takes. ``text`` compares words, ``semantic``
    compares vectors, ``hybrid`` joins both, ``best`` is the best that the store offers, and ``fuzzy`` wants the
    question itself in the text. Nothing in a question is syntax. The ``id`` of a hit is that of its row:
    ``get(store, kind, hit.id)``. ``explain`` adds to each hit how it came about. ``embedder`` makes the vector of
    the question, as it made those of the rows: by default the local one, where it is installed.
    """
    asked = Asked(kind, question, top_k, mode, where, explain)
    return run_without_loop(search_rows(adapt(store).blocking, at_once, asked, embedder))


async def async_search(
    store: MemoryStore,
    kind: str,
    question: str,
    top_k: int = 10,
    mode: Mode = "best",
    *,
    where: Mapping[str, str] | None = None,
    explain: bool = False,
    embedder: Embedder | Default | None = DEFAULT,
) -> tuple[Hit, ...]:
    """The rows of a kind that say most about ``question``, best first, at most ``top_k`` of them.

    ``where`` has a text for each filter: ``{"collection": "notes", "owner": "ann"}``. The ``search`` of a
    :class:`Resource` says which filters a kind needs, and which others it takes. ``text`` compares words, ``semantic``
    compares vectors, ``hybrid`` joins both, ``best`` is the best that the store offers, and ``fuzzy`` wants the
    question itself in the text. Nothing in a question is syntax. The ``id`` of a hit is that of its row:
    ``get(store, kind, hit.id)``. ``explain`` adds to each hit how it came about. ``embedder`` makes the vector of
    the question, as it made those of the rows: by default the local one, where it is installed.
    """
    asked = Asked(kind, question, top_k, mode, where, explain)
    return await search_rows(adapt(store).suspending, beside_the_loop, asked, embedder)


def stats(store: MemoryStore) -> tuple[Stats, ...]:
    """How much there is of each kind."""
    return run_without_loop(stats_of(adapt(store).blocking))


async def async_stats(store: MemoryStore) -> tuple[Stats, ...]:
    """How much there is of each kind."""
    return await stats_of(adapt(store).suspending)


def index_states(store: MemoryStore, *, embedder: Embedder | Default | None = DEFAULT) -> tuple[IndexState, ...]:
    """Each index that searches use, compared with all of its rows."""
    return run_without_loop(indexes.states_of(adapt(store).blocking, at_once, embedder))


async def async_index_states(
    store: MemoryStore, *, embedder: Embedder | Default | None = DEFAULT
) -> tuple[IndexState, ...]:
    """Each index that searches use, compared with all of its rows."""
    return await indexes.states_of(adapt(store).suspending, beside_the_loop, embedder)


def rebuild_indexes(
    store: MemoryStore, language: str | None = None, *, progress: indexes.Progress | None = None
) -> dict[str, int]:
    """Make again what is not right in the indexes, while writers and searches go on; how many rows of each kind were
    looked at. With ``language`` the words become those of another language. ``progress`` is called with the kind, and
    with the number of rows that were looked at so far."""
    return run_without_loop(indexes.rebuild(adapt(store).blocking, at_once, language, progress))


async def async_rebuild_indexes(
    store: MemoryStore, language: str | None = None, *, progress: indexes.Progress | None = None
) -> dict[str, int]:
    """Make again what is not right in the indexes, while writers and searches go on; how many rows of each kind were
    looked at. With ``language`` the words become those of another language. ``progress`` is called with the kind, and
    with the number of rows that were looked at so far."""
    return await indexes.rebuild(adapt(store).suspending, beside_the_loop, language, progress)


def embed_missing(
    store: MemoryStore,
    *,
    embedder: Embedder | Default | None = DEFAULT,
    progress: indexes.Progress | None = None,
) -> dict[str, int]:
    """Make the vectors that are missing; how many of each kind were made."""
    return run_without_loop(indexes.embed(adapt(store).blocking, at_once, embedder, progress))


async def async_embed_missing(
    store: MemoryStore,
    *,
    embedder: Embedder | Default | None = DEFAULT,
    progress: indexes.Progress | None = None,
) -> dict[str, int]:
    """Make the vectors that are missing; how many of each kind were made."""
    return await indexes.embed(adapt(store).suspending, beside_the_loop, embedder, progress)


def delete_vectors(store: MemoryStore, embedder: str, *, progress: indexes.Progress | None = None) -> dict[str, int]:
    """Delete the vectors of an embedder that is no longer used, by its name; how many of each kind were deleted. The
    rows stay, and are found as text."""
    return run_without_loop(indexes.delete_vectors(adapt(store).blocking, at_once, embedder, progress))


async def async_delete_vectors(
    store: MemoryStore, embedder: str, *, progress: indexes.Progress | None = None
) -> dict[str, int]:
    """Delete the vectors of an embedder that is no longer used, by its name; how many of each kind were deleted. The
    rows stay, and are found as text."""
    return await indexes.delete_vectors(adapt(store).suspending, beside_the_loop, embedder, progress)


def accelerators(store: MemoryStore) -> tuple[Accelerator, ...]:
    """Every accelerator that the store can have, as it is now. ``NotSupportedError`` for a store that has none."""
    return administered(store).administer(states)


async def async_accelerators(store: MemoryStore) -> tuple[Accelerator, ...]:
    """Every accelerator that the store can have, as it is now. ``NotSupportedError`` for a store that has none."""
    return await administered(store).async_administer(states)


def enable_accelerator(
    store: MemoryStore,
    name: str,
    *,
    kind: str = "chunks",
    embedder: Embedder | Default | str | None = DEFAULT,
    progress: indexes.Progress | None = None,
) -> None:
    """Switch an accelerator on: ``pgvector`` for the vectors of an embedder, ``pg_trgm`` for ``fuzzy``.

    Writers and searches go on meanwhile, and need not be told. It needs the rights of a migration. What was interrupted
    is simply started again. ``embedder`` may be the name of one whose vectors are stored. ``progress`` is called with
    the kind, and with the number of rows that were prepared so far.
    """
    administered(store).administer(enabling(name, kind, embedder, progress))


async def async_enable_accelerator(
    store: MemoryStore,
    name: str,
    *,
    kind: str = "chunks",
    embedder: Embedder | Default | str | None = DEFAULT,
    progress: indexes.Progress | None = None,
) -> None:
    """Switch an accelerator on: ``pgvector`` for the vectors of an embedder, ``pg_trgm`` for ``fuzzy``.

    Writers and searches go on meanwhile, and need not be told. It needs the rights of a migration. What was interrupted
    is simply started again. ``embedder`` may be the name of one whose vectors are stored. ``progress`` is called with
    the kind, and with the number of rows that were prepared so far.
    """
    await administered(store).async_administer(enabling(name, kind, embedder, progress))


def disable_accelerator(
    store: MemoryStore, name: str, *, kind: str = "chunks", embedder: Embedder | str | None = None
) -> None:
    """Switch an accelerator off: for one embedder, or for all. Nothing that anybody has written is lost, and the
    extension stays."""
    administered(store).administer(disabling(name, kind, embedder))


async def async_disable_accelerator(
    store: MemoryStore, name: str, *, kind: str = "chunks", embedder: Embedder | str | None = None
) -> None:
    """Switch an accelerator off: for one embedder, or for all. Nothing that anybody has written is lost, and the
    extension stays."""
    await administered(store).async_administer(disabling(name, kind, embedder))
