"""Exports all contents of a store as JSON Lines, and imports them. Memory use is constant; an import can be repeated.

The first line says what the file is, the last one how much is in it. Between them each line is an item of a facet, by
the name of its kind: an entry, a conversation, a turn. Turns come after their conversation, and the messages of agent
history after theirs. Values are written as :data:`~firefly_memory.codec.DOCUMENT` says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import IO, Any

from firefly_memory import clock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import InvalidEntryError
from firefly_memory.moving import Walk
from firefly_memory.protocols import MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.transfer.counts import Counts, Progress, report
from firefly_memory.transfer.import_archive import FORMAT, MAX_LINE, ImportOptions, imported
from firefly_memory.transfer.registered import MovedFacet, left_out, moved_facets
from firefly_memory.transfer.walking import has_items, items_of

__all__ = [
    "FORMAT",
    "MAX_LINE",
    "Progress",
    "async_export_jsonl",
    "async_import_jsonl",
    "export_jsonl",
    "import_jsonl",
]


def export_jsonl(
    store: MemoryStore,
    file: IO[str],
    *,
    raw_messages: bool = True,
    progress: Progress | None = None,
    **facets: bool,
) -> Counts:
    """Write everything but expired entries of ``store`` to ``file``, and return how many of each kind there are.

    With ``raw_messages=False`` turns are written without their messages. What is saved meanwhile may or may not be in
    the file. Of a store without ``Capability.LISTING``, the entries are not written. The conversations of pydantic-ai's
    ``ConversationStore``, which are all messages, are left out with ``raw_messages=False`` or ``agent_history=False``.
    Other facets that can be left out have an argument of their name as well.
    """
    counts = Counts()
    for line in _at_once(_lines(adapt(store).blocking, counts, left_out(facets), raw_messages)):
        file.write(line)
        report(progress, "exported", counts)
    return counts


async def async_export_jsonl(
    store: MemoryStore,
    file: IO[str],
    *,
    raw_messages: bool = True,
    progress: Progress | None = None,
    **facets: bool,
) -> Counts:
    """Write everything but expired entries of ``store`` to ``file``, and return how many of each kind there are.

    With ``raw_messages=False`` turns are written without their messages. What is saved meanwhile may or may not be in
    the file. Of a store without ``Capability.LISTING``, the entries are not written. The conversations of pydantic-ai's
    ``ConversationStore``, which are all messages, are left out with ``raw_messages=False`` or ``agent_history=False``.
    Other facets that can be left out have an argument of their name as well.
    """
    counts = Counts()
    async for line in _lines(adapt(store).suspending, counts, left_out(facets), raw_messages):
        file.write(line)
        report(progress, "exported", counts)
    return counts


def import_jsonl(
    store: MemoryStore,
    file: Iterable[str],
    *,
    untrusted: bool = False,
    only: str | None = None,
    dry_run: bool = False,
    max_line: int = MAX_LINE,
    progress: Progress | None = None,
    **facets: bool,
) -> Counts:
    """Save an archive of :func:`export_jsonl`, and return the numbers of its items.

    Importing the same again changes nothing, so an import that broke off is simply started again. An entry takes the
    place of the one with its id; a conversation that has other turns already is a ``TurnConflictError``, and one of
    pydantic-ai that is another one already a ``ConflictError``. A file that is damaged or ends too early is a
    ``CorruptDataError`` that names the line; what came before it has been saved. Conversations of pydantic-ai are a
    ``NotSupportedError`` in a store that cannot keep them, unless ``agent_history=False`` leaves them out. An archive
    with items of a kind that only a later release knows is a ``NotSupportedError`` before anything is saved.

    What turns cost is what the archive says, but never less than a quarter of what their texts are worth. Of an
    ``untrusted`` archive tokens are counted anew, nothing is kept that a model would take for the system's, and facts
    count as written by a model. ``only`` takes the entries whose namespace, and the conversations whose id, starts so.
    With ``dry_run`` everything is read and checked, and nothing is saved; ``store`` is not even opened. A line of more
    than ``max_line`` characters is refused before it is in memory, where ``file`` is one.
    """
    options = ImportOptions(left_out(facets), untrusted, only, dry_run, max_line)
    return run_without_loop(imported(adapt(store), lambda store: store.blocking, file, options, progress))


async def async_import_jsonl(
    store: MemoryStore,
    file: Iterable[str],
    *,
    untrusted: bool = False,
    only: str | None = None,
    dry_run: bool = False,
    max_line: int = MAX_LINE,
    progress: Progress | None = None,
    **facets: bool,
) -> Counts:
    """Save an archive of :func:`export_jsonl`, and return the numbers of its items.

    Importing the same again changes nothing, so an import that broke off is simply started again. An entry takes the
    place of the one with its id; a conversation that has other turns already is a ``TurnConflictError``, and one of
    pydantic-ai that is another one already a ``ConflictError``. A file that is damaged or ends too early is a
    ``CorruptDataError`` that names the line; what came before it has been saved. Conversations of pydantic-ai are a
    ``NotSupportedError`` in a store that cannot keep them, unless ``agent_history=False`` leaves them out. An archive
    with items of a kind that only a later release knows is a ``NotSupportedError`` before anything is saved.

    What turns cost is what the archive says, but never less than a quarter of what their texts are worth. Of an
    ``untrusted`` archive tokens are counted anew, nothing is kept that a model would take for the system's, and facts
    count as written by a model. ``only`` takes the entries whose namespace, and the conversations whose id, starts so.
    With ``dry_run`` everything is read and checked, and nothing is saved; ``store`` is not even opened. A line of more
    than ``max_line`` characters is refused before it is in memory, where ``file`` is one.
    """
    options = ImportOptions(left_out(facets), untrusted, only, dry_run, max_line)
    return await imported(adapt(store), lambda store: store.suspending, file, options, progress)


def _at_once(lines: AsyncIterator[str]) -> Iterator[str]:
    """A blocking iterator over an asynchronous one that never suspends."""

    async def following() -> str | None:
        return await anext(lines, None)

    while (line := run_without_loop(following())) is not None:
        yield line


async def _lines(view: StoreView, counts: Counts, without: frozenset[str], raw_messages: bool) -> AsyncIterator[str]:
    walk, facets = Walk(view, raw_messages), moved_facets(without, raw_messages=raw_messages)
    header: dict[str, Any] = {"format": FORMAT, "created_at": clock.now().isoformat(), "raw_messages": raw_messages}
    kinds = await _newer_kinds(walk, facets)
    yield _line({**header, "kinds": kinds} if kinds else header)
    async for kind, item in items_of(walk, facets):
        counts.add(kind)
        yield _line({kind.name: item})
    yield _line({"end": counts.as_archived()})


async def _newer_kinds(walk: Walk, facets: list[MovedFacet]) -> dict[str, Any]:
    """The kinds in the archive that an earlier release does not know, which has to refuse it."""
    found: dict[str, Any] = {}
    for facet in facets:
        newer = [kind for kind in facet.all_kinds() if kind.since is not None]
        if newer and await has_items(walk, facet):
            there = [kind for kind in newer if kind.is_in is None or await kind.is_in(walk)]
            found |= {kind.name: {"version": kind.version, "since": kind.since} for kind in there}
    return found


def _line(item: dict[str, Any]) -> str:
    try:
        return json.dumps(item) + "\n"
    except ValueError as exc:  # Python's limit for the digits of an integer
        raise InvalidEntryError("the archive", f"cannot hold a value; `firefly-memory copy` can ({exc})") from exc
