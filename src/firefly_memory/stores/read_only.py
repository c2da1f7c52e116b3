"""Stores that are only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firefly_memory.databases.sql.sqlite.read_only import read_only_engine
from firefly_memory.stores.sqlite import SQLiteStore


@contextmanager
def read_only_store(path: Path, *, timeout: float = 30.0) -> Iterator[SQLiteStore]:
    """A store on a file that is there, with a schema that this version works with."""
    with read_only_engine(path, timeout=timeout) as engine, SQLiteStore(engine=engine, migrate=False) as store:
        store.path = path
        yield store
