"""Which store or database a command works on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import overload

from firefly_memory.by_url import connect
from firefly_memory.configured import configured_store, url_options
from firefly_memory.errors import ConfigurationError
from firefly_memory.settings import PREFIX, read_settings, read_url_file
from firefly_memory.stores.base import EntryStore


def add_url(parser: argparse.ArgumentParser) -> None:
    """The options that name a store. Without them the environment does."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--url",
        help="the store, such as sqlite:///memory.db or postgresql://host/name; "
        f"by default what the variables {PREFIX}… say",
    )
    where.add_argument(
        "--url-file", type=Path, metavar="FILE", help="a file that has the URL in it, such as a mounted secret"
    )


def add_without_dialogues(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--without-dialogues",
        action="store_true",
        help="leave out the conversations of pydantic-ai's ConversationStore",
    )


@contextmanager
def opened_store(arguments: argparse.Namespace, *, existing: bool = False) -> Iterator[EntryStore]:
    """``existing`` is for commands that only read: they shall not make a file whose name was mistyped."""
    url = _given(arguments)
    if url is not None:
        store = connect(url, **url_options(url, read_settings()))
    else:
        settings = read_settings()
        if settings.store_url is None and settings.backend == "in_memory":
            raise ConfigurationError(f"no store: pass --url, or set {PREFIX}URL or {PREFIX}BACKEND")
        store = configured_store(settings)
    if existing and store.path is not None and not store.path.exists():
        raise ConfigurationError(f"there is no {store.path}")
    with store:
        yield store


@overload
def target_url(arguments: argparse.Namespace) -> str: ...
@overload
def target_url(arguments: argparse.Namespace, *, needed: bool) -> str | None: ...
def target_url(arguments: argparse.Namespace, *, needed: bool = True) -> str | None:
    """The URL of the database that a command is about."""
    url = _given(arguments) or read_settings().database_url
    if url is None and needed:
        raise ConfigurationError(
            f"no database: pass --url or --url-file, or set {PREFIX}URL, {PREFIX}URL_FILE or {PREFIX}POSTGRES_URL"
        )
    return url


def _given(arguments: argparse.Namespace) -> str | None:
    if arguments.url_file is not None:
        return read_url_file(arguments.url_file)
    return arguments.url or None
