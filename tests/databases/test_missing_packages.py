"""Missing drivers and packages: the error names the extra that installs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.backends import Place

pytestmark = pytest.mark.thorough


def without(packages: str, code: str) -> str:
    """What ``code`` prints in a process that does not have ``packages``."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({packages.split()!r}))"
    command = [sys.executable, "-c", f"{hide}\n{code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def attempt(use: str) -> str:
    return f"import asyncio\nimport firefly_memory\ntry:\n    {use}\nexcept ImportError as error:\n    print(type(error).__name__, error)"


@pytest.mark.parametrize(
    ("packages", "use", "words"),
    [
        ("pymongo", "firefly_memory.MongoDBStore('mongodb://h')", "MongoDBStore needs the package 'pymongo'"),
        ("pymongo", "firefly_memory.connect('mongodb://h')", "pip install 'firefly-memory[mongodb]'"),
        ("pymongo", "from firefly_memory.database_store import MongoDBStore; MongoDBStore('mongodb://h')", "pip install 'firefly-memory[mongodb]'"),
        ("psycopg", "firefly_memory.PostgreSQLStore('postgresql://h/x').load('n')", "calling a blocking method of a PostgreSQL store needs the package 'psycopg'"),
        ("asyncpg", "asyncio.run(firefly_memory.PostgreSQLStore('postgresql://h/x').async_load('n'))", "calling an asynchronous method of a PostgreSQL store needs the package 'asyncpg'"),
        ("asyncpg psycopg", "firefly_memory.PostgreSQLStore('postgresql://h/x')", "PostgreSQLStore needs the package 'asyncpg'"),
        ("asyncpg psycopg", "firefly_memory.connect('postgresql://h/x')", "pip install 'firefly-memory[postgres]'"),
    ],
)  # fmt: skip
def test_a_missing_package_is_named_with_the_extra_that_brings_it(packages: str, use: str, words: str) -> None:
    printed = without(packages, attempt(use))
    assert printed.startswith("MissingDependencyError ")
    assert words in printed


def test_without_any_driver_every_public_name_is_there() -> None:
    code = """
import firefly_memory, inspect, pydoc
namespace = {}
exec("from firefly_memory import *", namespace)
print(set(firefly_memory.__all__) - set(namespace))
print(all(hasattr(firefly_memory, name) for name in firefly_memory.__all__))
print({name for name, _ in inspect.getmembers(firefly_memory)} >= set(firefly_memory.__all__))
print("class MongoDBStore" in pydoc.render_doc(firefly_memory, renderer=pydoc.plaintext))
"""
    assert (
        without("asyncpg psycopg pymongo bson motor tiktoken pydantic_ai tqdm rich", code)
        == "set()\nTrue\nTrue\nTrue\n"
    )


@pytest.mark.parametrize(
    "command",
    ["doctor", "db check", "db upgrade", "export", "db import-legacy"],
)
@pytest.mark.parametrize(
    ("url", "extra"), [("mongodb://h/", "firefly-memory[mongodb]"), ("postgresql://h/x", "firefly-memory[postgres]")]
)
def test_a_command_names_the_extra_that_its_url_needs(command: str, url: str, extra: str) -> None:
    arguments = [*command.split(), "--from" if command == "db import-legacy" else "--url", url]
    code = f"""
import contextlib, io
from firefly_memory.cli import main
with contextlib.redirect_stderr(io.StringIO()) as said:
    code = main({arguments!r})
print(code, said.getvalue())
"""
    printed = without("asyncpg psycopg pymongo bson motor", code)
    assert printed.startswith("2 ")
    assert extra in printed


def test_one_driver_is_enough_for_its_mode(place: Place) -> None:
    blocking = (
        f"s = firefly_memory.PostgreSQLStore({place.postgresql()!r}); s.count('n'); s.close_sync(); print('fine')"
    )
    assert without("asyncpg", attempt(blocking)) == "fine\n"
    code = f"""
import asyncio, firefly_memory
async def main():
    async with firefly_memory.PostgreSQLStore({place.postgresql()!r}) as store:
        await store.async_count('n')
        print('fine')
asyncio.run(main())
"""
    assert without("psycopg", code) == "fine\n"


def test_the_stores_without_servers_need_no_extra(tmp_path: Path) -> None:
    code = f"""
import asyncio, firefly_memory as f
for store in (f.InMemoryStore(), f.FileStore({str(tmp_path / "files")!r}), f.SQLiteStore({str(tmp_path / "memory.db")!r})):
    store.save('n', f.MemoryEntry())
    print(asyncio.run(store.async_count('n')))
"""
    assert without("asyncpg psycopg pymongo bson motor orjson", code) == "1\n1\n1\n"
