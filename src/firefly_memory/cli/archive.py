"""What ``firefly-memory export`` and ``firefly-memory import`` do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from firefly_memory.cli.invocation import current
from firefly_memory.cli.left_out import left_out, wanted
from firefly_memory.cli.output import say, show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.replacing import check_replaces_no_store, written
from firefly_memory.cli.target import Where
from firefly_memory.errors import ConfigurationError
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.target import reading, store_of
from firefly_memory.transfer.archive import export_jsonl, import_jsonl
from firefly_memory.transfer.counts import Counts
from firefly_memory.transfer.estimates import estimated_items
from firefly_memory.transfer.import_archive import lines_of


def write_archive(where: Where, file: str, *, raw_messages: bool, quiet: bool, without: Mapping[str, bool]) -> None:
    if current().json and file == "-":
        raise ConfigurationError("--json prints to the standard output, where the archive goes; name a file for it")
    facets = left_out(without, raw_messages=raw_messages)
    found = where.target()
    if file != "-":
        check_replaces_no_store(Path(file), found)
    with (
        written(file) as archive,  # put in its place when the store was read to its end
        reading(found, timeout=where.timeout) as store,
        progress_bar("exported", quiet=_is_quiet(quiet), total=lambda _: estimated_items(found, facets)) as progress,
    ):
        counts = export_jsonl(store, archive, raw_messages=raw_messages, progress=progress, **wanted(without))
    _report({"exported": counts.as_dict()}, f"exported {counts.in_words()}", quiet=quiet)


def read_archive(
    where: Where,
    file: str,
    *,
    untrusted: bool,
    only: str | None,
    dry_run: bool,
    max_line: int,
    quiet: bool,
    **without: bool,
) -> None:
    found = where.target()
    max_line *= 2**20
    facets = wanted(without)
    with _read(file) as archive:
        lines = _of_an_archive(archive, max_line, facets)
        store = store_of(found, timeout=where.timeout)
        with (
            nullcontext() if dry_run else store,
            progress_bar(
                "imported",
                quiet=_is_quiet(quiet),
                total=lambda _: _size(archive),
                unit="B",
                done=lambda _: _position(archive),
            ) as progress,
        ):
            counts = import_jsonl(
                store,
                lines,
                untrusted=untrusted,
                only=only,
                dry_run=dry_run,
                max_line=max_line,
                progress=progress,
                **facets,
            )
    done = "would import" if dry_run else "imported"
    _report({"imported": counts.as_dict(), "dry_run": dry_run}, f"{done} {counts.in_words()}", quiet=quiet)


def _is_quiet(quiet: bool) -> bool:
    return quiet or current().json


def _size(file: TextIO) -> int | None:
    """In bytes; ``None`` of a pipe, which does not know."""
    return os.fstat(file.fileno()).st_size or None


def _position(file: TextIO) -> int:
    """How many bytes were read: a pipe does not know, and a file does not tell while its lines are read."""
    return os.lseek(file.fileno(), 0, os.SEEK_CUR) if file.buffer.seekable() else 0


@contextmanager
def _read(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield sys.stdin
        return
    with Path(name).open(encoding="utf-8") as file:
        yield file


def _of_an_archive(file: TextIO, max_line: int, facets: dict[str, Any]) -> Iterable[str]:
    """The lines of ``file``, whose first one was read: it says that this is an archive, before a store is made."""
    lines = lines_of(file, max_line)
    first: list[str] = []

    def nothing_but_the_first() -> Iterator[str]:
        for line in islice(lines, 1):
            first.append(line)
            yield from (line, json.dumps({"end": Counts().as_dict()}))

    import_jsonl(InMemoryStore(), nothing_but_the_first(), max_line=max_line, **facets)
    return chain(first, lines)


def _report(result: dict[str, Any], words: str, *, quiet: bool) -> None:
    """Words go to the standard error: an archive may be on the standard output."""
    if current().json:
        show(result, [])
    elif not quiet:
        say(words)
