"""``repr`` of objects whose constructor failed, as debuggers and tracebacks show it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import firefly_memory
from firefly_memory import FileStore, InMemoryStore, MemoryManager, PostgreSQLStore, SQLiteStore, WorkingMemory
from firefly_memory.errors import FireflyMemoryError


def classes_with_a_repr() -> list[type[Any]]:
    """Of all modules that can be imported here."""
    found: set[type[Any]] = set()
    for module in pkgutil.walk_packages(firefly_memory.__path__, "firefly_memory."):
        if module.name.endswith(".__main__") or ".alembic_branch." in module.name:
            continue
        try:
            members = vars(importlib.import_module(module.name)).values()
        except ImportError:
            continue
        found.update(
            each
            for each in members
            if isinstance(each, type)
            and each.__module__ == module.name
            and getattr(each.__dict__.get("__repr__"), "__code__", None) is not None
            and not issubclass(each, tuple)  # those are built at once, and so are dataclasses
            and not hasattr(each, "__dataclass_fields__")
        )
    return sorted(map(buildable, found), key=lambda each: each.__qualname__)


def buildable(kind: type[Any]) -> type[Any]:
    """A class, or one that is derived from it if it is abstract."""
    return buildable(kind.__subclasses__()[0]) if inspect.isabstract(kind) else kind


@pytest.mark.parametrize("kind", classes_with_a_repr(), ids=lambda kind: kind.__name__)
def test_a_half_built_object_has_a_repr(kind: Any) -> None:
    assert kind.__name__ in repr(kind.__new__(kind))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (InMemoryStore, {"max_turns_kept": -1}),
        (FileStore, {"directory": 5}),
        (SQLiteStore, {"path": None}),
        (PostgreSQLStore, {"url": "postgresql://ada:secret@host/db", "schema_name": ""}),
        (WorkingMemory, {"scope_id": ""}),
        (WorkingMemory, {"store": 5}),
        (MemoryManager, {"store": 5}),
        (MemoryManager, {"max_conversation_tokens": 0}),
    ],
)
def test_an_object_with_a_refused_argument_has_a_repr(kind: Any, arguments: dict[str, Any]) -> None:
    half = kind.__new__(kind)
    with pytest.raises((FireflyMemoryError, TypeError)):
        half.__init__(**arguments)
    assert kind.__name__ in repr(half)
    assert "secret" not in repr(half)
