"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import firefly_memory
from firefly_memory import EntryStore, StoreView

ROOT = Path(firefly_memory.__file__).parent
MODULES = {
    ".".join(("firefly_memory", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if not {"migrations", "alembic_branch"} & set(path.parts)
}

# Each layer may import those below it.
LAYERS = [
    {"firefly_memory.clock", "firefly_memory.errors", "firefly_memory.forks", "firefly_memory.lazy", "firefly_memory.options", "firefly_memory.prompt_text", "firefly_memory.python_values", "firefly_memory.reprs", "firefly_memory.schema_names", "firefly_memory.twins"},
    {"firefly_memory.colours", "firefly_memory.names", "firefly_memory.scopes", "firefly_memory.codec", "firefly_memory.schema", "firefly_memory.store_urls", "firefly_memory.tokens", "firefly_memory.file_tokens", "firefly_memory.vocabularies", "firefly_memory.vocabulary_files"},
    {"firefly_memory.entries", "firefly_memory.facts", "firefly_memory.turns", "firefly_memory.settings", "firefly_memory.target"},
    {"firefly_memory.protocols", "firefly_memory.messages", "firefly_memory.message_values", "firefly_memory.model_messages"},
    {"firefly_memory.stores"},
    {"firefly_memory.by_url", "firefly_memory.configured", "firefly_memory.estimates", "firefly_memory.database_store", "firefly_memory.conversation", "firefly_memory.conversation_flows", "firefly_memory.conversation_window", "firefly_memory.conversation_export", "firefly_memory.working", "firefly_memory.summarization", "firefly_memory.alembic"},
    {"firefly_memory.manager", "firefly_memory.archive", "firefly_memory.archive_import", "firefly_memory.archive_items", "firefly_memory.archive_reader", "firefly_memory.untrusted", "firefly_memory.dialogue_archive", "firefly_memory.copying", "firefly_memory.testing"},
    {"firefly_memory.legacy", "firefly_memory.agents"},
    {"firefly_memory.reasoning", "firefly_memory.pipeline"},
    {"firefly_memory.cli"},
    {"firefly_memory"},
]  # fmt: skip

DRIVERS = {
    "asyncpg": "firefly_memory.stores.sql.postgresql",
    "psycopg": "firefly_memory.stores.sql.postgresql",
    "aiosqlite": "firefly_memory.stores.sql.sqlite",
    "sqlite3": "firefly_memory.stores.sql",
    "sqlalchemy": "firefly_memory.stores.sql",
    "pymongo": "firefly_memory.stores.mongodb",
    "bson": "firefly_memory.stores.mongodb",
    "motor": "firefly_memory.stores.mongodb",
}


def imports(module: str) -> set[str]:
    """What a module imports when it is loaded or when it runs, not what it imports for its types only."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(MODULES[module].read_text()))
    return {_module_of(name) for name in found}


def _module_of(name: str) -> str:
    while name not in MODULES and name.startswith("firefly_memory."):
        name = name.rpartition(".")[0]
    return name


def layer(module: str) -> int:
    for number, names in enumerate(LAYERS):
        if module in names or any(module.startswith(f"{name}.") for name in names - {"firefly_memory"}):
            return number
    raise AssertionError(f"{module} has no layer; put it into LAYERS")


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_downwards(module: str) -> None:
    for imported in imports(module):
        if imported.startswith("firefly_memory"):
            assert layer(imported) <= layer(module), f"{module} imports {imported} from above"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_driver_is_imported_in_its_backends_own_files_only(module: str) -> None:
    for imported in imports(module):
        home = DRIVERS.get(imported.partition(".")[0])
        allowed = module == "firefly_memory.schema" and imported.startswith("sqlalchemy")
        assert home is None or module.startswith(home) or allowed, f"{module} imports {imported}"


def test_no_backend_imports_another() -> None:
    homes = [
        "firefly_memory.stores.sql.sqlite",
        "firefly_memory.stores.sql.postgresql",
        "firefly_memory.stores.mongodb",
    ]
    for module in MODULES:
        for home in homes:
            if module.startswith(home):
                others = [other for other in homes if other != home]
                assert not [name for name in imports(module) for other in others if name.startswith(other)]


def test_importing_the_package_loads_nothing_that_is_not_used() -> None:
    heavy = (
        "sqlalchemy alembic pydantic asyncpg psycopg aiosqlite sqlite3 pymongo bson motor tiktoken pydantic_ai asyncio"
    )
    loaded = _loaded_after("import firefly_memory")
    assert not loaded & set(heavy.split())


def test_the_sqlite_store_loads_neither_other_backends_nor_alembic_nor_the_orm(tmp_path: Path) -> None:
    use = "from firefly_memory import MemoryEntry, SQLiteStore; SQLiteStore({!r}).save('n', MemoryEntry())"
    use = use.format(str(tmp_path / "memory.db"))
    _loaded_after(use)
    loaded = _loaded_after(use)
    unused = "alembic asyncpg psycopg pymongo sqlalchemy.orm sqlalchemy.ext.asyncio sqlalchemy.dialects.postgresql"
    assert not loaded & set(unused.split())


def test_the_mongodb_store_does_not_load_sqlalchemy() -> None:
    loaded = _loaded_after("from firefly_memory import MongoDBStore; MongoDBStore('mongodb://localhost/')")
    assert "pymongo" in loaded
    assert "sqlalchemy" not in loaded


# What a public name needs beside the standard library; pydantic is what entries are made of.
_NO_PACKAGE: set[str] = set()
NEEDS = {
    "MemorySettings": {"pydantic", "pydantic_settings"},
    "PostgreSQLStore": {"pydantic", "sqlalchemy"},
    "SQLiteStore": {"pydantic", "sqlalchemy"},
    "ConversationPage": _NO_PACKAGE,
    "Window": _NO_PACKAGE,
    "create_llm_summarizer": _NO_PACKAGE,
    **{name: _NO_PACKAGE for name in firefly_memory.__all__ if name.endswith(("Error", "Turn", "Info", "Estimator"))},
}
HEAVY = {"sqlalchemy", "alembic", "pydantic", "pydantic_settings", "pymongo", "bson", "asyncpg", "psycopg", "aiosqlite", "tiktoken", "pydantic_ai", "tqdm"}  # fmt: skip


def test_a_public_name_loads_nothing_that_it_does_not_need() -> None:
    """Each in a process forked from one that has loaded only the standard library."""
    code = f"""
import os, sys, asyncio, json
import firefly_memory
for name in firefly_memory.__all__:
    sys.stdout.flush()
    if not os.fork():
        getattr(firefly_memory, name)
        print(name, *({HEAVY!r} & set(sys.modules)), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = {name: set(packages) for name, *packages in map(str.split, printed.splitlines())}
    assert loaded.keys() == set(firefly_memory.__all__)
    needless = {name: packages - NEEDS.get(name, {"pydantic"}) for name, packages in loaded.items()}
    assert not {name: packages for name, packages in needless.items() if packages}


def _loaded_after(code: str) -> set[str]:
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_every_public_name_is_there_sorted_and_documented() -> None:
    assert firefly_memory.__all__ == sorted(firefly_memory.__all__)
    for name in firefly_memory.__all__:
        assert getattr(firefly_memory, name).__doc__, name
        assert name in dir(firefly_memory)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = firefly_memory.Nonsense


def test_no_public_name_is_that_of_a_module() -> None:
    """Importing the module would put it in the place of what the name stands for."""
    assert not [name for name in firefly_memory.__all__ if f"firefly_memory.{name}" in MODULES]


def test_the_documented_import_path_gives_the_same_classes() -> None:
    from firefly_memory import database_store

    for name in database_store.__all__:
        assert getattr(database_store, name) is getattr(firefly_memory, name)
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = database_store.Nonsense


PAIRS = [
    *[(name, f"async_{name}") for name in vars(StoreView) if not name.startswith("_") and hasattr(EntryStore, f"async_{name}")],
    *[(f"{name}_sync", name) for name in ("initialize", "close", "cleanup_expired")],
]  # fmt: skip


def test_every_operation_has_both_colours() -> None:
    operations = {name for name, member in vars(StoreView).items() if inspect.iscoroutinefunction(member)}
    assert {blocking.removesuffix("_sync") for blocking, _ in PAIRS} == operations


@pytest.mark.parametrize(("blocking", "suspending"), PAIRS)
def test_both_colours_have_the_same_signature_and_docstring(blocking: str, suspending: str) -> None:
    sync, other = getattr(EntryStore, blocking), getattr(EntryStore, suspending)
    contract = getattr(StoreView, blocking.removesuffix("_sync"))
    assert not inspect.iscoroutinefunction(sync)
    assert inspect.iscoroutinefunction(other)
    assert inspect.signature(sync) == inspect.signature(other) == inspect.signature(contract)
    assert sync.__doc__ == other.__doc__ == contract.__doc__
    assert sync.__doc__


def test_files_are_small_and_names_explain_themselves() -> None:
    for path in MODULES.values():
        assert len(path.read_text().splitlines()) <= 400, f"{path.name} wants to be two files"
        assert path.stem not in {"utils", "util", "helpers", "common", "misc"}
