"""``firefly-memory search``: what it finds and prints, and what it ends with."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import firefly_memory.knowledge
from firefly_memory import connect
from firefly_memory.cli import COMPLETION, main
from firefly_memory.cli.commands.search import MODES
from firefly_memory.cli.exits import Exit
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.facets import all_facets, registered
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.knowledge import searching as chunk_search
from firefly_memory.looking import resources_of
from firefly_memory.search import hits
from firefly_memory.search.embedders import default
from tests.support.databases import execute
from tests.support.stores_by_options import Options, opened, ran
from tests.toy_facet.facet import key, toys
from tests.toy_facet.log import Note

WITH_MONGODB = Path(firefly_memory.knowledge.__file__).with_name("mongodb").joinpath("log.py").exists()

KINDS = ["sqlite", "postgresql", *(["mongodb"] if WITH_MONGODB else [])]

everywhere = pytest.mark.parametrize("options", KINDS, indirect=True)

QUESTION = "what is the dog called, Ann"
CALLED, REALLY, CAT, OF_ANN = "The dog is called Rex.", "Really?", "The cat is called Tom.", "My dog barks."


@pytest.fixture
def used(options: Options) -> Options:
    with opened(options) as store:
        knowledge = KnowledgeStore(store)
        knowledge.add("notes", [Chunk(CALLED, who="Ann", group="talk"), Chunk(REALLY, group="talk"), CAT])
        knowledge.add("notes", OF_ANN, owner="ann", source={"file": "a.txt"})
        KnowledgeStore(store, space="acme").add("notes", "A dog of another tenant.")
    return options


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A file with some chunks."""
    found = f"sqlite:///{tmp_path}/memory.db"
    with connect(found) as store:
        KnowledgeStore(store).add("notes", [CALLED, CAT])
    return found


@pytest.fixture
def without_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the packages of the default embedder were not installed."""
    monkeypatch.setattr(default, "_PACKAGES", ("no_package_has_this_name",))
    monkeypatch.setattr(chunk_search, "_SAID", set())


def asked(*arguments: str, question: str = QUESTION) -> list[str]:
    return ["search", "chunks", question, "--collection", "notes", *arguments]


def found(lines: list[str]) -> list[dict[str, Any]]:
    """The hits of an object of JSON."""
    (line,) = lines
    result = json.loads(line)
    assert list(result) == ["kind", "hits"]
    rows: list[dict[str, Any]] = result["hits"]
    return rows


@everywhere
def test_hits_are_a_table(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    (titles, *rows), said = ran(capsys, asked("--mode", "text"), used)
    assert (titles.split(), said) == (["rank", "score", "id", "text", "who"], "")
    assert [re.split(r"\s{2,}", row.strip())[0] for row in rows] == ["1", "2", "3"]
    assert re.fullmatch(rf"   1  \d\.\d{{4}}  [0-9a-f]{{32}}  {re.escape(CALLED)}  Ann", rows[0])
    (titles, *rows), _ = ran(capsys, asked("--mode", "text", "--owner", "ann"), used)
    assert titles.split() == ["rank", "score", "id", "text", "who", "source"]
    (of_ann,) = (row for row in rows if OF_ANN in row)
    assert of_ann.endswith('{"file": "a.txt"}')
    row_id = of_ann.split()[2]
    lines, _ = ran(capsys, ["show", "chunks", row_id], used)
    assert f"text        {OF_ANN}" in lines


@everywhere
@pytest.mark.parametrize("mode", MODES)
def test_hits_are_those_of_the_store_in_every_mode(
    used: Options, mode: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, _ = ran(capsys, asked("--mode", mode, "--owner", "ann", "--json", question="dog"), used)
    with opened(used) as store:
        expected = KnowledgeStore(store).search("notes", "dog", mode=mode, owner="ann")
    assert [(hit["id"], hit["score"], hit["ranks"]) for hit in found(lines)] == [
        (hit.id, hit.score, hit.ranks) for hit in expected
    ]
    assert expected


@everywhere
def test_filters_and_the_limit_are_options(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    def texts(*arguments: str) -> list[str]:
        lines, _ = ran(capsys, ["search", "chunks", "dog", "--mode", "fuzzy", "--json", *arguments], used)
        return sorted(hit["text"] for hit in found(lines))

    assert texts("--collection", "notes") == texts("--where", "collection=notes") == [CALLED]
    assert texts("--collection", "notes", "--owner", "ann") == sorted([CALLED, OF_ANN])
    assert texts("--collection", "notes", "--where", "owner=ann") == sorted([CALLED, OF_ANN])
    assert texts("--collection", "notes", "--space", "acme") == ["A dog of another tenant."]
    assert texts("--where", "collection=notes", "--where", "space=acme") == ["A dog of another tenant."]
    assert texts("--collection", "notes", "--owner", "ann", "--limit", "1") == [OF_ANN], "the newest first"


@everywhere
def test_hits_in_json_have_all_their_fields(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = found(ran(capsys, asked("--json", "--owner", "ann"), used)[0])
    assert list(first) == ["rank", "id", "score", "text", "ranks", "who", "source"]
    assert (first["rank"], first["text"], first["who"], first["source"]) == (1, CALLED, "Ann", None)
    assert [hit["rank"] for hit in rest] == [2, 3, 4]
    assert {"file": "a.txt"} in [hit["source"] for hit in rest]
    first, second, *_ = found(ran(capsys, asked("--json", "--explain"), used)[0])
    how = first["explanation"]
    assert list(how) == ["scores", "words", "lent", "person", "cosine", "neighbour", "notes"]
    assert how["scores"].keys() == first["ranks"].keys() == {"text", "semantic"}
    assert (list(how["words"]), how["lent"], how["person"], how["notes"]) == (["dog", "call", "ann"], [], "Ann", [])
    lent = second["explanation"]["lent"]
    assert [(loan["word"], loan["neighbour"]) for loan in lent] == [(word, first["id"]) for word in how["words"]]
    assert second["explanation"]["neighbour"] == first["id"]


@everywhere
def test_an_explanation_is_a_block_for_each_hit(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, asked("--explain"), used)
    table, first, second, *_ = "\n".join(lines).split("\n\n")
    ids = [row.split()[2] for row in table.splitlines()[1:]]
    title, *reasons = first.splitlines()
    assert title == f"1  {ids[0]}"
    patterns = [
        r"   text      rank 1, score \d\.\d{4}",
        r"   semantic  rank 1, score \d\.\d{4}",
        r"   words     dog \d\.\d{4}, call \d\.\d{4}, ann \d\.\d{4}",
        r"   person    Ann",
        r"   cosine    -?\d\.\d{4}",
    ]
    assert [pattern for pattern, line in zip(patterns, reasons, strict=True) if not re.fullmatch(pattern, line)] == []
    assert second.splitlines()[0] == f"2  {ids[1]}"
    assert re.search(rf"^   lent      dog \d\.\d{{4}} by {ids[0]}$", second, re.MULTILINE)
    assert re.search(rf"^   cosine    -?\d\.\d{{4}}, the score is lent by {ids[0]}$", second, re.MULTILINE)


@pytest.mark.usefixtures("without_embedder")
def test_what_the_search_did_without_is_said_once(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = ran(capsys, asked("--explain"), ["--url", url])
    (note,) = (line for line in lines if line.startswith("note: "))
    assert note.startswith("note: there is no embedder, so the search is for text only")
    assert (lines[-1], lines[-2]) == (note, "")
    _, said = ran(capsys, asked("--mode", "semantic"), ["--url", url], Exit.USAGE)
    assert "mode='semantic' needs an embedder" in said


@everywhere
def test_without_a_hit_the_command_says_so_and_ends_with_0(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (asked(question="elephant"), ["search", "chunks", "dog", "--collection", "nothing"]):
        for explain in ([], ["--explain"]):
            lines, said = ran(capsys, [*arguments, "--mode", "fuzzy", *explain], used)
            assert (lines, said) == ([], "no chunks were found\n")
        lines, said = ran(capsys, [*arguments, "--mode", "fuzzy", "--json"], used)
        assert (lines, said) == (['{"kind": "chunks", "hits": []}'], "")


def test_the_store_in_memory_has_nothing_to_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, asked(), ["--url", "memory:"]) == ([], "no chunks were found\n")


@pytest.mark.parametrize("given", [b"dog\n", b"\n  dog", b"dog"], ids=repr)
def test_the_question_is_read_from_the_standard_input(
    url: str, given: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
    lines, _ = ran(capsys, asked("--mode", "fuzzy", "--json", question="-"), ["--url", url])
    assert [hit["text"] for hit in found(lines)] == [CALLED]


@pytest.mark.parametrize("given", [b"", b" \n"], ids=repr)
def test_a_standard_input_without_a_question_ends_with_2(
    url: str, given: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
    with pytest.raises(SystemExit) as ended:
        main([*asked(question="-"), "--url", url])
    assert ended.value.code == Exit.USAGE
    assert "the standard input has no question" in capsys.readouterr().err


def test_a_standard_input_of_any_bytes_is_a_question(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\x00\x1b[2J dog"), encoding="utf-8"))
    lines, _ = ran(capsys, asked("--mode", "text", "--json", question="-"), ["--url", url])
    assert [hit["text"] for hit in found(lines)] == [CALLED]


SEARCHED = ", ".join(each.kind for facet in all_facets() for each in resources_of(facet) if each.search is not None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["people", "dog"], "there is no kind 'people'; there are entries, "),
        (["entries", "dog"], f"entries cannot be searched; {SEARCHED} can"),
        (["chunks", "dog"], "chunks are searched by their collection; name it: collection=…"),
        (["chunks", "dog", "--owner", "ann"], "chunks are searched by their collection"),
        (["chunks", "dog", "--where", "colour=red"], "cannot be searched by 'colour'; there are collection, space"),
        (["chunks", "dog", "--where", "owner~=ann"], "cannot be searched by 'owner~'"),
        (["chunks", "dog", "--collection", "n" * 513], "is 513 characters long"),
        (
            ["chunks", "dog", "--collection", "notes", "--limit", "1001"],
            "--limit: is 1001; a search gives at most 1000",
        ),
        (["chunks", "dog", "--collection", "notes", "--schema", "x"], "is for PostgreSQL, and the store is SQLite"),
        (["chunks", "dog", "--collection", "notes", "--store-collection", "x"], "is for MongoDB, and the store is"),
    ],
)
def test_what_cannot_be_asked_for_ends_with_2(
    url: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, error = ran(capsys, ["search", *arguments], ["--url", url], Exit.USAGE)
    assert lines == []
    assert said in error
    (line,), _ = ran(capsys, ["search", *arguments, "--json"], ["--url", url], Exit.USAGE)
    assert said in json.loads(line)["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chunks"], "Missing argument 'QUESTION'"),
        (["chunks", ""], "it is empty"),
        (["chunks", "dog", "--collection", ""], "it is empty"),
        (["chunks", "dog", "--mode", "exact"], "'exact' is not one of 'best', 'hybrid', 'text', 'semantic', 'fuzzy'"),
        (["chunks", "dog", "--limit", "0"], "must be a whole number from 1 up"),
        (["chunks", "dog", "--where", "owner"], "'owner' is not FILTER=TEXT"),
        (["chunks", "dog", "--where", "=ann"], "'=ann' is not FILTER=TEXT"),
        (["chunks", "dog", "--where", "owner=a", "--where", "owner=b"], "owner is given twice"),
        (["chunks", "dog", "--where", "owner=a", "--owner", "b"], "owner is given twice"),
        (["chunks", "dog", "cat"], "unexpected extra argument"),
    ],
)
def test_a_command_line_that_says_too_little_or_too_much_ends_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["search", *arguments, "--url", "memory:"])
    assert ended.value.code == Exit.USAGE
    assert said in capsys.readouterr().err


def test_a_store_that_cannot_keep_chunks_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = ran(capsys, asked(), ["--url", f"file:{tmp_path}"], Exit.FAILED)
    assert "knowledge cannot be kept in FileStore" in said


@pytest.mark.parametrize("options_of_nothing", KINDS, indirect=True)
def test_a_store_that_is_not_there_is_not_made(
    options_of_nothing: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = ran(capsys, asked(), options_of_nothing, Exit.BEHIND)
    assert "run: " in said
    assert list(tmp_path.glob("*.db")) == []


def test_a_schema_that_is_ahead_ends_with_4(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(url, "UPDATE firefly_memory_version SET version_num = '9999'")
    assert "9999" in ran(capsys, asked(), ["--url", url], Exit.AHEAD)[1]


def test_a_server_that_is_not_there_ends_with_6(capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, asked(), ["--url", "postgresql://localhost:1/x", "--timeout", "2"], Exit.UNREACHABLE)


def test_a_table_that_somebody_holds_ends_with_7(postgresql: str, capsys: pytest.CaptureFixture[str]) -> None:
    with connect(postgresql) as store:
        KnowledgeStore(store).add("notes", CALLED)
    with psycopg.connect(postgresql) as other:
        other.execute("LOCK TABLE firefly_memory.memory_chunks IN ACCESS EXCLUSIVE MODE")
        ran(capsys, asked(), ["--url", postgresql, "--timeout", "0.5"], Exit.BUSY)


def test_searching_changes_no_byte_of_a_file(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    for mode in MODES:
        ran(capsys, asked("--mode", mode, "--explain"), ["--url", url])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@everywhere
def test_options_may_stand_before_the_command(used: Options, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*used, "--json", "--collection", "notes", "search", "chunks", "dog", "--mode", "fuzzy"]) == Exit.DONE
    assert [hit["text"] for hit in found(capsys.readouterr().out.splitlines())] == [CALLED]


def test_the_modes_of_the_command_are_those_of_every_search() -> None:
    """The module of the hits takes long to load, so the help does not ask it."""
    assert MODES == hits.MODES


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("sea", {"search"}),
        ("search chunks dog --mode s", {"semantic"}),
        ("search chunks dog --mode ", set(MODES)),
        ("search --exp", {"--explain"}),
        ("search --s", {"--space", "--store-schema", "--schema", "--store-database", "--store-collection"}),
    ],
)
def test_the_shell_completes_commands_options_and_modes(
    words: str, completed: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(COMPLETION, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"firefly-memory {words}")
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ") + 1))
    main()
    assert {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()} == completed


def test_a_facet_of_another_package_is_searched(
    tmp_path: Path, toy_revisions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = ["--url", f"sqlite:///{tmp_path}/memory.db"]
    with registered(toys(toy_revisions)):
        with connect(url[1]) as store:
            for note in (Note("n0", "a dog", owner="ann"), Note("n1", "a dog and a cat")):
                run_without_loop(store.blocking.log(key()).put(note))
        (titles, *rows), _ = ran(capsys, ["search", "toy-1-notes", "dog cat"], url)
        assert titles.split() == ["rank", "score", "id", "text"]
        (row,) = rows
        assert row.split()[2:] == ["n1", "a", "dog", "and", "a", "cat"]
        lines, _ = ran(capsys, ["search", "toy-1-notes", "dog", "--owner", "ann", "--json", "--explain"], url)
        (hit,) = found(lines)
        assert (hit["id"], hit["owner"], hit["explanation"]["scores"]) == ("n0", "ann", {"text": hit["score"]})
        assert "there are owner" in ran(capsys, ["search", "toy-1-notes", "dog", "--space", "x"], url, Exit.USAGE)[1]
        by_meaning = ["search", "toy-1-notes", "a", "--mode", "semantic"]
        assert ran(capsys, by_meaning, url) == ([], "no toy-1-notes were found\n"), "they have no vectors"
        assert ran(capsys, ["search", "toy-1-notes", "bird"], url) == ([], "no toy-1-notes were found\n")
