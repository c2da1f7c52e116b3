"""What ``firefly-memory doctor`` looks at where a store is files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.listing_file import NAME as LIST_FILE
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.databases.diagnostics import Finding, ok, problem, warning
from firefly_memory.databases.files.diagnosis import by_others, file_system, free_space
from firefly_memory.errors import DatabaseConnectionError, FireflyMemoryError
from firefly_memory.identifiers import CONVERSATIONS, original_name
from firefly_memory.stores.file import LOCKS, FileStore
from firefly_memory.tombstones.in_files import NAME as TOMBSTONES_FILE
from firefly_memory.url_text import directory_in


def diagnose(url: str, **_: Any) -> Iterator[Finding]:
    """The directory of a :class:`FileStore`."""
    directory = Path(directory_in(url)).absolute()
    if not directory.is_dir():
        raise DatabaseConnectionError("doctor", f"there is no directory {directory}")
    if os.access(directory, os.W_OK | os.X_OK):
        yield ok("directory", f"{directory} is writable")
    else:
        yield problem("directory", f"{directory} is not writable", "give this user the right to write there")
    yield from by_others([directory])
    yield from file_system(directory)
    yield from free_space(directory, 0)
    if os.access(directory, os.R_OK | os.X_OK):
        yield from _files(directory)
    else:
        yield problem("files", f"{directory} cannot be listed", "give this user the right to read it")


def _files(directory: Path) -> Iterator[Finding]:
    store = FileStore(directory)
    files = sorted(path for path in directory.iterdir() if path.suffix == ".json")
    live, sound = 0, True
    for path in files:
        try:
            live += _live_in(store, from_json(path.read_bytes())["namespace"])
        except (OSError, FireflyMemoryError, KeyError, TypeError, ValueError) as exc:
            sound = False
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            yield problem("file", f"{path} cannot be read: {reason}", "mend it, or put a copy of it in its place")
            continue
        if not os.access(path, os.W_OK):
            yield problem("file", f"{path} is not writable", "give this user the right to write it")
    try:
        run_without_loop(store.blocking.log(CONVERSATION_LOG).page(1, None))
    except (OSError, FireflyMemoryError) as exc:
        sound = False
        do = "mend it, or put a copy of it in its place: without it no conversation is listed"
        yield problem("file", f"the list of conversations cannot be read: {exc}", do)
    yield from by_others([*files, directory / LIST_FILE, directory / TOMBSTONES_FILE])
    yield from by_others(sorted((directory / LOCKS).glob("*")))  # whoever may read one may hold it
    if sound:
        yield ok("files", f"each of {len(files):,} can be read; {live:,} live entries and turns")
    for path in sorted(directory.glob("*.tmp")):
        found = f"{path} is left from a write that broke off, or one is under way"
        yield warning("file", found, "if nobody is writing, delete it: the file beside it is whole")


def _live_in(store: FileStore, namespace: object) -> int:
    """How many live entries, or turns of a conversation, the file of this stored namespace has. All of it is read."""
    if not isinstance(namespace, str):
        raise TypeError(f"its namespace is {type(namespace).__name__}, not text")
    if namespace == CONVERSATIONS:
        return 0  # the list of an earlier version, which is read with the one of today
    if not namespace.startswith(CONVERSATIONS):
        return len(store.load(original_name(namespace)))
    head = run_without_loop(store.blocking.log(CONVERSATION_LOG).head(namespace.removeprefix(CONVERSATIONS)))
    return 0 if head is None else head.turns
