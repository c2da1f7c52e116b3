"""Everything a store keeps, as JSON Lines: out in constant memory, in again as often as one likes.

The first line says what the file is, the last one how much is in it. Between them each line is an entry, a conversation
or a turn, whose conversation came before it; so it is with a dialogue and its entries, which are what pydantic-ai's
``ConversationStore`` keeps. Values are written as :data:`~firefly_memory.codec.DOCUMENT` says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import IO, Any

from firefly_memory import clock
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.codec import DOCUMENT
from firefly_memory.concurrency.sync_bridge import finish
from firefly_memory.conversations.transfer import turn_as_json
from firefly_memory.conversations.types import ConversationInfo
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import InvalidEntryError
from firefly_memory.facets import log_if_there
from firefly_memory.identifiers import stored_text
from firefly_memory.protocols import Capability, MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.transfer.agent_history import dialogues_of, messages_of
from firefly_memory.transfer.import_archive import MAX_LINE, ImportOptions, imported
from firefly_memory.transfer.items import (
    CONVERSATION,
    DIALOGUE,
    ENTRY,
    FORMAT,
    MESSAGE,
    TURN,
    Counts,
    Item,
    Placed,
    Progress,
)
from firefly_memory.transfer.reader import PAGE, Flows

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
    dialogues: bool = True,
    progress: Progress | None = None,
) -> Counts:
    """Write all live entries and all conversations of ``store`` to ``file``, and return how many.

    With ``raw_messages=False`` turns are written without their messages. What is saved meanwhile may or may not be in
    the file. Of a store without ``Capability.LISTING``, only the conversations are written. Those of pydantic-ai's
    ``ConversationStore``, which are all messages, are left out with ``raw_messages=False`` or ``dialogues=False``.
    """
    counts = Counts()
    for line in _at_once(_lines(adapt(store).blocking, counts, raw_messages, dialogues)):
        file.write(line)
        _report(progress, counts)
    return counts


async def async_export_jsonl(
    store: MemoryStore,
    file: IO[str],
    *,
    raw_messages: bool = True,
    dialogues: bool = True,
    progress: Progress | None = None,
) -> Counts:
    counts = Counts()
    async for line in _lines(adapt(store).suspending, counts, raw_messages, dialogues):
        file.write(line)
        _report(progress, counts)
    return counts


def import_jsonl(
    store: MemoryStore,
    file: Iterable[str],
    *,
    dialogues: bool = True,
    untrusted: bool = False,
    only: str | None = None,
    dry_run: bool = False,
    max_line: int = MAX_LINE,
    progress: Progress | None = None,
) -> Counts:
    """Save what :func:`export_jsonl` wrote, and return how much.

    Importing the same again changes nothing, so an import that broke off is simply started again. An entry takes the
    place of the one with its id; a conversation that has other turns already is a ``TurnConflictError``, and one of
    pydantic-ai that is another one already a ``ConflictError``. A file that is damaged or ends too early is a
    ``CorruptDataError`` that names the line; what came before it has been saved. Conversations of pydantic-ai are a
    ``NotSupportedError`` in a store that cannot keep them, unless ``dialogues=False`` leaves them out.

    What turns cost is what the archive says, but never less than a quarter of what their texts are worth. Of an
    ``untrusted`` archive tokens are counted anew, nothing is kept that a model would take for the system's, and facts
    count as written by a model. ``only`` takes the entries whose namespace, and the conversations whose id, starts so.
    With ``dry_run`` everything is read and checked, and nothing is saved; ``store`` is not even opened. A line of more
    than ``max_line`` characters is refused before it is in memory, where ``file`` is one.
    """
    options = ImportOptions(dialogues, untrusted, only, dry_run, max_line)
    return finish(imported(adapt(store), lambda store: store.blocking, file, options, progress))


async def async_import_jsonl(
    store: MemoryStore,
    file: Iterable[str],
    *,
    dialogues: bool = True,
    untrusted: bool = False,
    only: str | None = None,
    dry_run: bool = False,
    max_line: int = MAX_LINE,
    progress: Progress | None = None,
) -> Counts:
    options = ImportOptions(dialogues, untrusted, only, dry_run, max_line)
    return await imported(adapt(store), lambda store: store.suspending, file, options, progress)


async_export_jsonl.__doc__ = export_jsonl.__doc__
async_import_jsonl.__doc__ = import_jsonl.__doc__


def _report(progress: Progress | None, counts: Counts) -> None:
    if progress is not None:
        progress(counts)


def _at_once(lines: AsyncIterator[str]) -> Iterator[str]:
    """An asynchronous iterator that never suspends, as an ordinary one."""

    async def following() -> str | None:
        return await anext(lines, None)

    while (line := finish(following())) is not None:
        yield line


async def _lines(view: StoreView, counts: Counts, raw_messages: bool, dialogues: bool) -> AsyncIterator[str]:
    def line(kind: str, item: Item) -> str:
        counts.add(kind)
        return _line({kind: item})

    yield _line({"format": FORMAT, "created_at": clock.now().isoformat(), "raw_messages": raw_messages})
    if Capability.LISTING in view.capabilities:
        async for _, entry in entries_of(view):
            yield line(ENTRY, entry)
    async for _, conversation in conversations_of(view):
        yield line(CONVERSATION, conversation)
        async for _, turn in turns_of(view, conversation, raw_messages=raw_messages):
            yield line(TURN, turn)
    if raw_messages and dialogues:
        log = log_if_there(view, AGENT_HISTORY_LOG)
        given: set[str] = set()
        async for _, dialogue in dialogues_of(log):
            yield line(DIALOGUE, dialogue)
            async for _, message in messages_of(log, dialogue, given, given):
                yield line(MESSAGE, message)
    yield _line({"end": counts.as_dict()})


async def entries_of(view: StoreView) -> Placed:
    """All live entries."""
    async for namespace in _namespaces(view):
        after: str | None = None
        while True:
            page = await view.load_page(namespace, PAGE, after)
            for entry in page:
                place = (stored_text(namespace), entry.created_at, stored_text(entry.entry_id))
                yield place, {"namespace": namespace, **_entry_as_json(entry)}
            after = page.next
            if after is None:
                break


async def conversations_of(view: StoreView) -> Placed:
    """All conversations. These are listed newest first: their places shrink."""
    flows = Flows(view)
    async for conversation in _conversations(flows):
        name = conversation.conversation_id
        summary = await flows.get_summary(name)  # which may stand for turns that are nowhere any more
        yield (
            (conversation.created_at, stored_text(name)),
            {
                "conversation_id": name,
                "created_at": conversation.created_at.isoformat(),
                "summary": summary,
                # What was dropped is nowhere: a copy begins with what comes after it.
                "summarized_turns": conversation.summarized_turns - conversation.dropped_turns,
                **({"dropped_turns": conversation.dropped_turns} if conversation.dropped_turns else {}),
            },
        )


async def turns_of(view: StoreView, conversation: Item, *, raw_messages: bool = True) -> Placed:
    """All turns of a conversation, counted from 0."""
    name = conversation["conversation_id"]
    async for turn, key in Flows(view).keyed_turns(name):
        item = {"conversation_id": name, **turn_as_json(turn, raw_messages=raw_messages)}
        item["turn_id"] -= conversation.get("dropped_turns", 0)
        yield item["turn_id"], item if key is None else {**item, "idempotency_key": key}


async def _namespaces(view: StoreView) -> AsyncIterator[str]:
    after: str | None = None
    while page := await view.namespaces(limit=PAGE, after=after):
        for namespace in page:
            yield namespace
        after = page[-1]


async def _conversations(flows: Flows) -> AsyncIterator[ConversationInfo]:
    after: str | None = None
    while True:
        page = await flows.list_conversations(PAGE, after)
        for conversation in page:
            yield conversation
        after = page.next
        if after is None:
            return


def _line(item: dict[str, Any]) -> str:
    try:
        return json.dumps(item) + "\n"
    except ValueError as exc:  # Python's limit for the digits of an integer
        raise InvalidEntryError("the archive", f"cannot hold a value; `firefly-memory copy` can ({exc})") from exc


def _entry_as_json(entry: MemoryEntry) -> dict[str, Any]:
    return {
        "entry_id": entry.entry_id,
        "scope": entry.scope.value,
        "key": entry.key,
        "content": DOCUMENT.encode(entry.content),
        "metadata": DOCUMENT.encode(entry.metadata),
        "created_at": entry.created_at.isoformat(),
        "expires_at": None if entry.expires_at is None else entry.expires_at.isoformat(),
        "importance": entry.importance,
    }
