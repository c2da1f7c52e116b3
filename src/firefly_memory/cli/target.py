"""Which store or database a command works on: what its options say, then what the environment says."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firefly_memory.configured import store_of
from firefly_memory.errors import ConfigurationError
from firefly_memory.schema_names import POSTGRESQL_SCHEMA
from firefly_memory.settings import PREFIX, read_settings, read_url_file
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import Given, Target, target

_PLACES = {
    "schema": f"the PostgreSQL schema, by default {PREFIX}POSTGRES_SCHEMA or {POSTGRESQL_SCHEMA}",
    "database": f"the MongoDB database, by default that of the URL, {PREFIX}MONGODB_DATABASE or firefly_memory",
    "collection": f"the MongoDB collection of entries, by default {PREFIX}MONGODB_COLLECTION or entries",
}


def add_target(parser: Any, option: str = "--{}", **also: str) -> None:
    """The options that name a store, on a parser or a group of one. Without them the environment does.

    ``option`` is how those beside the URL are called, ``also`` another name for one of them.
    """
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--url",
        help="the store, such as sqlite:///memory.db or postgresql://host/name; "
        f"by default what the variables {PREFIX}… say",
    )
    where.add_argument(
        "--url-file", type=Path, metavar="FILE", help="a file that has the URL in it, such as a mounted secret"
    )
    for name, what in _PLACES.items():
        parser.add_argument(option.format(name), *also.get(name, "").split(), metavar="NAME", help=what)


def add_without_dialogues(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--without-dialogues",
        action="store_true",
        help="leave out the conversations of pydantic-ai's ConversationStore",
    )


def target_if_any(arguments: argparse.Namespace, option: str = "--{}") -> Target | None:
    """The store that a command is about, or ``None`` where nothing names one."""
    url = arguments.url or None
    if arguments.url_file is not None:
        url = read_url_file(arguments.url_file)
    return target(read_settings(), given_beside(url, arguments, option))


def given_beside(url: str | None, arguments: argparse.Namespace, option: str) -> Given:
    """What the options say."""
    schema_name, database, collection = (
        getattr(arguments, option.format(name).strip("-").replace("-", "_")) for name in _PLACES
    )
    return Given(url, schema_name, database, collection, option=option)


def target_of(arguments: argparse.Namespace, option: str = "--{}") -> Target:
    """The store that a command is about; ``ConfigurationError`` where nothing names one."""
    found = target_if_any(arguments, option)
    if found is None:
        raise ConfigurationError(
            f"no store: pass --url or --url-file, or set {PREFIX}URL, {PREFIX}URL_FILE or {PREFIX}BACKEND"
        )
    return found


@contextmanager
def opened_store(arguments: argparse.Namespace, *, existing: bool = False) -> Iterator[EntryStore]:
    """``existing`` is for commands that only read: they shall not make a file whose name was mistyped."""
    store = store_of(target_of(arguments))
    if existing and store.path is not None and not store.path.exists():
        raise ConfigurationError(f"there is no {store.path}")
    with store:
        yield store
