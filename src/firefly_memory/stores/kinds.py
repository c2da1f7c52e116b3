"""Which kind of store a store is, without loading what the others need."""

from __future__ import annotations

import sys

SQL = ("firefly_memory.stores.sql", "SQLStore")
MONGODB = ("firefly_memory.stores.mongodb", "MongoDBStore")
IN_MEMORY = ("firefly_memory.stores.memory", "InMemoryStore")


def is_of_kind(store: object, kind: tuple[str, str]) -> bool:
    """Whether ``store`` is an instance of that class. If its module is not loaded, the class has no instance."""
    module, name = kind
    home = sys.modules.get(module)
    return home is not None and isinstance(store, getattr(home, name))
