"""The search of the service, once for both modes: a coroutine over a view of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from firefly_memory.errors import InvalidEntryError
from firefly_memory.looking import Resource, Search, searcher_of
from firefly_memory.protocols import StoreView
from firefly_memory.reprs import shown
from firefly_memory.search.embedders.default import Default, embedder_to_use
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Hit, checked_request
from firefly_memory.search.searching import Work
from firefly_memory.service.registered import search_of
from firefly_memory.service.rows import MOST_ROWS
from firefly_memory.validation import checked_text


class Asked(NamedTuple):
    """A search, as the caller gave it."""

    kind: str
    question: str
    top_k: int
    mode: str
    where: Mapping[str, str] | None
    explain: bool


async def search_rows(
    view: StoreView, work: Work, asked: Asked, embedder: Embedder | Default | None
) -> tuple[Hit, ...]:
    """The store has to be there: looking makes and migrates nothing."""
    resource, search = search_of(asked.kind)
    request = checked_request(checked_text("question", asked.question), asked.top_k, asked.mode, asked.explain)
    if request.top_k > MOST_ROWS:
        raise InvalidEntryError("top_k", f"is {shown(asked.top_k)}; a search gives at most {MOST_ROWS} hits")
    filters = checked_filters(resource, search, {} if asked.where is None else asked.where)
    await view.initialize(migrate=False)
    return tuple(await searcher_of(view, search, work, embedder_to_use(embedder)).hits(request, filters))


def checked_filters(resource: Resource, search: Search, where: Any) -> dict[str, str]:
    """``where``, checked; ``InvalidEntryError`` names what is wrong with it."""
    if not isinstance(where, Mapping):
        raise InvalidEntryError("where", f"must be a mapping of filters to values, not {type(where).__name__}")
    for name in where:
        if name not in search.filters:
            known = ", ".join(search.filters) or "no filters"
            raise InvalidEntryError("where", f"{resource.kind} cannot be searched by {shown(name)}; there are {known}")
    missing = [name for name in search.needs if name not in where]
    if missing:
        of = " and ".join(missing)
        raise InvalidEntryError("where", f"{resource.kind} are searched by their {of}; name it: {missing[0]}=…")
    return {name: checked_text(f"where[{name!r}]", value) for name, value in where.items()}
