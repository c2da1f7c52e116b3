"""``firefly-memory forget`` and ``readmit`` on every backend that has a URL."""

from __future__ import annotations

import json

import pytest

from firefly_memory import ConversationMemory, ErasedError, MemoryEntry, WorkingMemory
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from tests.support.forget_worker import STEPS, killed_forget
from tests.support.stores_by_options import Options, opened, ran
from tests.support.terminal import answered_on_a_terminal

pytestmark = pytest.mark.thorough


@pytest.fixture
def used(options: Options) -> Options:
    """The options of a store with data of two people."""
    with opened(options) as store:
        memory = ConversationMemory(store=store)
        for owner in ("ann", "bob"):
            for _ in range(2):
                memory.add_turn(f"chat of {owner}", f"I am {owner}", "a", owner=owner)
            WorkingMemory(store=store, scope_id=owner).set("name", owner)
            store.save(f"notes of {owner}", MemoryEntry(content=f"by {owner}"))
    return options


def turns_of(options: Options, owner: str) -> int:
    with opened(options) as store:
        return len(ConversationMemory(store=store).get_turns(f"chat of {owner}"))


def test_a_person_is_forgotten_with_a_receipt(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, ["forget", "ann", "--namespace", "notes of ann", "--find", "I am ann", "--yes"], used)
    assert lines[:4] == [
        "deleted 1 row of conversations",
        "deleted 2 rows of turns",
        "deleted 1 row of working-facts",
        "deleted 1 row of entries",
    ]
    assert "entries have no owner" in lines[4]
    assert lines[5] == "'I am ann' is nowhere in the store"
    assert (turns_of(used, "ann"), turns_of(used, "bob")) == (0, 2)
    with opened(used) as store, pytest.raises(ErasedError):
        ConversationMemory(store=store).add_turn("new", "p", "a", owner="ann")


def test_a_receipt_in_json(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    (line,), _ = ran(capsys, ["forget", "ann", "--yes", "--json"], used)
    receipt = json.loads(line)
    assert {kind: rows for kind, rows in receipt["deleted"].items() if rows} == {
        "conversations": 1,
        "turns": 2,
        "working-facts": 1,
    }
    assert receipt["rows"] == receipt["deleted"]
    assert "ann" not in line


def test_a_dry_run_changes_nothing(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, ["forget", "ann", "--dry-run"], used)
    assert lines[:2] == ["would delete 1 row of conversations", "would delete 2 rows of turns"]
    assert turns_of(used, "ann") == 2
    with opened(used) as store:
        ConversationMemory(store=store).add_turn("new", "p", "a", owner="ann")


def test_without_a_terminal_and_without_yes_nothing_changes(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, said = ran(capsys, ["forget", "ann"], used, Exit.USAGE)
    assert lines == []
    assert "nothing was changed: this would delete 4 rows of this person. Pass --yes" in said
    assert turns_of(used, "ann") == 2


def test_the_name_of_the_owner_is_asked_for(used: Options) -> None:
    code, shown = answered_on_a_terminal(b"bob\n", "forget", "ann", *used)
    assert code == Exit.USAGE
    assert "would delete 2 rows of turns" in shown
    assert turns_of(used, "ann") == 2
    code, shown = answered_on_a_terminal(b"ann\n", "forget", "ann", *used)
    assert code == Exit.DONE
    assert turns_of(used, "ann") == 0


def test_a_text_that_is_still_there_is_named_with_its_place(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, said = ran(capsys, ["forget", "ann", "--find", "by ann", "--yes"], used, Exit.FAILED)
    assert lines[-1].startswith("'by ann' is in ")
    assert lines[-1].endswith(": 1 row")
    assert "a text of --find is still in the store" in said
    assert turns_of(used, "ann") == 0


def test_an_unknown_owner_has_no_data_and_is_refused_from_now_on(
    used: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, _ = ran(capsys, ["forget", "carl", "--yes"], used)
    assert lines[0] == "deleted nothing: this owner has no data"
    with opened(used) as store, pytest.raises(ErasedError):
        ConversationMemory(store=store).new_conversation("new", owner="carl")


def test_a_person_is_readmitted_once(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, ["readmit", "ann"], used, Exit.FAILED)
    ran(capsys, ["forget", "ann", "--yes"], used)
    lines, _ = ran(capsys, ["readmit", "ann"], used)
    assert lines == ["new data of this owner is accepted"]
    _, said = ran(capsys, ["readmit", "ann"], used, Exit.FAILED)
    assert "this owner was not erased" in said
    with opened(used) as store:
        assert ConversationMemory(store=store).add_turn("chat of ann", "p", "a", owner="ann").turn_id == 0


def test_a_store_that_is_not_there_is_not_made(options_of_nothing: Options) -> None:
    if options_of_nothing[1].startswith(("sqlite", "postgresql")):
        assert main(["forget", "ann", "--yes", *options_of_nothing]) == Exit.BEHIND


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_what_was_killed_in_the_middle_goes_on(step: int, used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    killed_forget(step, "ann", *used)
    with opened(used) as store:
        memory = ConversationMemory(store=store)
        with pytest.raises(ErasedError):
            memory.add_turn("new", "p", "a", owner="ann")
        assert len(memory.get_turns("chat of ann")) == (2 if step < 4 else 0)
    ran(capsys, ["forget", "ann", "--namespace", "notes of ann", "--find", "ann", "--yes"], used)
    assert turns_of(used, "bob") == 2
