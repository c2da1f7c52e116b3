"""What a command prints: lines for people, or one JSON object for machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from firefly_memory.archive_items import Counts


def show(arguments: argparse.Namespace, result: dict[str, Any], lines: Iterable[str]) -> None:
    """Print one or the other, to the standard output."""
    if arguments.json:
        print(json.dumps(result))
    else:
        for line in lines:
            print(line)


def in_words(counts: Counts) -> str:
    words = f"{counts.entries:,} entries, {counts.conversations:,} conversations with {counts.turns:,} turns"
    if not counts.dialogues:
        return words
    return f"{words}, {counts.dialogues:,} conversations of pydantic-ai with {counts.messages:,} messages"
