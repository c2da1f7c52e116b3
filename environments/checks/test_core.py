"""The core alone: the stores without a server keep the contract, and what the README shows of them runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from firefly_memory import Capability, EntryStore, FileStore, InMemoryStore, SQLiteStore
from firefly_memory.testing import Check, Mode, checks

README = Path(__file__).parents[2] / "README.md"

EVERYTHING = frozenset(Capability)
STORES: dict[str, tuple[Callable[[Path], EntryStore], frozenset[Capability]]] = {
    "memory": (lambda _: InMemoryStore(), EVERYTHING - {Capability.DURABLE, Capability.SHARED}),
    "file": (lambda directory: FileStore(directory / "files"), EVERYTHING - {Capability.UNIQUE_IDS}),
    "sqlite": (lambda directory: SQLiteStore(directory / "memory.db"), EVERYTHING),
}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("store", "check"),
    [(name, check) for name, (_, capabilities) in STORES.items() for check in checks(capabilities)],
    ids=str,
)
def test_conformance(store: str, check: Check, mode: Mode, tmp_path: Path) -> None:
    check.run(lambda: STORES[store][0](tmp_path), mode)


def test_a_snippet_of_the_readme_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    snippet = next(each for each in snippets if "pydantic_ai" not in each)
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(StringIO()) as printed:
        exec(snippet, {})
    assert printed.getvalue().splitlines() == re.findall(r"^\s*print\(.*\)  # (.+)$", snippet, re.MULTILINE)
