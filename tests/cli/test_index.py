"""``firefly-memory index``, and what the doctor says of an index."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from firefly_memory import SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.knowledge import KnowledgeStore


@pytest.fixture
def url(tmp_path: Path) -> str:
    with SQLiteStore(tmp_path / "memory.db") as store:
        KnowledgeStore(store, embedder=None).add("notes", ["We sail a boat", "The lake is cold"])
    return f"sqlite:///{tmp_path}/memory.db"


def changed(url: str, *statements: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
        for each in statements:
            file.execute(each)


def test_an_embedder_of_ones_own_is_named(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_embedders.py").write_text(
        "from firefly_memory.search.embedders.adapters import CallableEmbedder\n"
        "def make():\n"
        "    return CallableEmbedder(lambda texts: [[1.0, len(text)] for text in texts], name='mine', dimensions=2)\n"
        "MINE = make()\n"
        "BROKEN = lambda: 1 / 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["index", "embed", "--embedder", "my_embedders:MINE", "--url", url]) == Exit.DONE
    assert "made the vectors of 2 chunks\n" in capsys.readouterr().out
    assert main(["index", "status", "--embedder", "my_embedders:make", "--url", url]) == Exit.DONE
    assert "chunks: 2 rows, english, each with a vector\n  2 vectors of mine\n" in capsys.readouterr().out
    searching = ["search", "chunks", "cold", "--collection", "notes", "--mode", "semantic", "--url", url, "--embedder"]
    assert main([*searching, "my_embedders:make"]) == Exit.DONE
    assert "The lake is cold" in capsys.readouterr().out
    for name, message in {
        "my_embedders": "'my_embedders' is no name of an embedder; write it as package.module:EMBEDDER",
        "my_embedders:NONE": "the embedder my_embedders:NONE cannot be imported: my_embedders has no NONE",
        "my_embedders:BROKEN": "my_embedders:BROKEN makes no embedder: ZeroDivisionError: division by zero",
        "sys:path": "embedder must be an Embedder, and list has no name, dimensions, embed, async_embed",
    }.items():
        assert main([*searching, name]) == Exit.USAGE, name
        assert message in capsys.readouterr().err
    assert main(["index", "delete-vectors", "mine", "--url", url]) == Exit.DONE
    assert "deleted the vectors of 2 chunks\n" in capsys.readouterr().out
    assert main(["index", "status", "--embedder", "my_embedders:MINE", "--url", url]) == Exit.DONE
    assert "chunks: 2 rows, english, 2 without a vector\n" in capsys.readouterr().out


def test_status_compares_and_embed_makes_vectors(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "status", "--url", url]) == Exit.DONE
    assert "chunks: 2 rows, english, 2 without a vector\n" in capsys.readouterr().out
    assert main(["index", "embed", "--url", url]) == Exit.DONE
    assert "made the vectors of 2 chunks\n" in capsys.readouterr().out
    assert main(["index", "embed", "--quiet", "--url", url]) == Exit.DONE
    assert capsys.readouterr().out == ""
    assert main(["index", "status", "--json", "--url", url]) == Exit.DONE
    states = json.loads(capsys.readouterr().out)["indexes"]
    (state,) = [each for each in states if each["kind"] == "chunks"]
    assert state == {
        "kind": "chunks",
        "rows": 2,
        "language": "english",
        "outdated": 0,
        "without_vector": 0,
        "problems": [],
        "vectors": {"wordllama:l2_supercat_256": 2},
    }


def test_what_is_out_of_step_is_named_and_mended(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed(
        url,
        "INSERT INTO memory_chunks_words (rowid, words) VALUES (99, 'stray')",
        "INSERT INTO memory_chunks_vectors VALUES ('gone', 'e', x'00')",
        "INSERT INTO memory_chunks_signatures VALUES ('s', 'e', 'gone', x'00')",
    )
    assert main(["index", "status", "--url", url]) == Exit.DRIFT
    said = capsys.readouterr().out
    assert "the full-text table is not in step with its rows" in said
    assert "1 vectors have no chunks" in said
    assert "1 signatures have no chunks" in said
    assert "run `firefly-memory index rebuild" in said
    assert main(["index", "rebuild", "--json", "--url", url]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["rows"]["chunks"] == 2
    assert main(["index", "status", "--url", url]) == Exit.DONE
    assert main(["search", "chunks", "boat", "--collection", "notes", "--mode", "text", "--url", url]) == Exit.DONE
    assert "We sail a boat" in capsys.readouterr().out


def test_the_doctor_says_when_an_index_is_outdated(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--url", url]) == Exit.DONE
    changed(url, "UPDATE memory_search_indexes SET form = 0")
    assert main(["doctor", "--url", url]) == Exit.DRIFT
    said = capsys.readouterr().out
    assert "chunks: some words of the index are not those of the texts" in said
    assert "firefly-memory index rebuild" in said
    assert main(["index", "rebuild", "--language", "klingon", "--url", url]) == Exit.USAGE
    assert "language must be" in capsys.readouterr().err
    assert main(["index", "rebuild", "--quiet", "--url", url]) == Exit.DONE
    assert main(["doctor", "--url", url]) == Exit.DONE
