"""Imports an archive into a store, line by line. The archive may be hostile: each line is read within bounds, and an
error names the number of an unreadable line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from firefly_memory.codec import DecodeError
from firefly_memory.errors import ConfigurationError, CorruptDataError, FireflyMemoryError, NotSupportedError
from firefly_memory.moving import Item, Kind, Writing
from firefly_memory.protocols import Capability, StoreView
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.file import FileStore
from firefly_memory.transfer.counts import Counts, Progress, report
from firefly_memory.transfer.registered import MovedFacet, kinds_by_name
from firefly_memory.transfer.writer import ItemWriter
from firefly_memory.validation import at_least

FORMAT = "firefly-memory-archive/1"
"""The format that the first line of an archive names."""

MAX_LINE = 64 * 2**20
"""The default for the most characters in a line."""

_LONGEST_LIMIT = 2**40
"""The highest possible bound in characters: a file can be asked for no more at once."""

_MOST_WAITING = 8 * 2**20
"""The most characters of lines that are saved together."""

_LONGEST_REASON = 500

_DAMAGE = (ArithmeticError, AttributeError, DecodeError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of :func:`~firefly_memory.transfer.archive.import_jsonl`."""

    without: frozenset[str] = frozenset()
    untrusted: bool = False
    only: str | None = None
    dry_run: bool = False
    max_line: int = MAX_LINE

    def __post_init__(self) -> None:
        if at_least(1, "max_line", self.max_line) > _LONGEST_LIMIT:
            most = f"{_LONGEST_LIMIT:,} characters (--max-line {_LONGEST_LIMIT // 2**20})"
            raise ConfigurationError(f"max_line must be at most {most}")
        if self.only is not None and not isinstance(self.only, str):
            raise ConfigurationError(f"only must be what names begin with, not {self.only!r}")


def lines_of(file: Iterable[str], max_line: int) -> Iterator[str]:
    """The lines of a file. A line that is too long is cut one character after its bound."""
    readline = getattr(file, "readline", None)
    if readline is None:
        yield from file
        return
    while line := readline(max_line + 1):
        yield line


async def imported(
    store: EntryStore,
    view_of: Callable[[EntryStore], StoreView],
    file: Iterable[str],
    options: ImportOptions,
    progress: Progress | None,
) -> Counts:
    with _saved_into(store, view_of(store), dry_run=options.dry_run) as target:
        counts = Counts()
        reader = _LineReader(ItemWriter(view_of(target), counts, Writing()), view_of(store), counts, options)
        number = 0
        try:
            for number, line in enumerate(lines_of(file, options.max_line), 1):
                await _take(reader, number, line, options)
                report(progress, "imported", counts)
        except UnicodeDecodeError as exc:
            raise CorruptDataError("import", f"the archive after line {number}", f"it is not UTF-8: {exc}") from exc
        if not reader.ended:
            raise CorruptDataError("import", f"the archive after line {number}", "it ends too early")
        return counts


@contextmanager
def _saved_into(store: EntryStore, view: StoreView, *, dry_run: bool) -> Iterator[EntryStore]:
    """The store; for a dry run, an empty temporary store that accepts and refuses the same items."""
    if not dry_run:
        yield store
        return
    has_unique_ids = Capability.UNIQUE_IDS in view.capabilities
    with TemporaryDirectory(prefix="firefly-memory-") as directory, _empty(has_unique_ids, Path(directory)) as scratch:
        yield scratch


def _empty(has_unique_ids: bool, directory: Path) -> EntryStore:
    if not has_unique_ids:
        return FileStore(directory)
    from firefly_memory.stores.sqlite import SQLiteStore

    return SQLiteStore(directory / "dry-run.db", synchronous="NORMAL")


async def _take(reader: _LineReader, number: int, line: str, options: ImportOptions) -> None:
    where = f"line {number} of the archive"
    if len(line) > options.max_line:
        longer = f"it is longer than {options.max_line:,} characters, which max_line (--max-line) allows"
        raise CorruptDataError("import", where, longer)
    try:
        async with reader.writer.whole_items():
            await reader.take_line(number, _JSON.decode(line))
            await reader.keep_within_bounds(len(line))
    except _DAMAGE as exc:
        if isinstance(exc, FireflyMemoryError) and not isinstance(exc, ValueError):
            raise
        hint = "" if options.only is None else "; it may need something that `only` leaves out"
        raise CorruptDataError("import", where, f"{type(exc).__name__}: {_shortened(str(exc))}{hint}") from exc
    except NotSupportedError as exc:
        raise NotSupportedError(f"{where}: {_shortened(str(exc))}") from exc


def _shortened(reason: str) -> str:
    """A short form of the error, which may quote a part of a very long line."""
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


_JSON = json.JSONDecoder(parse_float=_number, parse_constant=_no_number, object_pairs_hook=_object)


class _LineReader:
    """The items between the first line and the last line."""

    def __init__(self, writer: ItemWriter, target: StoreView, counts: Counts, options: ImportOptions) -> None:
        self.writer = writer
        self._target = target
        self._counts = counts
        self._options = options
        self._kinds = kinds_by_name()
        self._kept: dict[str, bool] = {}  # by facet, whether the target keeps it
        self._lines = Counts()
        self._waiting = 0
        self.ended = False

    async def take_line(self, number: int, line: dict[str, Any]) -> None:
        if self.ended:
            raise ValueError("it comes after the end")
        if number == 1:
            self._check_header(line)
            return
        ((name, item),) = line.items()
        if name != "end":
            if name not in self._kinds:
                raise ValueError(f"there are no lines of the kind {name!r} that this version knows")
            await self._take(*self._kinds[name], item)
            return
        await self.writer.finish()
        if Counts.of_archive(item) != self._lines:
            raise ValueError("lines are missing")
        self.ended = True

    def _check_header(self, line: dict[str, Any]) -> None:
        if line.get("format") != FORMAT:
            raise ValueError(f"the format is {line.get('format')!r}, not {FORMAT}")
        for name, needed in line.get("kinds", {}).items():
            facet, kind = self._kinds.get(name, (None, None))
            if facet is not None and facet.name in self._options.without:
                continue
            if kind is None or needed["version"] > kind.version:
                raise NotSupportedError(
                    f"the archive has items of the kind {name!r} in version {needed['version']}, which this version "
                    f"does not know; it needs {needed['since']}"
                )

    async def _take(self, facet: MovedFacet, kind: Kind, item: Item) -> None:
        if self._is_wanted(facet, kind, item):
            self._check_is_kept(facet)
            item, left_out = kind.from_archive(item, self._options.untrusted)
            await self.writer.take(kind, item)
            self._counts.left_out += left_out
        self._lines.add(kind)

    async def keep_within_bounds(self, size: int) -> None:
        """Collect lines, so that short ones are saved together."""
        self._waiting += size
        if self._waiting > _MOST_WAITING:
            self._waiting = 0
            await self.writer.flush()

    def _is_wanted(self, facet: MovedFacet, kind: Kind, item: Item) -> bool:
        if facet.name in self._options.without:
            return False
        name = item[kind.selected_by]
        return self._options.only is None or str.startswith(name, self._options.only)

    def _check_is_kept(self, facet: MovedFacet) -> None:
        if facet.name not in self._kept:
            self._kept[facet.name] = facet.is_in(self._target)
        if not self._kept[facet.name]:
            raise facet.is_missing()
