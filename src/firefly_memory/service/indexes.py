"""The indexes of a store, of every facet that is searched: compared with their rows, made again, given vectors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

from firefly_memory.errors import ConfigurationError, NotSupportedError
from firefly_memory.facets import all_facets, load
from firefly_memory.protocols import StoreView
from firefly_memory.search.embedders.default import Default, embedder_to_use
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.keeping import IndexKeeper, IndexState
from firefly_memory.search.searching import Work
from firefly_memory.validation import checked_text

Progress = Callable[[str, int], None]
"""Is called with the kind of the rows, and with the number of those that were looked at so far."""


def keepers_in(view: StoreView, work: Work) -> Iterator[IndexKeeper]:
    """What keeps the indexes that the store has."""
    for facet in all_facets():
        make = load(facet.looking, "index")
        if make is None:
            continue
        try:
            yield make(view, work)
        except NotSupportedError:
            continue


async def states_of(view: StoreView, work: Work, embedder: Embedder | Default | None) -> tuple[IndexState, ...]:
    await view.initialize(migrate=False)
    used = embedder_to_use(embedder)
    return tuple([await keeper.state(used) for keeper in keepers_in(view, work)])


async def outdated_in(view: StoreView, work: Work) -> list[str]:
    """The kinds whose indexes have to be made again, as far as a look at a few rows tells."""
    await view.initialize(migrate=False)
    return [keeper.kind for keeper in keepers_in(view, work) if await keeper.needs_rebuild()]


async def rebuild(view: StoreView, work: Work, language: str | None, progress: Progress | None) -> dict[str, int]:
    await view.initialize(migrate=False)
    return {each.kind: await _counted(each.kind, each.rebuild(language), progress) for each in keepers_in(view, work)}


async def embed(
    view: StoreView, work: Work, embedder: Embedder | Default | None, progress: Progress | None
) -> dict[str, int]:
    used = embedder_to_use(embedder)
    if used is None:
        raise ConfigurationError("there is no embedder: install firefly-memory[embeddings], or give one")
    await view.initialize(migrate=False)
    return {each.kind: await _counted(each.kind, each.embed(used), progress) for each in keepers_in(view, work)}


async def delete_vectors(view: StoreView, work: Work, embedder: str, progress: Progress | None) -> dict[str, int]:
    name = checked_text("embedder", embedder)
    await view.initialize(migrate=False)
    keepers = keepers_in(view, work)
    return {each.kind: await _counted(each.kind, each.delete_vectors(name), progress) for each in keepers}


async def _counted(kind: str, pages: AsyncIterator[int], progress: Progress | None) -> int:
    total = 0
    async for some in pages:
        total += some
        if progress is not None:
            progress(kind, total)
    return total
