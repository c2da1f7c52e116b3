"""Unreadable and unprintable facts do not end a run."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory import (
    ConfigurationError,
    CorruptDataError,
    FileStore,
    InvalidEntryError,
    MemoryManager,
    SQLiteStore,
)
from firefly_memory.agents import Memory
from firefly_memory.agents.delegation import DelegationRouter
from firefly_memory.testing.clock import stopped
from tests.support.scripted_model import TOLD, Scripted, answers_to_remember, instructions_of_a_run, stored

LONGEST = 10**4300


async def test_an_integer_too_long_to_print_is_refused_as_a_fact(manager: MemoryManager) -> None:
    manager.set_fact("n", LONGEST - 1)
    for value in (LONGEST, [{"n": -LONGEST}]):
        with pytest.raises(InvalidEntryError, match="more than 4,300 digits"):
            manager.set_fact("n", value)
    with pytest.raises(InvalidEntryError, match="more than 4,300 digits"):
        manager.working.increment("n", 10**4299 * 9)
    assert manager.get_fact("n") == LONGEST - 1
    for arguments in ({"importance": LONGEST}, {"ttl": LONGEST}):
        with pytest.raises(InvalidEntryError, match="too long to show"):
            manager.set_fact("n", 1, **arguments)
    assert str(LONGEST - 1) in await instructions_of_a_run(manager, max_fact_tokens=100_000)


@pytest.mark.parametrize("name", ["max_tokens", "on_conflict", "tools", "working_scope", "strategies", "max_facts"])
def test_an_option_too_long_to_print_is_refused(name: str) -> None:
    wrong: dict[str, Any] = {name: -LONGEST}
    with pytest.raises(ConfigurationError, match=f"{name} must be.* an int too long to show"):
        Memory(MemoryManager(), **wrong)


def test_a_router_refuses_an_integer_too_long_to_print() -> None:
    wrong: Any = -LONGEST
    with pytest.raises(ConfigurationError, match="an int too long to show has none"):
        DelegationRouter([Agent("test")], wrong)


DAMAGED = ['{"~int": "0x' + "f" * 4_000 + '"}', "1" * 5_000, "nonsense"]


@pytest.mark.parametrize("damage", DAMAGED, ids=["hexadecimal", "decimal", "no JSON"])
async def test_an_unreadable_fact_does_not_end_a_run(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import sqlite3

    with SQLiteStore(tmp_path / "memory.db") as store:
        manager = MemoryManager(store=store)
        for name in ("good", "bad"):
            manager.set_fact(name, 1)
        connection = sqlite3.connect(tmp_path / "memory.db")
        connection.execute("UPDATE memory_entries SET content = ? WHERE key = 'bad'", (damage,))
        connection.commit()
        connection.close()
        with pytest.raises(CorruptDataError):
            manager.get_fact("bad")
        with pytest.raises(CorruptDataError):
            manager.get_working_context()
        caplog.set_level(logging.WARNING, "firefly_memory")
        scripted = Scripted({"recall": {"key": "bad"}}, "done")
        await Agent(scripted.model, capabilities=[Memory(manager, tools=True)]).run("go", conversation_id="c")
        assert scripted.instructions == [f"{TOLD}- good: 1"] * 2
        assert "an entry was left out" in caplog.text
        assert "cannot be reached" in scripted.texts[-1][-1]
        assert stored(manager) == [("go", "done")]
        assert [entry.key for entry in store.load_readable(["working:default"])["working:default"].entries] == ["good"]
        assert store.load_readable(["working:default"])["working:default"].damaged == {"bad"}


def make_longer(path: Path) -> None:
    path.write_text(path.read_text().replace(": 1", ": " + "1" * 5_000))


async def test_an_unreadable_file_ends_no_run_and_reveals_no_hidden_fact(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = MemoryManager(store=FileStore(tmp_path))
    own = manager.fork(conversation_id="c")
    own.set_fact("bad", 1)
    make_longer(tmp_path / "working%3aconversation%3ac.json")
    manager.set_fact("good", 1)
    with pytest.raises(CorruptDataError):
        own.get_fact("bad")
    assert await instructions_of_a_run(manager) == f"{TOLD}- good: 1"
    assert "goes on without facts that cannot be read" in caplog.text
    (tmp_path / "working%3aconversation%3ac.json").unlink()
    make_longer(tmp_path / "working%3adefault.json")
    own.set_fact("good", "2, which the damaged one hides")
    assert await instructions_of_a_run(manager) == ""


async def test_a_damaged_fact_of_the_application_hides_that_of_a_model(tmp_path: Path) -> None:
    import sqlite3

    with SQLiteStore(tmp_path / "memory.db") as store:
        manager = MemoryManager(store=store)
        for key in ("role", "a\0b", "city"):
            manager.fork(conversation_id="c").set_fact(key, "admin")
        for key in ("role", "a\0b"):
            manager.set_fact(key, "guest")
        connection = sqlite3.connect(tmp_path / "memory.db")
        connection.execute("UPDATE memory_entries SET content = '{' WHERE namespace = 'working:default'")
        connection.commit()
        connection.close()
        assert await instructions_of_a_run(manager) == f"{TOLD}- city: admin"
        answers = await answers_to_remember(
            manager, {"key": "role", "value": "admin"}, {"key": "town", "value": "Lyon"}
        )
        assert "cannot be reached" in answers[-2]
        assert answers[-1] == "remembered"
        assert store.load_readable(["working:default"])["working:default"].damaged == {"role", "a\0b"}
        manager.clear_working()
        assert (
            await instructions_of_a_run(manager) == f"{TOLD}- role: admin\n- a\0b: admin\n- city: admin\n- town: Lyon"
        )


async def test_a_fact_of_the_application_that_has_expired_hides_nothing() -> None:
    manager = MemoryManager()
    manager.fork(conversation_id="c").set_fact("role", "of a model")
    with stopped() as clock:
        manager.set_fact("role", "of the application", ttl=60)
        assert await instructions_of_a_run(manager) == f"{TOLD}- role: of the application"
        clock.advance(minutes=2)
        assert await instructions_of_a_run(manager) == f"{TOLD}- role: of a model"


async def test_a_value_that_cannot_be_sent_is_recalled_as_text() -> None:
    manager = MemoryManager()
    facts = {"half": "\ud800", "halves": ["\ud800"], "list": [1, {"a": None}]}
    for key, value in facts.items():
        manager.set_fact(key, value)
    scripted = Scripted(*({"recall": {"key": key}} for key in facts), "done")
    await Agent(scripted.model, capabilities=[Memory(manager, tools=True)]).run("go", conversation_id="c")
    assert scripted.texts[-1][1:] == ["\ufffd", '["\ufffd"]', "[1, {'a': None}]"]
    assert stored(manager) == [("go", "done")]


async def test_load_readable_returns_each_namespace(manager: MemoryManager) -> None:
    scopes = [f"scope {number}" for number in range(3)]
    for scope in scopes:
        for key in ("b", "a"):
            await manager.fork(scope).async_set_fact(key, f"{scope} {key}")
    namespaces = [f"working:{scope}" for scope in (*scopes[1:], "unknown")]
    found = await manager.store.async_load_readable(namespaces)
    assert {name: [entry.content for entry in readable.entries] for name, readable in found.items()} == {
        "working:scope 1": ["scope 1 b", "scope 1 a"],
        "working:scope 2": ["scope 2 b", "scope 2 a"],
        "working:unknown": [],
    }
    assert manager.store.load_readable([]) == {}
    assert await asyncio.to_thread(manager.store.load_readable, namespaces) == found
