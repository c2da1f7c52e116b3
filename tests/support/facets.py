"""Facets for tests of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firefly_memory.facets import Facet, Storage, absent, registry

_NOTHING = absent("this facet has nothing but revisions")


def facet_of_revisions(name: str, folder: Path) -> Facet:
    """A facet that only adds revisions."""
    return Facet(
        name=name,
        title=name,
        storage=Storage(
            tables=_NOTHING,
            revisions=folder,
            sqlite_functions=_NOTHING,
            objects=_NOTHING,
            accelerators=_NOTHING,
            collections=_NOTHING,
            document_upgrades=_NOTHING,
            distribution_key=_NOTHING,
            shard_key=_NOTHING,
        ),
        operations=_NOTHING,
        moving=_NOTHING,
        people=_NOTHING,
        looking=_NOTHING,
        packaging=_NOTHING,
    )


@contextmanager
def unregistered() -> Iterator[None]:
    """The facets of the library alone, as an earlier release knows them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_registered", [])
        patch.setattr(registry, "_all", None)
        yield
