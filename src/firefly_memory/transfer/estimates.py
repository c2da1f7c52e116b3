"""About how much a store has, for those who want to know how long something will take."""

from __future__ import annotations

from firefly_memory.errors import FireflyMemoryError
from firefly_memory.target import Target, migrations_of

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
    if found.row.database is not None:
        with migrations_of(found, timeout=_TIMEOUT, reading=True) as database:
            return database.estimates()
    if found.row.estimates is not None:
        options = found.options | {"timeout": _TIMEOUT, "migrate": False}
        by_name: dict[str, int] = found.row.load("estimates")(found.url, options)
        return by_name
    return {}
