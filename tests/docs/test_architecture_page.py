"""`docs/architecture.md` matches the code: its tree, its layers, and the files of each call."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

import firefly_memory
from firefly_memory import ConversationMemory, MemoryEntry, MemoryManager, SQLiteStore
from firefly_memory.agents import Memory
from tests.support.documentation import ROOT
from tests.support.layers import LAYERS, PACKAGES

PACKAGE = Path(firefly_memory.__file__).parent
REGISTRY = "facets/registry.py"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def part(title: str) -> str:
    """The text below a heading."""
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def files(text: str) -> list[str]:
    return re.findall(r"`([a-z_/]+\.py)`", text)


@contextmanager
def visited() -> Iterator[list[str]]:
    """The files of the library whose functions are called, in the order in which they are called first."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)):
            name = str(Path(path).relative_to(PACKAGE))
            if name not in seen:
                seen.append(name)

    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def modules_of(row: str) -> set[str]:
    return {name.rstrip("/").removesuffix(".py") for name in re.findall(r"`([a-z_/.]+)`", row)}


def test_the_table_has_every_module_at_the_top_in_the_layers_of_the_architecture_test() -> None:
    rows = [line.split("|")[2] for line in part("The tree").splitlines() if line.startswith("| ") and "`" in line]
    named = [modules_of(row) for row in rows if REGISTRY not in row]
    others = PACKAGES.difference(*named)
    on_the_page = [others if REGISTRY in row else modules_of(row) for row in rows]
    (row,) = [row for row in rows if REGISTRY in row]
    assert modules_of(row) - {REGISTRY.removesuffix(".py")} <= others, "an example of such a facet"
    assert on_the_page == [layer for layer in LAYERS if layer != {""}]
    at_the_top = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set.union(*on_the_page) == at_the_top - {"__init__", "migrations", "alembic_branch"}


@pytest.mark.parametrize("path", sorted(set(files(PAGE))))
def test_every_file_on_the_page_exists(path: str) -> None:
    places = [PACKAGE, ROOT, *(PACKAGE / facet for facet in PACKAGES)]
    assert any((place / path).is_file() for place in places)


def _way_of_a_save(store: SQLiteStore) -> Callable[[], object]:
    store.save("notes", MemoryEntry(content=1))
    return lambda: store.save("notes", MemoryEntry(content=2))


def _way_of_a_turn(store: SQLiteStore) -> Callable[[], object]:
    def summarize(turns: Any) -> str:
        return "summary"

    memory = ConversationMemory(store=store, summarizer=summarize, summarize_threshold=0)
    memory.add_turn("chat", "Hi", "Hello")
    return lambda: memory.add_turn("chat", "Hi", "Hello")


def _way_of_a_run(store: SQLiteStore) -> Callable[[], object]:
    agent = Agent(TestModel(), capabilities=[Memory(MemoryManager(store=store))])
    asyncio.run(agent.run("Hi", conversation_id="chat"))
    return lambda: asyncio.run(agent.run("Hi", conversation_id="chat"))


WAYS = {
    "The way of one save": _way_of_a_save,
    "The way of one turn": _way_of_a_turn,
    "The way of one run of an agent": _way_of_a_run,
}


@pytest.mark.parametrize("title", WAYS)
def test_a_call_goes_through_the_files_that_the_page_names(title: str, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        call = WAYS[title](store)
        with visited() as seen:
            call()
    steps = [files(step) for step in re.split(r"\n\d\. ", part(title))[1:]]
    assert not [path for step in steps for path in step if path not in seen], "not on the way"
    first = [min(seen.index(path) for path in step) for step in steps]
    assert first == sorted(first), "another order"
