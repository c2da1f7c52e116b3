"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import firefly_memory
from firefly_memory import EntryStore, StoreView
from tests.support.layers import LAYERS, PACKAGES

TESTS = Path(__file__).parents[1]
ROOT = Path(firefly_memory.__file__).parent
MODULES = {
    ".".join(("firefly_memory", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if not {"migrations", "alembic_branch"} & set(path.parts)
}

# The facets that a facet builds on, if it is not only entries. Every facet asks tombstones.
BUILDS_ON: dict[str, set[str]] = {
    "tombstones": {"entries"},
    "entries": set(),
    "agent_history": set(),
    "knowledge": set(),
}

# Where a driver may be imported: below a folder of its backend.
DRIVERS = {
    "asyncpg": {"postgresql"},
    "psycopg": {"postgresql"},
    "aiosqlite": {"sqlite"},
    "sqlite3": {"sqlite", "sql"},
    "sqlalchemy": {"sqlite", "postgresql", "sql"},
    "pymongo": {"mongodb"},
    "bson": {"mongodb"},
    "motor": {"mongodb"},
}


def imports(module: str) -> set[str]:
    """What a module imports: when it is loaded, when it runs, and for its types."""
    return {_module_of(name) for name in _imported_names(MODULES[module])}


@cache
def _imported_names(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            found.update(f"{package}.{alias.name}" for alias in node.names)
    return found


def _module_of(name: str) -> str:
    while name not in MODULES and name.startswith("firefly_memory."):
        name = name.rpartition(".")[0]
    return name


def layer(module: str) -> int:
    top = module.removeprefix("firefly_memory").lstrip(".").partition(".")[0]
    for number, names in enumerate(LAYERS):
        if top in names:
            return number
    raise AssertionError(f"{module} has no layer; register it as a facet, or put it into LAYERS")


def test_imports_point_downwards() -> None:
    upwards = {
        f"{module.removeprefix('firefly_memory.')} {imported.removeprefix('firefly_memory.')}"
        for module in MODULES
        for imported in imports(module)
        if imported.startswith("firefly_memory") and layer(imported) > layer(module)
    }
    assert not upwards


def test_no_import_leads_back_to_where_it_began() -> None:
    """Imports for types and inside functions count: also within a layer a module can be read after those it needs."""
    assert circle_in({module: imports(module) - {module} for module in MODULES}) == []


def test_a_circle_of_imports_is_found_also_for_types_and_inside_functions(tmp_path: Path) -> None:
    for name, line in {
        "types": "if TYPE_CHECKING:\n    from firefly_memory import function",
        "function": "def late():\n    import firefly_memory.types",
    }.items():
        (tmp_path / f"{name}.py").write_text(line)
    graph = {f"firefly_memory.{path.stem}": _imported_names(path) for path in tmp_path.iterdir()}
    assert set(circle_in(graph)) == {"firefly_memory.types", "firefly_memory.function"}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_of_the_library_takes_a_public_name_from_the_top() -> None:
    """Public names are loaded on use, so such an import would hide what it leads to."""
    assert not [module for module in MODULES if module != "firefly_memory" and "firefly_memory" in imports(module)]


def test_a_facet_imports_no_other_facet_but_those_it_builds_on() -> None:
    for module in MODULES:
        mine = module.split(".")[1] if "." in module else ""
        for imported in imports(module):
            other = imported.split(".")[1] if imported.startswith("firefly_memory.") else ""
            if mine in PACKAGES and other in PACKAGES and other != mine:
                assert other in BUILDS_ON.get(mine, {"entries"}) | {"tombstones"}, f"{module} imports {imported}"


def test_a_driver_is_imported_below_its_backends_folders_only() -> None:
    for module in MODULES:
        for imported in imports(module):
            homes = DRIVERS.get(imported.partition(".")[0])
            assert homes is None or homes & set(module.split(".")), f"{module} imports {imported}"


def test_no_backend_imports_another() -> None:
    backends = {"sqlite", "postgresql", "mongodb"}
    for module in MODULES:
        mine = backends & set(module.split("."))
        for imported in imports(module):
            theirs = backends & set(imported.split(".")) if imported.startswith("firefly_memory.") else set()
            assert not mine or theirs <= mine, f"{module} imports {imported}"


def test_importing_the_package_loads_nothing_that_is_not_used() -> None:
    heavy = (
        "sqlalchemy alembic pydantic asyncpg psycopg aiosqlite sqlite3 pymongo bson motor tiktoken pydantic_ai asyncio"
    )
    loaded = _loaded_after("import firefly_memory")
    assert not loaded & set(heavy.split())


def test_search_loads_its_packages_when_they_are_used() -> None:
    loaded = _loaded_after(
        "from firefly_memory.search import results, words; from firefly_memory.search.embedders import adapters, word_llama"
    )
    assert not loaded & {
        "numpy",
        "tokenizers",
        "safetensors",
        "wordllama",
        "snowballstemmer",
        "sqlalchemy",
        "pydantic_ai",
    }


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
HEAVY = {"sqlalchemy", "alembic", "pydantic", "pydantic_settings", "pymongo", "bson", "asyncpg", "psycopg", "aiosqlite", "tiktoken", "pydantic_ai", "tqdm", "rich", "click"}  # fmt: skip


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
        _ = firefly_memory.Nonsense  # type: ignore[attr-defined]


def test_no_public_name_is_that_of_a_module() -> None:
    """Importing the module would put it in the place of what the name stands for."""
    assert not [name for name in firefly_memory.__all__ if f"firefly_memory.{name}" in MODULES]


def test_the_documented_import_path_gives_the_same_classes() -> None:
    from firefly_memory import database_store

    for name in database_store.__all__:
        assert getattr(database_store, name) is getattr(firefly_memory, name)
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = database_store.Nonsense  # type: ignore[attr-defined]


WITH_SYNC = ("initialize", "close", "cleanup_expired")
PAIRS = [
    *((name, f"async_{name}") for name in vars(StoreView) if hasattr(EntryStore, f"async_{name}") and name not in WITH_SYNC),
    *((f"{name}_sync", other) for name in WITH_SYNC for other in (name, f"async_{name}")),
]  # fmt: skip


def test_every_operation_has_both_modes() -> None:
    operations = {name for name, member in vars(StoreView).items() if inspect.iscoroutinefunction(member)}
    assert {blocking.removesuffix("_sync") for blocking, _ in PAIRS} == operations


@pytest.mark.parametrize(("blocking", "suspending"), PAIRS)
def test_both_modes_have_the_same_signature_and_docstring(blocking: str, suspending: str) -> None:
    sync, other = getattr(EntryStore, blocking), getattr(EntryStore, suspending)
    contract = getattr(StoreView, blocking.removesuffix("_sync"))
    assert not inspect.iscoroutinefunction(sync)
    assert inspect.iscoroutinefunction(other)
    assert inspect.signature(sync) == inspect.signature(other) == inspect.signature(contract)
    assert sync.__doc__ == other.__doc__ == contract.__doc__
    assert sync.__doc__


def test_files_are_small_and_names_explain_themselves() -> None:
    for path in [*MODULES.values(), *TESTS.rglob("*.py")]:
        assert len(path.read_text().splitlines()) <= 400, f"{path} wants to be two files"
        assert path.stem not in {"utils", "util", "helpers", "common", "misc"}


def test_no_test_module_is_imported() -> None:
    """What several test modules share is in ``tests/support``."""
    for path in TESTS.rglob("*.py"):
        for name in _imported_names(path):
            assert not any(part.startswith("test_") for part in name.split(".")), f"{path} imports {name}"


def test_every_test_module_is_in_the_folder_of_its_subject() -> None:
    assert {path.name for path in TESTS.glob("*.py")} == {"__init__.py", "conftest.py"}
    assert not list((TESTS / "support").glob("test_*.py"))
