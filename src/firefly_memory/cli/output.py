"""What a command prints: lines for people, or one JSON object for machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from firefly_memory.transfer.items import Counts


def show(arguments: argparse.Namespace, result: dict[str, Any], lines: Iterable[str]) -> None:
    """Print one or the other, to the standard output."""
    if arguments.json:
        print(json.dumps(result))
    else:
        for line in lines:
            print(line)


def in_words(counts: Counts) -> str:
    words = f"{counts.entries:,} entries, {counts.conversations:,} conversations with {counts.turns:,} turns"
    if counts.dialogues:
        words += f", {counts.dialogues:,} conversations of pydantic-ai with {counts.messages:,} messages"
    if counts.left_out:
        words += f"; left out {counts.left_out:,} messages that may speak as the system"
    return words
