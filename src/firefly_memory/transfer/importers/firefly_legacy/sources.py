"""Opens the data of a predecessor by its URL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from firefly_memory.errors import ConfigurationError
from firefly_memory.target import Target
from firefly_memory.transfer.importers.firefly_legacy.entries import Row
from firefly_memory.transfer.importers.firefly_legacy.reading import read_rows
from firefly_memory.transfer.importers.source import Found, Importer
from firefly_memory.urls import row_of_scheme


@dataclass(frozen=True, slots=True)
class Where:
    """The options beside the URL."""

    table: str | None = None
    database: str | None = None
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """``rows`` come namespace by namespace, once; ``as_text`` is what :func:`entry_of` needs to know of them.

    ``unique_ids`` says that no ``entry_id`` can be twice in a namespace.
    """

    name: str
    rows: Iterable[Row]
    unique_ids: bool
    as_text: bool = False
    estimate: Callable[[], int | None] = lambda: None
    """The approximate number of rows, if it is known without counting. Call it before reading the rows."""

    def read(self) -> Iterator[Found]:
        return read_rows(self.rows, as_text=self.as_text)


class LegacyPlaces(Protocol):
    """Databases or directories of one kind."""

    def source(self, url: str, where: Where, *, timeout: float) -> AbstractContextManager[Source]:
        """Open the data of a predecessor for reading, without any change."""

    def has_been_here(self, new: Target, *, timeout: float) -> bool:
        """Whether this library has been in the new place; ``ConfigurationError`` if a predecessor's data is in its
        way."""


def legacy_source(url: str, where: Where, *, timeout: float) -> AbstractContextManager[Source]:
    """Open the data for reading, without any change."""
    row = row_of_scheme(url)
    if where.table is not None and row is not None and row.legacy is not None and row.dialect is None:
        raise ConfigurationError("--table is for SQL databases")
    if (where.database or where.collection) is not None and (row is None or "database" not in row.options):
        raise ConfigurationError("--database and --collection are for MongoDB")
    if row is None or row.legacy is None:  # not the URL itself: it may hold a password
        raise ConfigurationError(
            "the old place needs a URL that starts with sqlite:///, postgresql://, mongodb:// or file:"
        )
    places: LegacyPlaces = row.load("legacy")
    return places.source(url, where, timeout=timeout)


IMPORTER: Importer = legacy_source


def has_been_here(new: Target, *, timeout: float) -> bool:
    """Whether this library has been in the new place; an error if a predecessor's data is in its way."""
    if new.row.legacy is None:
        return True
    places: LegacyPlaces = new.row.load("legacy")
    return places.has_been_here(new, timeout=timeout)


def the_only(found: list[str], what: str, there: list[str], option: str) -> str:
    """The one that was found; otherwise an error that names what is there."""
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigurationError(f"several {what} may be meant: {', '.join(found)}; choose one with {option}")
    raise ConfigurationError(f"no {what} of a predecessor was found; choose one with {option}: {', '.join(there)}")
