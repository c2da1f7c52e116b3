"""What a command prints: lines for people, or one JSON object for machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any


def show(arguments: argparse.Namespace, result: dict[str, Any], lines: Iterable[str]) -> None:
    """Print one or the other, to the standard output."""
    if arguments.json:
        print(json.dumps(result))
    else:
        for line in lines:
            print(line)
