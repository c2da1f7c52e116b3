"""The protocol of importers, which read the data of another program.

An importer is a function that recognises such a place and opens it to be read, and that changes nothing there. It gives
a :class:`ForeignSource`, which says about how much there is, reads it as entries of this library, and says of what it
cannot read why. :func:`~firefly_memory.transfer.importers.importing.import_entries` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from firefly_memory.entries.entry import MemoryEntry


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason why a row cannot become an entry."""

    reason: str


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier value, of which a later one is read."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row of the other program, and its entry."""

    namespace: Any
    entry_id: Any
    result: MemoryEntry | Refused | Superseded


class ForeignSource(Protocol):
    """An open database or directory of another program."""

    @property
    def name(self) -> str:
        """The name of the data that was recognised, such as ``table public.memory``."""

    @property
    def unique_ids(self) -> bool:
        """Whether an ``entry_id`` is unique in its namespace."""

    @property
    def estimate(self) -> Callable[[], int | None]:
        """``estimate()``: the approximate number of rows, if it is known without counting. Call it before reading."""

    def read(self) -> Iterator[Found]:
        """All rows, once, namespace by namespace."""


class Importer(Protocol):
    """``where`` is what people may say beside the URL, of a class of the importer's own."""

    def __call__(self, url: str, where: Any, *, timeout: float) -> AbstractContextManager[ForeignSource]:
        """Recognise and open the data at ``url``; ``ConfigurationError`` if this importer does not know it."""
