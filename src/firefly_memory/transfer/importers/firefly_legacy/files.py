"""The predecessors' directory of files: for each namespace a JSON file with a list of its entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from firefly_memory.errors import ConfigurationError, DatabaseConnectionError
from firefly_memory.transfer.importers.firefly_legacy.entries import RefusedError, Row, read_json
from firefly_memory.transfer.importers.firefly_legacy.sources import Source


def file_source(path: str) -> Source:
    directory = Path(unquote(path) or ".firefly_memory")
    if not directory.is_dir():
        raise DatabaseConnectionError("import-legacy", f"there is no directory {directory}")
    files = sorted(directory.glob("*.json"))
    if not files:
        raise ConfigurationError(f"there is no *.json in {directory}")
    return Source(f"directory {directory}", _rows(files), unique_ids=False)


def _rows(files: list[Path]) -> Iterator[Row]:
    for file in files:
        # The name is all that says whose it is; "/" and "\" had become "_" in it.
        namespace = file.stem
        try:
            items = _items(file)
        except RefusedError as refused:
            yield Row(namespace, None, refused)
            continue
        for item in items:
            fields = item if isinstance(item, dict) else {}
            yield Row(namespace, fields.get("entry_id"), fields)


def _items(file: Path) -> list[Any]:
    document = read_json(file.read_bytes().decode("utf-8", "surrogateescape"), "the file")
    if isinstance(document, dict) and "format" in document:
        raise RefusedError("the file is this library's own: use `firefly-memory export` and `import`")
    if not isinstance(document, list):
        raise RefusedError("the file is not a list of entries")
    return document
