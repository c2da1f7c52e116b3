"""Which store or database a command works on: what its options say, then what the environment says."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from firefly_memory.cli.values import a_file, a_name
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.errors import ConfigurationError
from firefly_memory.facets import VARIABLE
from firefly_memory.settings import (
    ENV_FILE,
    PREFIX,
    MemorySettings,
    read_settings_of_command,
    read_url_file,
    register_facets,
)
from firefly_memory.target import NOTHING, Given, Target, target
from firefly_memory.urls import without_password

_COMMAND = re.compile(r"(firefly-memory db (?:upgrade|check|grants|stamp \w+))\b( --schema [\w$]+)?")

SEEN_BY_ALL = "everybody on this machine sees the options of a command, so a URL with a password belongs in a file"

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
        "--url-file",
        type=a_file,
        metavar="FILE",
        help="a file that has the URL of the store in it, such as a mounted secret; "
        f"by default what the variables {PREFIX}… say",
    )
    where.add_argument(
        "--url", type=a_name, help=f"the store, such as sqlite:///memory.db or postgresql://host/name; {SEEN_BY_ALL}"
    )
    add_env_file(parser)
    add_facet(parser)
    for name, what in _PLACES.items():
        parser.add_argument(option.format(name), *also.get(name, "").split(), type=a_name, metavar="NAME", help=what)


def add_env_file(parser: Any) -> None:
    parser.add_argument(
        "--env-file",
        type=a_file,
        metavar="FILE",
        help=f"a file of variables to read as well; no command reads {ENV_FILE} unless it is named here",
    )


def add_facet(parser: Any) -> None:
    parser.add_argument(
        "--facet",
        action="append",
        type=a_name,
        metavar="NAME",
        help="a facet of another package, such as package.facet:FACET; may be given several times, beside those of "
        f"{VARIABLE}",
    )


def settings_of(arguments: argparse.Namespace) -> MemorySettings:
    """What the environment of a command says, which is read once: a file of it may be a pipe."""
    if not hasattr(arguments, "settings"):
        arguments.settings = read_settings_of_command(arguments.env_file)
        register_facets(arguments.settings, arguments.facet or ())
    settings: MemorySettings = arguments.settings
    return settings


def target_if_any(arguments: argparse.Namespace, option: str = "--{}") -> Target | None:
    """The store that a command is about, or ``None`` where nothing names one."""
    return target(settings_of(arguments), given(arguments, arguments.url, arguments.url_file, option))


def given(arguments: argparse.Namespace, url: str | None, url_file: Path | None, option: str) -> Given:
    """What the options say, which is remembered for what people are told to run."""
    if url_file is not None:
        url = _read_once(url_file, arguments)
    schema_name, database, collection = (
        getattr(arguments, option.format(name).strip("-").replace("-", "_")) for name in _PLACES
    )
    said = Given(url, schema_name, database, collection, option=option, url_file=url_file)
    arguments.given = said
    return said


def _read_once(url_file: Path, arguments: argparse.Namespace) -> str:
    """The URL in a file, which may be a pipe."""
    read: dict[Path, str] = vars(arguments).setdefault("urls_in_files", {})
    if url_file not in read:
        read[url_file] = read_url_file(url_file)
    return read[url_file]


def advised(text: str, arguments: argparse.Namespace) -> str:
    """``text``, where the commands that it tells people to run name the store as this command line does."""
    said: Given = getattr(arguments, "given", NOTHING)
    facets = getattr(arguments, "facet", None) or ()
    options = "".join(_as_options(said, getattr(arguments, "env_file", None), facets))
    return _COMMAND.sub(lambda found: found[1] + options + (found[2] or "" if said.schema_name is None else ""), text)


def _as_options(said: Given, env_file: Path | None, facets: Iterable[str]) -> Iterator[str]:
    """Without the password: whoever runs it knows where it is to go."""
    if env_file is not None:
        yield f" --env-file {shlex.quote(str(env_file))}"
    yield from (f" --facet {shlex.quote(facet)}" for facet in facets)
    if said.url_file is not None:
        yield f" --url-file {shlex.quote(str(said.url_file))}"
    elif said.url is not None:
        yield f" --url {shlex.quote(without_password(said.url))}"
    for name, value in (("schema", said.schema_name), ("database", said.database), ("collection", said.collection)):
        if value is not None:
            yield f" --{name} {shlex.quote(value)}"


def target_of(arguments: argparse.Namespace, option: str = "--{}") -> Target:
    """The store that a command is about; ``ConfigurationError`` where nothing names one."""
    found = target_if_any(arguments, option)
    if found is None:
        raise ConfigurationError(
            f"no store: pass --url-file or --url, or set {PREFIX}URL, {PREFIX}URL_FILE or {PREFIX}BACKEND"
        )
    return found
