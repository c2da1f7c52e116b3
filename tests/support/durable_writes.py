"""One write in a process of its own: ``python -m tests.support.durable_writes WORK DIRECTORY``.

The process answers in one system call what became of the write: "acknowledged", or the name of the error. It closes
the store after that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from firefly_memory import ConversationMemory, EntryStore, FileStore, FireflyMemoryError, MemoryEntry, SQLiteStore
from firefly_memory.cli import main as run_command

OLD, NEW = "the old text", "the new text"


def store_in(directory: Path, work: str) -> EntryStore:
    return SQLiteStore(directory / "memory.db") if work.startswith("sqlite") else FileStore(directory / "memory")


def archive_in(directory: Path) -> Path:
    return directory / "archive.jsonl"


def save(store: EntryStore, text: str, directory: Path) -> None:
    store.save("n", MemoryEntry(entry_id="e", content=text))


def add_turn(store: EntryStore, text: str, directory: Path) -> None:
    ConversationMemory(store=store).add_turn("c", text, text)


def new_conversation(store: EntryStore, text: str, directory: Path) -> None:
    ConversationMemory(store=store).new_conversation(text)


def clear(store: EntryStore, text: str, directory: Path) -> None:
    if text == OLD:
        save(store, text, directory)
    else:
        store.clear("n")


def export(store: EntryStore, text: str, directory: Path) -> None:
    archive = archive_in(directory)
    if text == OLD:
        save(store, NEW, directory)
        archive.write_text(OLD)
    elif run_command(["export", "--url", f"file://{directory / 'memory'}", str(archive)]) != 0:
        raise FireflyMemoryError("the export has failed")


WORK: dict[str, Callable[[EntryStore, str, Path], None]] = {
    "file_save": save,
    "file_turn": add_turn,
    "file_new_conversation": new_conversation,
    "file_clear": clear,
    "sqlite_save": save,
    "sqlite_turn": add_turn,
    "export": export,
}


def main() -> None:
    work, directory = sys.argv[1], Path(sys.argv[2])
    store = store_in(directory, work)
    try:
        WORK[work](store, NEW, directory)
    except FireflyMemoryError as exc:
        answer = type(exc).__name__
    else:
        answer = "acknowledged"
    os.write(sys.stdout.fileno(), answer.encode())
    store.close_sync()


if __name__ == "__main__":
    main()
