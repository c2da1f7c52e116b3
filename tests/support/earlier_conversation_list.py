"""The list of a file store's conversations as an earlier version wrote it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def earlier_list(directory: Path, *names: str) -> None:
    """As the list was before: a file of entries."""
    entries: list[dict[str, Any]] = [
        {
            "entry_id": f"{number}/listed",
            "scope": "conversation",
            "key": name,
            "content": None,
            "metadata": {},
            "created_at": datetime(2026, 1, 1 + number, tzinfo=UTC).isoformat(),
            "expires_at": None,
            "importance": 0.5,
        }
        for number, name in enumerate(names)
    ]
    document = {"format": "firefly-memory/1", "namespace": "conversation:", "entries": entries}
    directory.mkdir(exist_ok=True)
    (directory / "conversation%3a.json").write_text(json.dumps(document))
