"""A place of a predecessor, by its URL: what was found there, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from firefly_memory.databases.mongodb import require_driver
from firefly_memory.errors import ConfigurationError
from firefly_memory.transfer.importers.firefly_legacy.entries import Row


@dataclass(frozen=True, slots=True)
class Where:
    """What people may say beside the URL."""

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
    """About how many rows there are, if that can be known without counting. To be asked before the rows."""


@contextmanager
def legacy_source(url: str, where: Where, *, timeout: float) -> Iterator[Source]:
    """Open it to be read. Nothing there is changed."""
    # Each kind is imported when it is wanted: the others' drivers may not be installed.
    scheme, colon, rest = url.partition(":")
    kind = scheme.lower().partition("+")[0] if colon else ""
    if where.table is not None and kind in ("mongodb", "file"):
        raise ConfigurationError("--table is for SQL databases")
    if (where.database or where.collection) is not None and kind != "mongodb":
        raise ConfigurationError("--database and --collection are for MongoDB")
    match kind:
        case "sqlite" | "postgresql" | "postgres":
            from firefly_memory.transfer.importers.firefly_legacy.tables import table_source

            with table_source(url, where.table, timeout=timeout) as source:
                yield source
        case "mongodb":
            require_driver()
            from firefly_memory.transfer.importers.firefly_legacy.documents import document_source

            with document_source(url, where.database, where.collection, timeout=timeout) as source:
                yield source
        case "file":
            from firefly_memory.transfer.importers.firefly_legacy.files import file_source

            yield file_source(rest.removeprefix("//"))
        case _:  # not the URL itself: it may hold a password
            raise ConfigurationError(
                "the old place needs a URL that starts with sqlite:///, postgresql://, mongodb:// or file:"
            )


def the_only(found: list[str], what: str, there: list[str], option: str) -> str:
    """The one that was found; otherwise an error that names what is there."""
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigurationError(f"several {what} may be meant: {', '.join(found)}; choose one with {option}")
    raise ConfigurationError(f"no {what} of a predecessor was found; choose one with {option}: {', '.join(there)}")
