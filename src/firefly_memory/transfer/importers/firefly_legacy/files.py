"""The predecessors' directory of files: for each namespace a JSON file with a list of its entries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firefly_memory.errors import ConfigurationError, DatabaseConnectionError
from firefly_memory.target import Target
from firefly_memory.transfer.importers.firefly_legacy.entries import RefusedError, Row, read_json
from firefly_memory.transfer.importers.firefly_legacy.sources import Source, Where
from firefly_memory.url_text import directory_in


class FileImporter:
    """Directories."""

    @contextmanager
    def source(self, url: str, _: Where, *, timeout: float) -> Iterator[Source]:
        directory = Path(directory_in(url))
        if not directory.is_dir():
            raise DatabaseConnectionError("import-legacy", f"there is no directory {directory}")
        files = sorted(directory.glob("*.json"))
        if not files:
            raise ConfigurationError(f"there is no *.json in {directory}")
        yield Source(f"directory {directory}", _rows(files), unique_ids=False)

    def has_been_here(self, new: Target, *, timeout: float) -> bool:
        """Yes: a store in files needs nothing that is made beforehand."""
        return True


IMPORTER = FileImporter()


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
