"""Which store a command works on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from firefly_memory.by_url import connect
from firefly_memory.configured import configured_store
from firefly_memory.errors import ConfigurationError
from firefly_memory.settings import PREFIX, read_settings
from firefly_memory.stores.base import EntryStore


def add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        help="the store, such as sqlite:///memory.db or postgresql://host/name; "
        f"by default what the variables {PREFIX}… say",
    )


@contextmanager
def opened_store(arguments: argparse.Namespace, *, existing: bool = False) -> Iterator[EntryStore]:
    """``existing`` is for commands that only read: they shall not make a file whose name was mistyped."""
    if arguments.url:
        store = connect(arguments.url)
    else:
        settings = read_settings()
        if settings.url is None and settings.backend == "in_memory":
            raise ConfigurationError(f"no store: pass --url, or set {PREFIX}URL or {PREFIX}BACKEND")
        store = configured_store(settings)
    if existing and store.path is not None and not store.path.exists():
        raise ConfigurationError(f"there is no {store.path}")
    with store:
        yield store
