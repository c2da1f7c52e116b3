"""``firefly-memory prune`` on every backend that has a URL."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from firefly_memory import ConversationMemory
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.clock import now
from firefly_memory.testing.clock import stopped
from tests.support.prune_worker import killed_prune
from tests.support.stores_by_options import Options, opened, ran
from tests.support.terminal import answered_on_a_terminal

NOTHING_ASKED = "nothing is deleted unasked: pass --older-than, --keep-last or --max-tokens, or set FIREFLY_AGENTIC"


@pytest.fixture
def used(options: Options) -> Options:
    """The options of a store with three old conversations and a new one."""
    with opened(options) as store:
        memory = ConversationMemory(store=store)
        with stopped(now() - timedelta(days=3)) as clock:
            for name in ("a", "b", "c"):
                clock.advance(minutes=1)
                memory.add_turn(name, "p", "a", owner="ann" if name == "a" else None)
        memory.add_turn("new", "p", "a")
    return options


def left(options: Options) -> set[str]:
    with opened(options) as store:
        return set(ConversationMemory(store=store).conversation_ids)


def test_old_conversations_go_with_a_receipt(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, ["prune", "--older-than", "1d", "--yes"], used)
    assert lines == ["deleted 3 rows of conversations", "deleted 3 rows of turns"]
    assert left(used) == {"new"}
    lines, _ = ran(capsys, ["prune", "--older-than", "1d"], used)
    assert lines == ["would delete nothing: all is within the bounds"]


def test_each_bound_is_an_option(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, ["prune", "--older-than", "1d", "--owner", "ann", "--yes", "--quiet"], used)
    assert left(used) == {"b", "c", "new"}
    ran(capsys, ["prune", "--keep-last", "2", "--yes"], used)
    assert left(used) == {"c", "new"}
    ran(capsys, ["prune", "--max-tokens", "1", "--yes"], used)
    assert left(used) == set()


def test_a_receipt_in_json(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    (line,), _ = ran(capsys, ["prune", "--older-than", "1d", "--dry-run", "--json"], used)
    rows = {"conversations": 3, "turns": 3, "working-facts": 0}
    assert json.loads(line) == {"rows": rows, "deleted": {}}
    assert len(left(used)) == 4
    (line,), _ = ran(capsys, ["prune", "--older-than", "1d", "--yes", "--json", "--quiet"], used)
    assert json.loads(line) == {"rows": rows, "deleted": rows}


def test_without_a_terminal_and_without_yes_nothing_changes(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, said = ran(capsys, ["prune", "--older-than", "1d"], used, Exit.USAGE)
    assert lines == []
    assert "nothing was changed: this would delete 6 rows. Pass --yes" in said
    assert len(left(used)) == 4


def test_the_name_of_the_command_is_asked_for(used: Options) -> None:
    code, shown = answered_on_a_terminal(b"yes\n", "prune", "--older-than", "1d", *used)
    assert code == Exit.USAGE
    assert "would delete 3 rows of turns" in shown
    assert len(left(used)) == 4
    code, shown = answered_on_a_terminal(b"prune\n", "prune", "--older-than", "1d", *used)
    assert code == Exit.DONE
    assert left(used) == {"new"}


def test_without_an_option_the_settings_count_and_else_nothing_is_deleted(
    used: Options, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner in ([], ["--owner", "ann"]):
        _, said = ran(capsys, ["prune", "--yes", *owner], used, Exit.USAGE)
        assert NOTHING_ASKED in said
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_RETENTION_OLDER_THAN", "1d")
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_RETENTION_KEEP_LAST", "1")
    ran(capsys, ["prune", "--yes", "--keep-last", "3"], used)
    assert len(left(used)) == 4, "an option replaces all settings"
    ran(capsys, ["prune", "--yes"], used)
    assert left(used) == {"new"}


@pytest.mark.parametrize(
    "wrong", [["--older-than", "soon"], ["--older-than", ""], ["--keep-last", "0"], ["--max-tokens", "x"]]
)
def test_a_wrong_bound_is_a_usage_error(wrong: list[str], used: Options) -> None:
    try:
        code = main(["prune", "--yes", *wrong, *used])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == Exit.USAGE
    assert len(left(used)) == 4


def test_what_was_killed_in_the_middle_goes_on(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    killed_prune(2, *used)
    assert len(left(used)) == 2
    lines, _ = ran(capsys, ["prune", "--older-than", "1d", "--yes"], used)
    assert lines[0] == "deleted 1 row of conversations"
    assert left(used) == {"new"}


def test_a_store_that_is_not_there_is_not_made(options_of_nothing: Options) -> None:
    if options_of_nothing[1].startswith(("sqlite", "postgresql")):
        assert main(["prune", "--older-than", "1d", "--yes", *options_of_nothing]) == Exit.BEHIND
