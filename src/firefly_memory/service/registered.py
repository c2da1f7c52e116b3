"""The resources of all facets, by their kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from firefly_memory.errors import ConfigurationError, NotSupportedError
from firefly_memory.facets import Facet, all_facets
from firefly_memory.looking import Reader, Resource, Search, reader_of, resources_of
from firefly_memory.protocols import StoreView

Registered = tuple[Facet, Resource]


@cache
def _registered(facets: tuple[Facet, ...]) -> dict[str, Registered]:
    found: dict[str, Registered] = {}
    for facet in facets:
        for resource in resources_of(facet):
            if resource.kind in found:
                names = f"{found[resource.kind][0].name} and {facet.name}"
                raise ConfigurationError(f"several resources have the kind {resource.kind!r}: those of {names}")
            found[resource.kind] = facet, resource
    return found


def registered_resources() -> dict[str, Registered]:
    """Every resource, in the order of the registry."""
    return _registered(all_facets())


def resource_of(kind: str) -> Registered:
    """The resource of a kind; ``ConfigurationError`` if there is none."""
    found = registered_resources().get(kind) if isinstance(kind, str) else None
    if found is None:
        raise ConfigurationError(f"there is no kind {kind!r}; there are {', '.join(registered_resources())}")
    return found


def search_of(kind: str) -> tuple[Resource, Search]:
    """The resource of a kind and its search; ``ConfigurationError`` if there is none."""
    _, resource = resource_of(kind)
    if resource.search is None:
        able = ", ".join(each.kind for _, each in registered_resources().values() if each.search is not None)
        raise ConfigurationError(f"{kind} cannot be searched; {able} can")
    return resource, resource.search


def readers_in(view: StoreView) -> Iterator[tuple[Resource, Reader]]:
    """The resources that a store keeps, each with its reader."""
    for facet, resource in registered_resources().values():
        try:
            yield resource, reader_of(view, facet, resource)
        except NotSupportedError:
            continue
