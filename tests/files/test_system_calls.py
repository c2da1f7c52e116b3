"""R9, acknowledged is durable, as kill -9 cannot show it: what is written reaches the disk before it is acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from firefly_memory import ConversationMemory
from tests.support.durable_writes import NEW, OLD, WORK, archive_in, store_in
from tests.support.system_calls import RENAMES, SYNCS, WRITES, SystemCall, calls_of

pytestmark = pytest.mark.thorough

WORKER = "tests.support.durable_writes"
REFUSED = ("DatabaseStoreError", "FireflyMemoryError")  # by a store, by the command that exports
UNSYNCED = ("OutcomeUnknownError", "FireflyMemoryError")


def run(work: str, directory: Path, refuse: SystemCall | None = None) -> tuple[list[SystemCall], str]:
    """The calls to files below ``directory`` until the answer, in their order, and the answer."""
    calls = calls_of(WORKER, work, str(directory), log=directory.parent / "system-calls", refuse=refuse)
    end = max(number for number, call in enumerate(calls) if call.text.startswith("1<"))
    return [call for call in calls[:end] if call.path.startswith(str(directory))], calls[end].text.split('"')[1]


def prepared(work: str, directory: Path) -> Path:
    directory.mkdir()
    with store_in(directory, work) as store:
        WORK[work](store, OLD, directory)
    return directory


def contents(work: str, directory: Path) -> list[str]:
    """The texts that a new process would find."""
    if work == "export":
        archive = archive_in(directory).read_text()
        return [OLD] if archive == OLD else [text for text in (OLD, NEW) if text in archive]
    with store_in(directory, work) as store:
        memory = ConversationMemory(store=store)
        if work.endswith("turn"):
            return [turn.user_prompt for turn in memory.get_turns("c")]
        if work.endswith("conversation"):
            return sorted(each.conversation_id for each in memory.list_conversations())
        return [str(entry.content) for entry in store.load("n")]


def new_state(work: str) -> list[str]:
    if work.endswith(("turn", "conversation")):
        return sorted([OLD, NEW]) if work.endswith("conversation") else [OLD, NEW]
    return [] if work == "file_clear" else [NEW]


@pytest.mark.parametrize("work", ["file_save", "file_turn", "export"])
def test_a_file_is_synced_before_it_is_renamed_and_its_directory_after(work: str, tmp_path: Path) -> None:
    calls, answer = run(work, prepared(work, tmp_path / "data"))
    assert answer == "acknowledged"
    writes = [number for number, call in enumerate(calls) if call.name in WRITES]
    (renamed,) = (number for number, call in enumerate(calls) if call.name in RENAMES)
    target = Path(calls[renamed].path)
    synced = [call.path for call in calls[max(writes) + 1 : renamed] if call.name in SYNCS]
    assert synced == [calls[max(writes)].path]
    assert [call.path for call in calls[renamed + 1 :] if call.name in SYNCS] == [str(target.parent)]


def test_a_deleted_file_is_acknowledged_after_its_directory_is_synced(tmp_path: Path) -> None:
    calls, answer = run("file_clear", prepared("file_clear", tmp_path / "data"))
    assert (answer, [(call.name, call.path) for call in calls]) == (
        "acknowledged",
        [("fsync", str(tmp_path / "data" / "memory"))],
    )


@pytest.mark.parametrize("work", ["sqlite_save", "sqlite_turn", "file_new_conversation"])
def test_what_is_appended_to_a_file_is_synced_before_the_answer(work: str, tmp_path: Path) -> None:
    calls, answer = run(work, prepared(work, tmp_path / "data"))
    written = [number for number, call in enumerate(calls) if call.name in WRITES and not call.path.endswith("-shm")]
    assert answer == "acknowledged"
    assert calls[max(written)].path in [call.path for call in calls[max(written) :] if call.name in SYNCS]


def first_and_last(calls: list[SystemCall]) -> list[SystemCall]:
    """Of the calls with one name to one file."""
    same: dict[tuple[str, str], list[SystemCall]] = {}
    for call in calls:
        same.setdefault((call.name, call.path), []).append(call)
    return [call for group in same.values() for call in dict.fromkeys((group[0], group[-1]))]


@pytest.mark.parametrize("work", list(WORK))
def test_a_full_disk_at_any_call_leaves_the_old_state_or_says_that_it_may_not(work: str, tmp_path: Path) -> None:
    calls, _ = run(work, prepared(work, tmp_path / "data"))
    for number, call in enumerate(first_and_last(calls)):
        directory = prepared(work, tmp_path / f"full{number}")
        seen, answer = run(work, directory, refuse=call)
        assert [each.name for each in seen if each.refused] == [call.name]
        outcome = (answer, contents(work, directory))
        if not Path(call.path).is_dir():
            assert outcome == (REFUSED[work == "export"], [OLD])
        elif work.startswith("sqlite"):  # SQLite takes no notice: the log was there before, as a file without frames
            assert outcome == ("acknowledged", new_state(work))
        else:  # the file is renamed or deleted already
            assert outcome == (UNSYNCED[work == "export"], new_state(work))
