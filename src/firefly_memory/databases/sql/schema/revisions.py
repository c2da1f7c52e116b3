"""The revisions of all facets, in one chain: each names the one before it.

They are read from the files without loading them, for every store looks at them when it opens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from firefly_memory.errors import ConfigurationError
from firefly_memory.facets import Absent, Facet, all_facets

_NAME = re.compile(r'^revision(?:: str)? = "([^"]+)"$', re.MULTILINE)
_BEFORE = re.compile(r'^down_revision(?:: str(?: \| None)?)? = (?:None|"([^"]+)")$', re.MULTILINE)
_ONLINE = re.compile(r"^online = True$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Revision:
    """One step of the schema."""

    name: str
    before: str | None
    path: Path
    online: bool
    """Whether it builds an index ``CONCURRENTLY``, and so is no part of the others' transaction."""


def revisions() -> tuple[str, ...]:
    """The names of all revisions, oldest first."""
    return tuple(_chain(all_facets()))


def head() -> str:
    """The revision that the facets need."""
    return revisions()[-1]


def revision_named(name: str) -> Revision:
    return _chain(all_facets())[name]


def folders() -> list[Path]:
    """Where the revisions are."""
    return _folders(all_facets())


def is_later_and_compatible(revision: str) -> bool:
    """Whether ``revision``, of a later version of the library, says that this version goes on working with it.

    ``0006_0005`` is revision 0006, and has only added to what a version that needs 0005 uses.
    """
    later = re.fullmatch(r"(\d{4})_(\d{4})", revision)
    return later is not None and later[2] <= head()[:4] < later[1]


@cache
def _chain(facets: tuple[Facet, ...]) -> dict[str, Revision]:
    after: dict[str | None, Revision] = {}
    for revision in _read(_folders(facets)):
        other = after.setdefault(revision.before, revision)
        if other is not revision:
            raise ConfigurationError(
                f"the revisions {other.name} ({other.path}) and {revision.name} ({revision.path}) both come after "
                f"{revision.before}; let one of them come after the other"
            )
    chain: dict[str, Revision] = {}
    newest: str | None = None
    while newest in after:
        following = after.pop(newest)
        chain[following.name] = following
        newest = following.name
    for astray in after.values():
        raise ConfigurationError(
            f"the revision {astray.name} ({astray.path}) comes after {astray.before}, which no facet has"
        )
    return chain


def _folders(facets: Sequence[Facet]) -> list[Path]:
    found = [facet.storage.revisions for facet in facets if not isinstance(facet.storage, Absent)]
    return list(dict.fromkeys(each for each in found if not isinstance(each, Absent)))


def _read(folders: Sequence[Path]) -> Iterator[Revision]:
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            text = path.read_text(encoding="utf-8")
            name, before = _NAME.search(text), _BEFORE.search(text)
            if name is None or before is None:
                if path.name.startswith("_"):
                    continue
                raise ConfigurationError(f'{path} has no line `revision = "…"`, or none with its down_revision')
            yield Revision(name[1], before[1], path, _ONLINE.search(text) is not None)
