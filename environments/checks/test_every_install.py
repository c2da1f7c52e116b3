"""What works in every environment, and what names the extra that it needs. FIREFLY_EXTRAS has those that are here."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path

import pytest

import firefly_memory
from firefly_memory import MissingDependencyError, MongoDBStore, PostgreSQLStore, create_llm_summarizer
from firefly_memory.strategies import MemoryMaxTokensStrategy, MemoryProfile, TextSplitterConfig
from firefly_memory.tokens import TokenEstimator

EMPTY_PROFILE = Path(__file__).with_name("profile.yaml")

EXTRAS = set(os.environ["FIREFLY_EXTRAS"].split())
if find_spec("yaml"):
    EXTRAS.add("yaml")  # packages of other extras bring it

NEEDS: dict[str, Callable[[], object]] = {
    "postgres": lambda: PostgreSQLStore("postgresql://localhost/x"),
    "mongodb": lambda: MongoDBStore("mongodb://localhost/"),
    "agents": lambda: (import_module("firefly_memory.agents").Memory, create_llm_summarizer("test")),
    "tokens": lambda: TokenEstimator(encoding_name="o200k_base"),
    "strategies": lambda: (
        MemoryMaxTokensStrategy(conditions=["message.role"]),
        TextSplitterConfig().split("a " * 999),
    ),
    "yaml": lambda: MemoryProfile.from_file(EMPTY_PROFILE),
}


def test_the_library_is_the_installed_one() -> None:
    assert Path(sys.prefix) in Path(firefly_memory.__file__).parents
    assert any(str(path).endswith("migrations/env.py") for path in files("firefly-memory") or ())


def test_every_public_name_can_be_imported() -> None:
    namespace: dict[str, object] = {}
    exec("from firefly_memory import *", namespace)
    assert set(firefly_memory.__all__) <= namespace.keys()
    assert all(hasattr(firefly_memory, name) for name in firefly_memory.__all__)
    assert {name for name, _ in inspect.getmembers(firefly_memory)} >= set(firefly_memory.__all__)


def test_help_shows_the_package() -> None:
    assert "class MongoDBStore" in pydoc.plain(pydoc.render_doc(firefly_memory))


@pytest.mark.parametrize("command", ["", "db", "db upgrade", "export", "import", "copy", "doctor"])
def test_the_command_has_help(command: str) -> None:
    program = Path(sys.executable).with_name("firefly-memory")
    done = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True)
    assert "usage: firefly-memory" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("extra", NEEDS)
def test_what_needs_an_extra_works_with_it_and_names_it_without(extra: str) -> None:
    if extra in EXTRAS:
        assert NEEDS[extra]()
        return
    with pytest.raises(MissingDependencyError) as refused:
        NEEDS[extra]()
    assert f"pip install 'firefly-memory[{extra}]'" in str(refused.value)
