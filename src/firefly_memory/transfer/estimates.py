"""About how much a store has, for those who want to know how long something will take."""

from __future__ import annotations

from firefly_memory.databases.sql.schema.metadata import POSTGRESQL_SCHEMA
from firefly_memory.errors import FireflyMemoryError
from firefly_memory.target import Target
from firefly_memory.urls import Kind

_TIMEOUT = 10.0
_OF_DIALOGUES = "memory_dialogue"


def estimated_items(found: Target, *, dialogues: bool = True) -> int | None:
    """Entries, conversations and turns; ``dialogues`` are counted with their messages. ``None`` where only counting
    would tell, or the database does not say."""
    try:
        by_name = _estimates(found)
    except FireflyMemoryError:  # which whoever uses the store will meet as well
        return None
    return sum(number for name, number in by_name.items() if dialogues or not name.startswith(_OF_DIALOGUES)) or None


def _estimates(found: Target) -> dict[str, int]:
    # Each is imported when it is wanted: the others' drivers may not be installed.
    match found.kind:
        case Kind.SQLITE | Kind.POSTGRES:
            from firefly_memory.databases.sql.schema.commands import Administration

            schema_name = found.options.get("schema_name", POSTGRESQL_SCHEMA)
            with Administration.of(found.url, schema_name, timeout=_TIMEOUT, reading=True) as database:
                return database.estimates()
        case Kind.MONGODB:
            from firefly_memory.databases.mongodb.estimates import estimated_documents

            return estimated_documents(found.url, found.options | {"timeout": _TIMEOUT, "migrate": False})
        case _:
            return {}
