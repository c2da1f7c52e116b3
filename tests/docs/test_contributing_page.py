"""The examples of `docs/worked-examples.md` name files that are there, and what is in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import firefly_memory
from tests.support.documentation import ROOT

PACKAGE = Path(firefly_memory.__file__).parent
EXAMPLES = (ROOT / "docs" / "worked-examples.md").read_text(encoding="utf-8")
PARTS = {part.partition("\n")[0]: part for part in EXAMPLES.split("\n## ")[1:]}

# The names in the files that the examples tell to look for.
NAMES = {
    "conversations/log.py": "StoredTurn checked_turn",
    "conversations/types.py": "ConversationTurn",
    "conversations/turn_form.py": "NewTurn draft appended turn",
    "conversations/flows.py": "_COMPARED _earlier",
    "conversations/moving.py": "version since",
    "conversations/memory.py": "add_turn async_add_turn get_window",
    "conversations/transfer.py": "turn_as_json turn_from_json",
    "conversations/mongodb/documents.py": "CONVERSATION_INDEXES turn",
    "databases/sql/schema/alembic_env.py": "create_index_online",
    "facets/groups.py": "Operations",
    "facets/logs.py": "STORES",
    "facets/registry.py": "FACETS",
    "settings.py": "backend",
    "tests/unit/test_architecture.py": "DRIVERS BUILDS_ON",
    "urls.py": "Kind",
}


def files(part: str) -> list[str]:
    return re.findall(r"`([\w/]+\.(?:py|md|toml))`", part)


def place_of(name: str) -> Path:
    at_the_top = name.partition("/")[0] in {"tests", "docs", "migrations", "pyproject.toml"}
    return (ROOT if at_the_top else PACKAGE) / name


def test_there_are_the_five_examples() -> None:
    assert list(PARTS) == ["An index", "A field of a turn", "A backend", "A facet", "An agent framework"]


@pytest.mark.parametrize("title", PARTS)
def test_every_file_of_an_example_is_there(title: str) -> None:
    named = files(PARTS[title])
    assert len(named) >= 6
    assert [name for name in named if name != "facet.py" and not place_of(name).is_file()] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_what_an_example_looks_for_in_it(name: str) -> None:
    assert f"`{name}`" in EXAMPLES
    text = place_of(name).read_text(encoding="utf-8")
    for word in NAMES[name].split():
        assert word in EXAMPLES
        assert re.search(rf"\b(?:def|class) {word}\b|^\s*{word}\b.*=", text, re.MULTILINE), word
