"""``ls``, ``show``, ``rm`` and ``stats`` on every backend that has a URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pymongo
import pytest

from firefly_memory import ConversationMemory, MemoryEntry, WorkingMemory, connect, service
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.facets import registered
from tests.support.backends import Place
from tests.support.stores_by_options import Options, opened, ran
from tests.toy_facet.facet import key, toys
from tests.toy_facet.log import Note


@pytest.fixture
def used(options: Options) -> Options:
    with opened(options) as store:
        for number in range(5):
            store.save("notes", MemoryEntry(entry_id=f"n{number}", key=f"k{number % 2}", content=f"note {number}"))
        WorkingMemory(store=store).set("colour", "green")
        for name in ("first", "last"):
            ConversationMemory(store=store).add_turn(name, "question", f"the {name} answer")
    return options


def test_the_kinds_of_a_store_are_listed(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, ["ls"], used)
    assert [line.split()[0] for line in lines[:5]] == ["kind", "entries", "working-facts", "conversations", "turns"]
    assert ("agent-history" in " ".join(lines)) == (not used[1].startswith("file"))
    (line,), _ = ran(capsys, ["ls", "--json"], used)
    assert list(json.loads(line)["kinds"])[:4] == ["entries", "working-facts", "conversations", "turns"]


def test_rows_are_listed_page_by_page(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    (titles, *rows), said = ran(capsys, ["ls", "entries", "--limit", "3"], used)
    assert titles.split() == ["id", "key", "content", "created_at"]
    assert [row.split()[0] for row in rows] == ["notes/n0", "notes/n1", "notes/n2"]
    after = said.strip().rpartition(" ")[2]
    assert said == f"there are more: --after {after}\n"
    (_, *rows), said = ran(capsys, ["ls", "entries", "--limit", "3", "--after", after], used)
    assert ([row.split()[0] for row in rows], said) == (["notes/n3", "notes/n4"], "")
    (_, *rows), _ = ran(capsys, ["ls", "conversations"], used)
    assert [row.split()[0] for row in rows] == ["last", "first"]
    _, said = ran(capsys, ["ls", "conversations", "--after", after], used, Exit.USAGE)
    assert "is no cursor of conversations" in said


def test_a_long_list_takes_several_pages(
    used: Options, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_ROWS", 2)
    lines, _ = ran(capsys, ["ls", "entries", "--json", "--limit", "4"], used)
    rows = [json.loads(line) for line in lines]
    assert [row.get("id") for row in rows] == ["notes/n0", "notes/n1", "notes/n2", "notes/n3", None]
    assert list(rows[-1]) == ["next"]
    lines, _ = ran(capsys, ["ls", "entries", "--json", "--limit", "4", "--after", rows[-1]["next"]], used)
    assert [json.loads(line)["content"] for line in lines] == ["note 4"]


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["entries", "--where", "namespace=notes", "--where", "key=k1"], ["notes/n1", "notes/n3"]),
        (["entries", "--where", "content~NOTE 3"], ["notes/n3"]),
        (["entries", "--where", "created_at<2001-01-01T00:00:00+00:00"], []),
        (["conversations", "--where", "turns>=1", "--where", "conversation_id~fir"], ["first"]),
        (["turns", "--where", "conversation_id=last"], ["last/0"]),
        (["working-facts", "--where", "scope=default"], ["default/colour"]),
    ],
)
def test_rows_are_selected(
    used: Options, arguments: list[str], ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines, _ = ran(capsys, ["ls", *arguments, "--json"], used)
    assert [json.loads(line)["id"] for line in lines] == ids


def test_a_row_is_shown(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, ["show", "turns", "last/0"], used)
    assert dict(line.split(None, 1) for line in lines)["assistant_response"] == "the last answer"
    (line,), _ = ran(capsys, ["show", "working-facts", "default/colour", "--json"], used)
    assert json.loads(line)["value"] == "green"


def test_rows_are_counted(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, ["stats"], used)
    counted = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert (counted["entries"], counted["working-facts"]) == (["5"], ["1"])
    assert (counted["conversations"][0], counted["turns"][0]) == ("2", "2")
    (line,), _ = ran(capsys, ["stats", "--json"], used)
    assert [each["rows"] for each in json.loads(line)["kinds"]][:4] == [5, 1, 2, 2]


@pytest.mark.parametrize("command", [["show"], ["rm", "--yes"], ["rm", "--dry-run"]])
@pytest.mark.parametrize(
    ("kind", "row_id"),
    [("entries", "notes/no"), ("entries", "no/no"), ("conversations", "no"), ("working-facts", "default/no")],
)
def test_an_unknown_id_ends_with_1(
    used: Options, command: list[str], kind: str, row_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, said = ran(capsys, [*command, kind, row_id], used, Exit.FAILED)
    assert (lines, said) == ([], f"firefly-memory: no row of {kind} has the id '{row_id}'\n")


def test_nothing_is_deleted_if_one_of_several_ids_is_unknown(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, ["rm", "entries", "notes/n0", "notes/no", "--yes"], used, Exit.FAILED)
    (line,), _ = ran(capsys, ["stats", "--json"], used)
    assert json.loads(line)["kinds"][0] == {"kind": "entries", "rows": 5, "tokens": None, "note": None}


@pytest.mark.parametrize(
    ("arguments", "rows", "kind", "left"),
    [
        (["entries", "notes/n0", "notes/n0", "notes/n4"], "2 rows", "entries", 3),
        (["entries", "--where", "namespace=notes", "--where", "key=k1"], "2 rows", "entries", 3),
        (["entries", "--all"], "5 rows", "entries", 0),
        (["conversations", "first"], "1 row", "conversations", 1),
        (["working-facts", "default/colour"], "1 row", "working-facts", 0),
    ],
)
def test_rows_are_deleted_with_consent_only(
    used: Options, arguments: list[str], rows: str, kind: str, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def there() -> int:
        with opened(used) as store:
            return service.count(store, kind).rows

    before = there()
    lines, said = ran(capsys, ["rm", *arguments], used, Exit.USAGE)
    assert lines == []
    assert said.startswith(f"firefly-memory: nothing was changed: this would delete {rows} of {kind}. Pass --yes if ")
    lines, _ = ran(capsys, ["rm", *arguments, "--dry-run"], used)
    assert (lines, there()) == ([f"would delete {rows} of {kind}"], before)
    lines, _ = ran(capsys, ["rm", *arguments, "--yes"], used)
    assert (lines, there()) == ([f"deleted {rows} of {kind}"], left)


def test_what_was_deleted_is_said_in_json(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    for option, deleted in (("--dry-run", 0), ("--yes", 5)):
        (line,), _ = ran(capsys, ["rm", "entries", "--where", "namespace=notes", "--json", option], used)
        assert json.loads(line) == {"kind": "entries", "rows": 5, "deleted": deleted}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["ls", "feelings"],
            Exit.USAGE,
            "there is no kind 'feelings'; there are entries, working-facts, conversations",
        ),
        (["show", "feelings", "x"], Exit.USAGE, "there is no kind 'feelings'"),
        (["rm", "feelings", "x", "--yes"], Exit.USAGE, "there is no kind 'feelings'"),
        (["ls", "turns"], Exit.USAGE, "turns are listed by their conversation_id; name it"),
        (["ls", "entries", "--where", "colour=green"], Exit.USAGE, "entries cannot be selected by 'colour'"),
        (["ls", "entries", "--order", "size"], Exit.USAGE, "of entries is namespace, not 'size'"),
        (["show", "entries", "notes"], Exit.USAGE, "id: of entries is NAMESPACE/ENTRY_ID, not 'notes'"),
        (["rm", "turns", "first/0", "--yes"], Exit.FAILED, "a turn goes with its conversation"),
    ],
)
def test_what_cannot_be_done_is_said(
    used: Options, arguments: list[str], code: Exit, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in ran(capsys, arguments, used, code)[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rm", "entries"], "name rows by their ids, by --where or by --all"),
        (["rm", "entries", "notes/n0", "--all"], "name rows by their ids, by --where or by --all"),
        (["ls", "entries", "--where", "namespace"], "is not FIELD=VALUE"),
        (["ls", "entries", "--where", "key=a", "--where", "key=b"], "key is given twice"),
        (["ls", "entries", "--limit", "0"], "must be a whole number from 1 up"),
        (["show", "entries"], "Missing argument 'ID'"),
    ],
)
def test_a_command_line_that_says_too_little_or_too_much_ends_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--url", "memory:"])
    assert ended.value.code == Exit.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["ls", "entries"], ["stats"], ["show", "entries", "a/b"], ["rm", "entries", "--all", "--yes"]]
)
def test_a_store_that_is_not_there_is_not_made(
    options_of_nothing: Options, arguments: list[str], place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of_nothing
    before = sorted(place.directory.iterdir())
    is_file = options[1].startswith("file")
    _, said = ran(capsys, arguments, options, Exit.UNREACHABLE if is_file else Exit.BEHIND)
    assert ("there is no directory" if is_file else "run: ") in said
    assert sorted(place.directory.iterdir()) == before
    if "--database" in options:
        with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client:
            assert options[-1] not in client.list_database_names()
    if "--schema" in options:
        with psycopg.connect(place.postgresql()) as admin:
            assert not admin.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [options[-1]]).fetchall()


def test_a_facet_of_another_package_is_looked_at(
    tmp_path: Path, toy_revisions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from firefly_memory.concurrency.sync_bridge import run_without_loop

    url = ["--url", f"sqlite:///{tmp_path}/memory.db"]
    with registered(toys(toy_revisions)):
        with connect(url[1]) as store:
            for number in range(3):
                run_without_loop(store.blocking.log(key()).put(Note(f"n{number}", f"body {number}")))
        assert "toy-1-notes    notes of toy 1" in ran(capsys, ["ls"], url)[0]
        assert ran(capsys, ["ls", "toy-1-notes", "--where", "body~2"], url)[0] == ["id  body", "n2  body 2"]
        assert ran(capsys, ["show", "toy-1-notes", "n0"], url)[0][0].split() == ["id", "n0"]
        assert ran(capsys, ["rm", "toy-1-notes", "n0", "--yes"], url)[0] == ["deleted 1 row of toy-1-notes"]
        assert ran(capsys, ["stats"], url)[0][-1].split() == ["toy-1-notes", "2"]
