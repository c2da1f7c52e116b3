"""Somebody who guesses a name reads the right one in the error."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, get_type_hints

import pytest

import firefly_memory
from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    FileStore,
    InMemoryStore,
    MemoryManager,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
    agents,
    connect,
    database_store,
    likely_names,
)
from firefly_memory.agents import conversation_stores
from firefly_memory.facets import FACETS
from firefly_memory.urls import TABLE, StoreOptions

NAMES = {
    "PostgresStore": "PostgreSQLStore",
    "PostgresqlStore": "PostgreSQLStore",
    "SqliteStore": "SQLiteStore",
    "MongoStore": "MongoDBStore",
    "MongoDbStore": "MongoDBStore",
    "FileMemoryStore": "FileStore",
    "JSONFileStore": "FileStore",
    "MemoryManger": "MemoryManager",
    "Memory": "firefly_memory.agents.Memory",
    "FireflyAgent": "firefly_memory.agents.FireflyAgent",
    "ConversationStore": "firefly_memory.agents.SQLConversationStore or MongoConversationStore",
    "prune": "firefly_memory.retention.prune",
}


@pytest.mark.parametrize("guess", NAMES)
def test_an_import_of_a_wrong_name_says_the_right_one(guess: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from firefly_memory import {guess}")
    assert str(caught.value) == f"cannot import name {guess!r} from 'firefly_memory'; did you mean {NAMES[guess]}?"
    assert caught.value.name == "firefly_memory"


@pytest.mark.parametrize("guess", NAMES)
def test_a_wrong_attribute_says_the_right_one(guess: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{guess}'; did you mean {NAMES[guess]}\\?"):
        getattr(firefly_memory, guess)
    assert not hasattr(firefly_memory, guess)
    assert getattr(firefly_memory, guess, None) is None


def test_a_name_that_is_like_no_other_gets_no_advice() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'Nonsense' from 'firefly_memory' \("):
        exec("from firefly_memory import Nonsense")
    with pytest.raises(AttributeError, match=r"has no attribute 'Nonsense'$"):
        getattr(firefly_memory, "Nonsense")  # noqa: B009 - a checker would refuse it


def test_other_modules_with_lazy_names_give_advice_too() -> None:
    with pytest.raises(ImportError, match="did you mean SQLConversationStore"):
        exec("from firefly_memory.agents import SqlConversationStore")
    with pytest.raises(AttributeError, match="did you mean MongoDBStore"):
        getattr(database_store, "MongoStore")  # noqa: B009


@pytest.mark.parametrize("name", ["agents", "archive", "retention", "testing"])
def test_a_submodule_is_there_without_an_import_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    __import__(f"firefly_memory.{name}")
    module = vars(firefly_memory)[name]
    monkeypatch.delattr(firefly_memory, name)  # as before the first import
    assert getattr(firefly_memory, name) is module


def test_a_submodule_whose_extra_is_missing_is_no_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(firefly_memory, "agents")
    monkeypatch.setitem(__import__("sys").modules, "firefly_memory.agents", None)
    assert not hasattr(firefly_memory, "agents")


def test_the_names_that_are_elsewhere_are_there() -> None:
    for module, names in likely_names._HOMES.items():
        found = getattr(firefly_memory, module)
        assert [name for name in names.split() if not hasattr(found, name)] == []
    assert agents.SQLConversationStore is conversation_stores.SQLConversationStore


def test_the_classes_and_functions_of_facets_are_found_in_their_packages() -> None:
    found = 0
    for package in [name.partition(".facet:")[0] for name in FACETS]:
        for name in getattr(import_module(package), "__all__", ()):
            if not name.isupper() and name not in firefly_memory.__all__:
                with pytest.raises(AttributeError, match=f"did you mean {package}.{name}\\?"):
                    getattr(firefly_memory, name)
                found += 1
    assert found > 40


WRONG_CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: MemoryManager(url="sqlite:///s3cret"), r"'url': write MemoryManager\(store=connect\(url\)\)"),  # type: ignore[call-arg]
    (lambda: MemoryManager("sqlite:///s3cret"), r"keyword arguments only: MemoryManager\(store=connect\(url\)\)"),  # type: ignore[call-arg,arg-type]
    (lambda: MemoryManager(scope="user:ada"), "'scope'; did you mean 'working_scope_id'"),  # type: ignore[call-arg]
    (lambda: ConversationMemory(database_url="s3cret"), r"write ConversationMemory\(store=connect\(url\)\)"),  # type: ignore[call-arg]
    (lambda: WorkingMemory(scope="user:ada"), "did you mean 'scope_id'"),  # type: ignore[call-arg]
    (lambda: SQLiteStore(url="sqlite:///x.db"), r"'url': it takes path; connect\(url\) takes a URL"),  # type: ignore[call-arg]
    (lambda: SQLiteStore(filename="x.db"), "did you mean 'path'"),  # type: ignore[call-arg]
    (lambda: SQLiteStore("x.db", 5), "at most 1 positional argument; the keywords are path, timeout"),  # type: ignore[call-arg]
    (lambda: SQLiteStore("x.db", tiemout=5), "did you mean 'timeout'"),  # type: ignore[call-arg]
    (lambda: PostgreSQLStore(dsn="postgresql://h/d"), "did you mean 'url'"),  # type: ignore[call-arg]
    (lambda: PostgreSQLStore("postgresql://h/d", schema="s"), "did you mean 'schema_name'"),  # type: ignore[call-arg]
    (lambda: MongoDBStore(uri="mongodb://h/"), "did you mean 'url'"),  # type: ignore[call-arg]
    (lambda: MongoDBStore("mongodb://h/", db_name="d"), "did you mean 'database'"),  # type: ignore[call-arg]
    (lambda: FileStore(path="notes"), "did you mean 'base_dir'"),  # type: ignore[call-arg]
    (lambda: InMemoryStore(size=3), r"InMemoryStore\(\) got an unexpected keyword argument 'size'$"),  # type: ignore[call-arg]
    (lambda: connect("sqlite:///x.db", tiemout=5), "did you mean 'timeout'"),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("call", "words"), WRONG_CALLS, ids=[words for _, words in WRONG_CALLS])
def test_a_constructor_with_a_wrong_argument_says_the_right_one(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        ("memory.db", "use sqlite:///memory.db for this file"),
        ("/var/lib/memory.db", "use sqlite:////var/lib/memory.db for this file"),
        ("sqlite:memory.db", "use sqlite:///memory.db for this file"),
        ("sqlite://memory.db", "use sqlite:///memory.db for this file"),
        ("sqlite3:///data/memory.db", "use sqlite:///data/memory.db for this file"),
        ("mongo://h/d", "did you mean 'mongodb'"),
        ("pg://h/d", "did you mean 'postgresql'"),
        ("postgressql://h/d", "did you mean 'postgresql'"),
        ("mysql://h/d", "starts with 'mysql': use sqlite:///memory.db, postgresql://host/name"),
    ],
)
def test_a_wrong_url_says_the_right_one(guess: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        connect(guess)


@pytest.mark.parametrize("secret", ["u:s3cret@h.db", "s3cret@h/x.db", "mongo://u:s3cret@h/d", "password=s3cret.db"])
def test_advice_about_a_url_shows_no_secret(secret: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect(secret)
    assert "s3cret" not in str(caught.value)


def test_the_typed_options_of_connect_are_those_of_the_stores() -> None:
    taken: set[str] = set()
    for row in TABLE.values():
        taken |= inspect.signature(row.load("store")).parameters.keys()
    assert get_type_hints(StoreOptions).keys() == taken - {"url", "path", "base_dir", "engine", "client"}


def test_a_constructor_keeps_its_signature() -> None:
    assert "timeout" in inspect.signature(SQLiteStore).parameters
    assert inspect.unwrap(SQLiteStore.__init__) is not SQLiteStore.__init__
