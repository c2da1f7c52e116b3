"""An archive, line by line, into a store. Whoever wrote the archive may have meant harm: each line is read within
bounds, and what cannot be read is refused by its number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.codec import DecodeError
from firefly_memory.conversations.flows import NewTurn
from firefly_memory.errors import ConfigurationError, CorruptDataError, FireflyMemoryError, NotSupportedError
from firefly_memory.facets import log_if_there
from firefly_memory.protocols import Capability, StoreView
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.file import FileStore
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.tokens.formula import estimated, rates_for
from firefly_memory.transfer.agent_history import CANNOT_BE_KEPT
from firefly_memory.transfer.items import CONVERSATION, DIALOGUE, ENTRY, FORMAT, MESSAGE, TURN, Counts, Item, Progress
from firefly_memory.transfer.reader import Reader
from firefly_memory.transfer.untrusted import without_authority
from firefly_memory.validation import at_least

MAX_LINE = 64 * 2**20
"""Characters that a line may have, unless somebody says otherwise."""

_LONGEST_LIMIT = 2**40
"""Characters: more than any machine reads into memory, and fewer than files can be asked for."""

_MOST_WAITING = 8 * 2**20
"""Characters of lines that wait to be saved together."""

_LONGEST_REASON = 500

_BELIEVED = 4
"""A turn costs at least this part of what its texts are worth, whatever the archive says."""

_KINDS = (ENTRY, CONVERSATION, TURN, DIALOGUE, MESSAGE)

_DAMAGE = (ArithmeticError, AttributeError, DecodeError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What :func:`~firefly_memory.transfer.archive.import_jsonl` was asked for."""

    dialogues: bool = True
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
    """The lines of a file. A line that is too long is cut after the first character that it has too many."""
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
        keeps = log_if_there(view_of(store), AGENT_HISTORY_LOG) is not None
        reader = _LineReader(view_of(target), counts, options, keeps_dialogues=keeps)
        number = 0
        try:
            for number, line in enumerate(lines_of(file, options.max_line), 1):
                await _take(reader, number, line, options)
                if progress is not None:
                    progress(counts)
        except UnicodeDecodeError as exc:
            raise CorruptDataError("import", f"the archive after line {number}", f"it is not UTF-8: {exc}") from exc
        if not reader.ended:
            raise CorruptDataError("import", f"the archive after line {number}", "it ends too early")
        return counts


@contextmanager
def _saved_into(store: EntryStore, view: StoreView, *, dry_run: bool) -> Iterator[EntryStore]:
    """The store itself or, for a dry run, an empty one that takes and refuses the same, and is deleted afterwards."""
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
        async with reader.whole_dialogues():
            await reader.take_line(number, _JSON.decode(line))
            await reader.keep_within_bounds(len(line))
    except _DAMAGE as exc:
        if isinstance(exc, FireflyMemoryError) and not isinstance(exc, ValueError):
            raise
        hint = "" if options.only is None else "; it may need something that `only` leaves out"
        raise CorruptDataError("import", where, f"{type(exc).__name__}: {_shortened(str(exc))}{hint}") from exc
    except NotSupportedError as exc:
        raise NotSupportedError(f"{where}: {exc}") from exc


def _shortened(reason: str) -> str:
    """It may have a part of the line in it, as long as somebody wished."""
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


class _ByFormula(TokenEstimator):
    """Needs no vocabulary, and so warns of none."""

    def estimate(self, text: str) -> int:
        return estimated(text, self.tokens_per_word, rates_for(None, None)) if text else 0


class _LineReader(Reader):
    """Between the first line and the last."""

    def __init__(self, view: StoreView, counts: Counts, options: ImportOptions, *, keeps_dialogues: bool) -> None:
        super().__init__(view, counts)
        self._options = options
        self._keeps_dialogues = keeps_dialogues
        self._lines = Counts()
        self._waiting = 0
        self.ended = False

    async def take_line(self, number: int, line: dict[str, Any]) -> None:
        if self.ended:
            raise ValueError("it comes after the end")
        if number == 1:
            if line.get("format") != FORMAT:
                raise ValueError(f"the format is {line.get('format')!r}, not {FORMAT}")
            return
        ((kind, item),) = line.items()
        if kind != "end":
            if kind not in _KINDS:
                raise ValueError(f"there are no lines of the kind {kind!r}")
            if self._is_wanted(kind, item):
                await self.take(kind, self._checked(kind, item))
            self._lines.add(kind)
            return
        await self.finish()
        if Counts(**item) != self._lines:
            raise ValueError("lines are missing")
        self.ended = True

    async def keep_within_bounds(self, size: int) -> None:
        """Lines wait to be saved together, unless they are long."""
        self._waiting += size
        if self._waiting > _MOST_WAITING:
            self._waiting = 0
            await self.save_all()

    def _is_wanted(self, kind: str, item: Item) -> bool:
        if kind in (DIALOGUE, MESSAGE) and not self._options.dialogues:
            return False
        name = item["namespace" if kind == ENTRY else "conversation_id"]
        return self._options.only is None or str.startswith(name, self._options.only)

    def _checked(self, kind: str, item: Item) -> Item:
        if kind == DIALOGUE and not self._keeps_dialogues:
            raise NotSupportedError(CANNOT_BE_KEPT)
        if kind == MESSAGE and not isinstance(_JSON_OF_PYDANTIC_AI.decode(item["message"]), dict):
            raise ValueError("its message is no object of JSON")
        if not self._options.untrusted:
            return item
        checked = without_authority(kind, item)
        if kind == TURN:
            self._counts.left_out += len(item.get("raw_messages") or ()) - len(checked.get("raw_messages") or ())
        return checked

    def _tokens(self, turn: NewTurn, said: int | None) -> int | None:
        if turn.raw_messages is None or said is None:
            return None
        texts = turn.user_prompt, turn.assistant_response, turn.raw_messages
        if said * _BELIEVED >= _ByFormula().estimate_turn(*texts):
            return said
        # The formula is too high for some texts, such as rows of one character.
        return max(said, TokenEstimator().estimate_turn(*texts) // _BELIEVED)


_JSON_OF_PYDANTIC_AI = json.JSONDecoder()
"""Which may have numbers in it that JSON has not."""
