"""What PostgreSQL tells the listeners of other processes when a message was appended: the channel and the payload."""

from __future__ import annotations

import json
from hashlib import sha256

CHANNEL = "firefly_memory_feeds"
"""One channel for the feeds of all schemas of a database."""


def payload(schema_name: str | None, location: str) -> str:
    """What ``pg_notify`` says of a location in its stored form. It is short and reveals nothing: everyone who can
    connect to the database can listen."""
    return sha256(json.dumps([schema_name or "", location]).encode()).hexdigest()
