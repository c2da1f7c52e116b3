"""What an importer is: it reads what another program wrote.

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
    """Why something cannot become an entry."""

    reason: str


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier value, of which a later one is read."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found under a name of the other program, and what it is here."""

    namespace: Any
    entry_id: Any
    result: MemoryEntry | Refused | Superseded


class ForeignSource(Protocol):
    """A place of another program, while it is open."""

    @property
    def name(self) -> str:
        """What was recognised, such as ``table public.memory``."""

    @property
    def unique_ids(self) -> bool:
        """Whether no ``entry_id`` can be twice in a namespace."""

    @property
    def estimate(self) -> Callable[[], int | None]:
        """``estimate()``: about how much there is, if that is known without counting. To be asked before reading."""

    def read(self) -> Iterator[Found]:
        """Everything, once, namespace by namespace."""


class Importer(Protocol):
    """``where`` is what people may say beside the URL, of a class of the importer's own."""

    def __call__(self, url: str, where: Any, *, timeout: float) -> AbstractContextManager[ForeignSource]:
        """Recognise what is at ``url``, and open it; ``ConfigurationError`` if it is nothing of this importer's."""
