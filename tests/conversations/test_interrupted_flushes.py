"""A flush over a backend with the five methods, which is interrupted between two of its writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firefly_memory import EntryStore, MemoryEntry, adapt
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.flush_chains import MINUTE, chain_of, flush_of, make_flush
from tests.support.folder_backend import FolderStore
from tests.support.turns import NOW, a_turn


class EndedError(OSError):
    """The process ends here."""


class Fragile(FolderStore):
    """Ends after so many more writes."""

    left = 1000

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        self._count()
        super().save(namespace, entry)

    def delete(self, namespace: str, entry_id: str) -> None:
        self._count()
        super().delete(namespace, entry_id)

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise EndedError


def opened(directory: Path, backend: type[FolderStore] = FolderStore) -> tuple[Any, EntryStore]:
    folder = backend(directory)
    return folder, adapt(folder)


@pytest.mark.parametrize("writes", range(6))
def test_an_interrupted_flush_loses_only_turns_that_it_drops(writes: int, tmp_path: Path) -> None:
    _, store = opened(tmp_path)
    log: Any = store.blocking.log(CONVERSATION_LOG)
    metadata = log.form.encode({}, "metadata")
    for number in range(4):
        run_without_loop(log.append("c", a_turn(f"{number}", key=f"{number}")._replace(metadata=metadata), None))
    first = make_flush(store, "c", 1, "first")
    head = run_without_loop(log.head("c"))
    flush, after = flush_of(head, 3, 30, "second", drops=True)
    assert run_without_loop(log.claim("c", flush.flush_id, 1, NOW, NOW + MINUTE))

    folder, fragile = opened(tmp_path, Fragile)
    folder.left = writes
    try:
        done = run_without_loop(fragile.blocking.log(CONVERSATION_LOG).flush("c", flush, after))
    except EndedError:
        done = False
    assert done is (writes == 5), "the flush, the summary, three turns"

    now = run_without_loop(log.head("c"))
    assert (now.turns, now.tokens) == (4, 40)
    turns = [turn.turn_id for turn in run_without_loop(log.turns("c", -1, None))]
    in_force = [each.flush_id for each in chain_of(store, "c")]
    if writes < 2:
        assert (now, turns, in_force) == (head, [0, 1, 2, 3], [first])
    else:
        assert (now.evicted_turns, now.dropped_turns, now.summary) == (3, 3, "second")
        assert (turns, in_force) == ([3], [flush.flush_id, first])
        assert run_without_loop(log.find("c", "1")) is None
    appended = run_without_loop(log.append("c", a_turn("next", key="1")._replace(metadata=metadata), None))
    assert (appended is None) is (writes < 2)
