"""``firefly-memory export`` and ``firefly-memory import``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from firefly_memory.cli.left_out import add_without, left_out, wanted
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.replacing import check_replaces_no_store, written
from firefly_memory.cli.target import add_target, target_of
from firefly_memory.cli.values import a_name, a_whole_number
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.target import reading, store_of
from firefly_memory.transfer.archive import MAX_LINE, export_jsonl, import_jsonl
from firefly_memory.transfer.counts import Counts
from firefly_memory.transfer.estimates import estimated_items
from firefly_memory.transfer.import_archive import lines_of


def add_to(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="write all entries and conversations to a file of JSON Lines",
        description="Write all live entries and all conversations, those of pydantic-ai's ConversationStore included, "
        "to a file of JSON Lines, in constant memory. The store is only read: it is not migrated either.",
    )
    add_target(export)
    export.add_argument(
        "file", nargs="?", type=a_name, default="-", help="the file to write, by default the standard output"
    )
    export.add_argument("--no-messages", action="store_true", help="leave out all messages, keep the texts of turns")
    add_without(export)
    export.add_argument("--quiet", action="store_true", help="no progress bar and no summary")
    export.set_defaults(run=_export)
    imports = commands.add_parser(
        "import",
        help="save what was exported",
        description="Save what `firefly-memory export` wrote. Importing the same again changes nothing, so an import "
        "that broke off is simply started again. Entries take the place of those with their ids. Whoever wrote the "
        "archive decides what your agents remember: use --dry-run first, and --untrusted where it was a stranger.",
    )
    add_target(imports)
    imports.add_argument(
        "file", nargs="?", type=a_name, default="-", help="the file to read, by default the standard input"
    )
    imports.add_argument(
        "--untrusted",
        action="store_true",
        help="count all tokens anew, mark facts as written by a model, and leave out summaries, whatever speaks to a "
        "model as the system, and messages of a shape that is not known",
    )
    imports.add_argument(
        "--only", type=a_name, metavar="PREFIX", help="only what is in namespaces and conversations that start with it"
    )
    imports.add_argument("--dry-run", action="store_true", help="read and check everything, change nothing")
    imports.add_argument(
        "--max-line",
        type=a_whole_number,
        default=MAX_LINE // 2**20,
        metavar="MB",
        help=f"refuse longer lines ({MAX_LINE // 2**20}); a line is read into memory",
    )
    add_without(imports)
    imports.add_argument("--quiet", action="store_true", help="no progress bar and no summary")
    imports.set_defaults(run=_import)


def _export(arguments: argparse.Namespace) -> None:
    raw_messages = not arguments.no_messages
    without = left_out(arguments, raw_messages=raw_messages)
    found = target_of(arguments)
    if arguments.file != "-":
        check_replaces_no_store(Path(arguments.file), found)
    with (
        written(arguments.file) as file,  # put in its place when the store was read to its end
        reading(found) as store,
        progress_bar("exported", quiet=arguments.quiet, total=lambda _: estimated_items(found, without)) as progress,
    ):
        counts = export_jsonl(store, file, raw_messages=raw_messages, progress=progress, **wanted(arguments))
    _say(arguments, "exported", counts)


def _import(arguments: argparse.Namespace) -> None:
    found = target_of(arguments)
    max_line = arguments.max_line * 2**20
    with _read(arguments.file) as file:
        facets = wanted(arguments)
        lines = _of_an_archive(file, max_line, facets)
        store = store_of(found)
        with (
            nullcontext() if arguments.dry_run else store,
            progress_bar(
                "imported",
                quiet=arguments.quiet,
                total=lambda _: _size(file),
                unit="B",
                done=lambda _: _position(file),
            ) as progress,
        ):
            counts = import_jsonl(
                store,
                lines,
                untrusted=arguments.untrusted,
                only=arguments.only,
                dry_run=arguments.dry_run,
                max_line=max_line,
                progress=progress,
                **facets,
            )
    _say(arguments, "would import" if arguments.dry_run else "imported", counts)


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


def _say(arguments: argparse.Namespace, done: str, counts: Counts) -> None:
    if not arguments.quiet:
        print(f"{done} {counts.in_words()}", file=sys.stderr)
