"""Options that several commands have may stand before the name of the command, or behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firefly_memory import MemoryEntry, SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SQLiteStore("a.db") as store:
        store.save("n", MemoryEntry())
    (tmp_path / "url").write_text("sqlite:///a.db")
    (tmp_path / "variables").write_text("FIREFLY_AGENTIC_MEMORY_URL=sqlite:///a.db\n")


@pytest.mark.parametrize(
    "options", [["--url", "sqlite:///a.db"], ["--url-file=url"], ["--env-file", "variables"]], ids=str
)
@pytest.mark.parametrize("path", [["db", "current"], ["db", "check"], ["doctor"]], ids=" ".join)
def test_each_place_means_the_same(path: list[str], options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [*options, "--json", "--timeout", "7"]
    answers = []
    for place in range(len(path) + 1):
        assert main([*path[:place], *options, *path[place:]]) == Exit.DONE
        answers.append(json.loads(capsys.readouterr().out))
        answers[-1].get("findings", []).sort(key=lambda each: each["what"] == "disk")  # what is free changes
        del answers[-1].get("findings", [])[-1:]
    assert answers == answers[:1] * (len(path) + 1)


def test_flags_may_stand_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quiet", "export", "--url", "sqlite:///a.db", "out"]) == Exit.DONE
    assert main(["--dry-run", "--url", "sqlite:///new.db", "import", "out"]) == Exit.DONE
    assert not Path("new.db").exists()
    assert capsys.readouterr().err == "would import 1 entries, 0 conversations with 0 turns\n"
    assert main(["--url", "sqlite:///a.db", "--yes", "db", "downgrade", "base"]) == Exit.DONE


def test_what_stands_behind_the_command_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--url", "sqlite:///missing.db", "db", "--url", "sqlite:///missing too.db", "current"]
    assert main([*arguments, "--url", "sqlite:///a.db"]) == Exit.DONE
    assert main(arguments) == Exit.BEHIND
    assert "missing too.db" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "x:", "--url-file", "url", "db", "current"], "not allowed with"),
        (["--url", "x:", "db", "current", "--url-file", "url"], "not allowed with"),
        (["--url", "", "db", "current"], "is empty"),
        (["--timeout", "-1", "db", "current"], "must be a number of seconds above 0"),
        (["--yes", "export"], "firefly-memory export: there is no option --yes; see `firefly-memory export --help`"),
        (["--url", "sqlite:///a.db", "copy", "--from", "memory:", "--to", "memory:"], "there is no option --url; see"),
        (["db", "upgrade", "--ulr", "x"], "there is no option --ulr (did you mean --url?)"),
        (["--dry-run", "db", "upgrade"], "there is no option --dry-run"),
    ],
    ids=str,
)
def test_the_command_checks_them(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_an_option_that_may_be_repeated_counts_in_each_place(capsys: pytest.CaptureFixture[str]) -> None:
    ours, wrong = ("--facet", "firefly_memory.entries.facet:FACET"), ("--facet", "nowhere:FACET")
    for before, behind in ((ours, wrong), (wrong, ours)):
        assert main([*before, "db", "--json", "history", *behind]) == Exit.USAGE
        assert "nowhere:FACET cannot be imported" in json.loads(capsys.readouterr().out)["error"]
    assert main([*ours, "db", *ours, "check", "--url", "sqlite:///missing.db", *ours]) == Exit.BEHIND
    assert f"db upgrade {' '.join(ours * 3)} --url sqlite:///missing.db" in capsys.readouterr().err


def test_export_import_and_copy_have_a_json_object_and_a_time_out(capsys: pytest.CaptureFixture[str]) -> None:
    entries = {"entries": 1, "conversations": 0, "turns": 0}
    timeout = ["--json", "--timeout", "5"]
    assert main(["export", "--url", "sqlite:///a.db", "out", *timeout]) == Exit.DONE
    assert main(["import", "--url", "sqlite:///b.db", "out", *timeout]) == Exit.DONE
    assert main(["copy", "--from", "sqlite:///a.db", "--to", "sqlite:///b.db", *timeout]) == Exit.DONE
    said = capsys.readouterr()
    exported, imported, copied = map(json.loads, said.out.splitlines())
    assert said.err == ""
    assert exported["exported"].items() >= entries.items()
    assert imported["imported"].items() >= entries.items()
    assert imported["dry_run"] is False
    assert copied["equal"]


def test_a_json_object_and_an_archive_do_not_share_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--url", "sqlite:///a.db", "--json"]) == Exit.USAGE
    assert "name a file" in json.loads(capsys.readouterr().out)["error"]
