"""Code, tests and documentation contain no private words and no former module names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documentation import ROOT

FOLDERS = ["src", "tests", "docs", "migrations", "benchmarks", "environments", "examples", "scripts", "website"]
SUFFIXES = {"", ".ini", ".md", ".py", ".toml", ".yml"}

UNPLAIN = {
    "colours": "modes",
    "twins": "forms, or pairs",
    "shelf": "ordered records",
    "patience": "time-out",
    "forks.py": "process_fork.py",
    "cannot be had": "failed, or missing",
    "ended loops": "event loops that have ended",
}

# The former name of agent history. Archives, revisions and the renaming of collections have it, because data has it.
TELLING_HISTORY = {
    "docs/changelog.md",
    "docs/data/agent-history.md",
    "docs/mongodb.md",
    "docs/decisions",
    "migrations/versions/0003_dialogues.py",
    "migrations/versions/0005_agent_history.py",
    "src/firefly_memory/agent_history/moving.py",
    "src/firefly_memory/agent_history/mongodb/documents.py",
    "tests/agent_history/test_circular_entries.py",
    "tests/cli/test_db_command.py",
    "tests/data",
    "tests/knowledge/test_moving.py",
    "tests/mongodb/test_renamed_collections.py",
    "tests/transfer",
}

# Modules that have another name now, or are parts of other modules.
FORMER_MODULES = [
    "administration",
    "backend",
    "borrowed",
    "by_url",
    "catalogue",
    "colours",
    "configured",
    "conversation_entries",
    "conversation_flows",
    "custom",
    "dialogues",
    "editing",
    "ended_loops",
    "file_tokens",
    "findings",
    "foreign",
    "forks",
    "lazy",
    "loops",
    "model_messages",
    "patience",
    "recording",
    "runners",
    "running",
    "saves",
    "shelf",
    "shielding",
    "statement",
    "threads",
    "turn_of_run",
    "turns",
    "twins",
    "view",
    "vocabularies",
]
FORMER_MODULES_AT_THE_TOP = {"names", "options"}


def texts() -> Iterator[tuple[str, str]]:
    """The path of every file below the root, and its text."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    for path in paths:
        if path.is_file() and path.suffix in SUFFIXES and path != Path(__file__) and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text(errors="replace")


def containing(pattern: str) -> set[str]:
    found = re.compile(pattern, re.IGNORECASE)
    return {f"{name}: {line.strip()}" for name, text in texts() for line in text.splitlines() if found.search(line)}


def pattern_of(word: str) -> str:
    """``word`` on its own or as a part of a name, with any space or underscore between its parts."""
    return r"(?<![a-z])" + r"[\s_]".join(map(re.escape, word.split())) + r"(?![a-z])"


@pytest.mark.parametrize("word", UNPLAIN)
def test_no_file_uses_the_word(word: str) -> None:
    # A file such as `test_forks.py` is about conversations and says so.
    found = containing(rf"(?<![\w]){re.escape(word)}" if word.endswith(".py") else pattern_of(word))
    assert not found, f"say {UNPLAIN[word]}"


def test_dialogue_is_a_word_of_earlier_versions_only() -> None:
    files = {name.partition(":")[0] for name in containing("dialogue")}
    assert not {
        name for name in files if not any(name == told or name.startswith(f"{told}/") for told in TELLING_HISTORY)
    }


def test_no_module_has_a_former_name() -> None:
    modules = list((ROOT / "src").rglob("*.py"))
    names = {part for path in modules for part in path.relative_to(ROOT / "src").with_suffix("").parts}
    assert not names & set(FORMER_MODULES)
    assert not {name for name in names if name.endswith("_examination")}
    assert not FORMER_MODULES_AT_THE_TOP & {path.stem for path in (ROOT / "src/firefly_memory").iterdir()}
    assert not (ROOT / "src/firefly_memory/agents/window.py").exists()
    assert not (ROOT / "src/firefly_memory/agents/strategies.py").exists()


@pytest.mark.parametrize(
    "text", ["the colours of", "ALL_COLOURS =", "ended_loops()", "what cannot be had", "see `forks.py`"]
)
def test_the_patterns_find_the_words(text: str) -> None:
    patterns = [rf"(?<![\w]){re.escape(word)}" if word.endswith(".py") else pattern_of(word) for word in UNPLAIN]
    assert [pattern for pattern in patterns if re.search(pattern, text, re.IGNORECASE)]
