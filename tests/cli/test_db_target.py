"""The database of ``firefly-memory db``: URLs, variables, MongoDB, and stores without a schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo
import pytest

from firefly_memory import MemoryEntry, connect
from firefly_memory.cli.exits import Exit
from tests.support.backends import Place
from tests.support.databases import empty_postgresql
from tests.support.db_command import Db


def test_the_url_comes_from_a_file_or_the_environment(
    url: str, anywhere: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"{url}\n")
    assert anywhere("upgrade", "--url-file", str(secret)) == Exit.DONE
    with monkeypatch.context() as patch:
        patch.setenv("FIREFLY_AGENTIC_MEMORY_URL_FILE", str(secret))
        assert anywhere("current") == Exit.DONE
    with monkeypatch.context() as patch:
        patch.setenv("FIREFLY_AGENTIC_MEMORY_URL", url)
        assert anywhere("current") == Exit.DONE
        patch.setenv("FIREFLY_AGENTIC_MEMORY_POSTGRES_SCHEMA", "elsewhere")
        assert anywhere("current") == (Exit.DONE if url.startswith("sqlite") else Exit.BEHIND)
    with monkeypatch.context() as patch:
        if url.startswith("sqlite"):
            patch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "sqlite")
            patch.setenv("FIREFLY_AGENTIC_MEMORY_SQLITE_PATH", url.removeprefix("sqlite:///"))
        else:
            patch.setenv("FIREFLY_AGENTIC_MEMORY_POSTGRES_URL", url)
        assert anywhere("current") == Exit.DONE


@pytest.fixture
def mongodb(place: Place) -> Iterator[tuple[pymongo.MongoClient[Any], str]]:
    """A client, and the name of a database of the test's own."""
    name = f"db_command_{uuid4().hex[:12]}"
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(place.mongodb()) as client:
        yield client, name
        client.drop_database(name)


@pytest.mark.parametrize("by", ["variables", "url", "options", "capitals"])
def test_indexes_of_mongodb_are_made_and_checked_where_the_store_is(
    by: str, place: Place, mongodb: Any, anywhere: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = mongodb
    before = set(client.list_database_names())
    given: list[str] = []
    beside, separator, query = place.mongodb().partition("?")
    if by == "variables":
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "mongodb")
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_URL", place.mongodb())
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_DATABASE", name)
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION", "memories")
    elif by == "url":
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION", "memories")
        given = ["--url", f"{beside.rstrip('/')}/{name}{separator}{query}"]
    else:
        url = place.mongodb().replace("mongodb", "MONGODB") if by == "capitals" else place.mongodb()
        given = ["--url", url, "--database", name, "--collection", "memories"]
    assert anywhere("check", *given) == Exit.BEHIND
    assert anywhere("current", *given) == Exit.BEHIND
    assert "indexes are missing; run `firefly-memory db upgrade" in anywhere.out
    for action in ("check", "current"):
        found = anywhere.json(action, *given)
        assert (found["state"], found["revision"], found["head"], found["pending"]) == ("behind", None, None, [])
    assert set(client.list_database_names()) == before, "looking makes nothing"
    assert anywhere("upgrade", *given) == Exit.DONE
    for action in ("check", "current"):
        assert anywhere(action, *given) == Exit.DONE
        assert anywhere.json(action, *given)["state"] == "current"
    assert set(client.list_database_names()) - before == {name}
    assert "entry_id_1" in client[name].memories.index_information()
    for refused in (["downgrade", "base"], ["grants", "role"], ["sql"]):
        assert anywhere(*refused, *given) == Exit.USAGE
        assert "MongoDB" in anywhere.err


@pytest.mark.parametrize("backend", ["file", "in_memory"])
def test_a_store_without_a_schema_has_nothing_to_migrate_and_no_other_is_touched(
    backend: str, postgresql: str, anywhere: Db, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", backend)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_POSTGRES_URL", postgresql)  # left over
    for action in ("upgrade", "current", "check"):
        assert anywhere(action) == Exit.DONE
        assert "has no schema" in anywhere.out
    assert anywhere.json("upgrade") == {"ran": [], "revision": None}
    assert anywhere.json("check")["state"] == "no schema"
    for refused in (["sql"], ["grants", "role"], ["downgrade", "base"], ["stamp", "base"]):
        assert anywhere(*refused) == Exit.USAGE
    assert anywhere("sql", "--dialect", "sqlite") == Exit.DONE, "which says for what it is"
    assert anywhere("current", "--url", postgresql) == Exit.BEHIND, "nobody has migrated it"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_schemes_may_be_written_in_capitals(dialect: str, tmp_path: Path, place: Place, anywhere: Db) -> None:
    with empty_postgresql(place.postgresql()) as postgresql:
        url = f"sqlite:///{tmp_path}/memory.db" if dialect == "sqlite" else postgresql
        scheme, separator, rest = url.partition(":")
        for shouted in (f"{scheme.upper()}{separator}{rest}", f"{scheme.title()}{separator}{rest}"):
            assert anywhere("upgrade", "--url", shouted) == Exit.DONE
            assert anywhere("check", "--url", shouted) == Exit.DONE
            with connect(shouted, migrate=False) as store:
                store.save("n", MemoryEntry())
