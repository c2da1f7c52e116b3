"""Facts as they were before revision 0004, and what somebody may have saved in their way."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from firefly_memory.entries.fact_ids import fact_id
from firefly_memory.identifiers import stored_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)


SCOPES = ["alice", "bob", "with \x00, \x10 and \ud800"]


def id_of_before(namespace: str, key: str) -> str:
    return hashlib.sha256(f"{namespace}\x00{stored_name('key', key)}".encode("utf-8", "surrogatepass")).hexdigest()


def rows_of_before() -> list[dict[str, Any]]:
    """Facts, an entry of the application's own beside them, and what somebody has put in the way of alice's name."""
    facts = [
        (f"working:{scope}", key, id_of_before(f"working:{scope}", key)) for scope in SCOPES for key in ("name", "age")
    ]
    others = [
        ("working:alice", "mine", "mine"),
        ("working:alice", None, "no key"),
        ("conversation:c", "name", "of the application"),
        ("notes", "name", "0" * 64),
        ("notes", "name", fact_id("working:alice", "name")),
    ]
    return rows_of([*facts, *others])


def rows_of_mallory() -> list[dict[str, Any]]:
    """What somebody saved who knew which ids come, and where the victim is; and names that are as long as can be."""
    return rows_of(
        [
            ("working:victim", "name", id_of_before("working:victim", "name")),
            ("working:mallory", "secret", fact_id("working:victim", "secret")),
            ("working:mallory", "role", id_of_before("working:victim", "role")),
            ("working:\x10mallory", "age", id_of_before("working:victim", "age")),
            ("working:\x10mallory", "own", id_of_before("working:\x10mallory", "own")),
            ("working:zoe", None, "fact:" + "0" * 64),
            ("notes", None, "fact:hello"),
            ("notes", "escape", "fact:" + "a" * 394 + "\x00" * 10),
            ("notes", "long", "fact:" + "b" * 507),
            ("conversation:" + "x" * 499, "a", "longest"),
            ("conversation:" + "x" * 498 + "y", "b", "another"),
        ]
    )


def rows_of(names: list[tuple[str, str | None, str]]) -> list[dict[str, Any]]:
    return [
        {
            "entry_id": stored_name("entry_id", entry_id),
            "namespace": stored_name("namespace", namespace),
            "scope": "working",
            "key": key,
            "content": json.dumps(ascii(f"{namespace} {key}")),
            "metadata": "{}",
            "importance": 0.5,
        }
        for namespace, key, entry_id in names
    ]
