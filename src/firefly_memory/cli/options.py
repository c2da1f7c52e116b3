"""The options that several commands have, each defined once.

A command takes them by a decorator. A group takes all of them as well and hands them to its command, which refuses what
it does not have: so each may stand before the name of the command or behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import click

from firefly_memory.cli.command import BEFORE, Option
from firefly_memory.cli.invocation import current
from firefly_memory.cli.target import Environment, Where
from firefly_memory.cli.values import a_file, a_name, a_time_out, files

_VARIABLES = "FIREFLY_AGENTIC_MEMORY_"  # settings.PREFIX, whose module takes long to load

SEEN_BY_ALL = "everybody on this machine sees the options of a command, so a URL with a password belongs in a file"

LOCK_TIMEOUT = 5.0

_PARTS = {
    "schema": f"the PostgreSQL schema, by default {_VARIABLES}POSTGRES_SCHEMA or firefly_memory",
    "database": f"the MongoDB database, by default that of the URL, {_VARIABLES}MONGODB_DATABASE or firefly_memory",
    "collection": f"the MongoDB collection of entries, by default {_VARIABLES}MONGODB_COLLECTION or entries",
}


class Shared(NamedTuple):
    """An option: its names and how click is to read it."""

    names: tuple[str, ...]
    settings: dict[str, Any]

    def made(self, **settings: Any) -> Option:
        return Option(self.names, **{**self.settings, **settings})

    def before_the_command(self) -> Option:
        """The same for a group: kept as it was typed, and checked by the command."""
        kept: dict[str, Any] = {"expose_value": False, "callback": _keep}
        if not self.settings.get("is_flag"):
            kept |= {"type": str, "shell_complete": files if self.settings["type"] is a_file else None}
        return self.made(**kept, section="options of most commands, before or behind the name of the command")


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is None or value is False:
        return
    name = max(param.opts, key=len)
    values = value if isinstance(value, tuple) else (value,)
    typed = [name] if value is True else [f"{name}={each}" for each in values]
    ctx.meta.setdefault(BEFORE, []).extend(typed)


_ENV_FILE = Shared(
    ("--env-file",),
    {
        "type": a_file,
        "metavar": "FILE",
        "help": "a file of variables to read as well; no command reads .env unless it is named here",
    },
)


_FACET = Shared(
    ("--facet",),
    {
        "type": a_name,
        "metavar": "NAME",
        "multiple": True,
        "help": "a facet of another package, such as package.facet:FACET; may be given several times, beside those of "
        f"{_VARIABLES}FACETS",
    },
)


def _url_of_a_store() -> list[Shared]:
    file = "a file that has the URL of the store in it, such as a mounted secret; by default what the variables "
    url = f"the store, such as sqlite:///memory.db or postgresql://host/name; {SEEN_BY_ALL}"
    return [
        Shared(("--url-file",), {"type": a_file, "metavar": "FILE", "help": f"{file}{_VARIABLES}… say"}),
        Shared(("--url",), {"type": a_name, "metavar": "URL", "help": url}),
    ]


def _parts_of_a_store(option: str, also: Mapping[str, str]) -> list[Shared]:
    return [
        Shared(
            (option.format(part), *also.get(part, "").split(), f"{_field(option)}{part}"),
            {"type": a_name, "metavar": "NAME", "help": what},
        )
        for part, what in _PARTS.items()
    ]


def _time_out(default: float | None = None) -> Shared:
    words = "for the server and other processes" + ("" if default is None else f" ({default:g})")
    return Shared(("--timeout",), {"type": a_time_out, "metavar": "SECONDS", "help": words})


_EMBEDDER = Shared(
    ("--embedder",),
    {
        "type": a_name,
        "metavar": "NAME",
        "help": "an embedder of your own, such as package.module:EMBEDDER, in place of that of the extra embeddings",
    },
)
_KIND = Shared(
    ("--kind",),
    {"type": a_name, "metavar": "KIND", "default": "chunks", "help": "the kind of rows, by default chunks"},
)
_EMBEDDER_NAME = Shared(
    ("--embedder-name",),
    {
        "type": a_name,
        "metavar": "NAME",
        "help": "the name of an embedder whose vectors are stored, as `index status` shows it",
    },
)
_JSON = Shared(("--json",), {"is_flag": True, "help": "print a JSON object"})
_YES = Shared(("--yes",), {"is_flag": True, "help": "do not ask before anything is lost"})
_DRY_RUN = Shared(("--dry-run",), {"is_flag": True, "help": "only say what would be done"})
_QUIET = Shared(("--quiet",), {"is_flag": True, "help": "no progress bar and no summary"})


def before_the_command() -> list[click.Parameter]:
    """For a group: every shared option."""
    of_a_store = [*_url_of_a_store(), _ENV_FILE, _FACET, *_parts_of_a_store("--{}", {}), _time_out()]
    return [each.before_the_command() for each in (*of_a_store, _JSON, _YES, _DRY_RUN, _QUIET)]


def store_options(
    *, timeout: float = 30.0, option: str = "--{}", also: Mapping[str, str] | None = None, section: str = "the store"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that name a store. The function gets them as ``where``, a :class:`~firefly_memory.cli.target.Where`.

    ``option`` is how those beside the URL are called, ``also`` another name for one of them.
    """
    shared = [*_url_of_a_store(), _ENV_FILE, _FACET, *_parts_of_a_store(option, also or {}), _time_out(timeout)]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_store(url_file: Any, url: Any, env_file: Any, facet: Any, timeout: float | None, **given: Any) -> Any:
            parts = {part: given.pop(f"{_field(option)}{part}") for part in _PARTS}
            refuse_both({"--url-file": url_file, "--url": url})
            environment = Environment(env_file, facet)
            where = Where(environment, url, url_file, option=option, timeout=timeout or default, **parts)
            current().where = where
            return function(where=where, **given)

        default = timeout
        return _with(shared, with_store, section=section)

    return decorate


def side_options(side: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options ``--from…`` or ``--to…`` that name one of two stores."""
    shared = [
        Shared(
            (f"--{side}-file",),
            {"type": a_file, "metavar": "FILE", "help": f"a file that has the URL of {what} in it"},
        ),
        Shared(
            (f"--{side}", f"{side}_url"),
            {"type": a_name, "metavar": "URL", "help": f"{what}, such as sqlite:///memory.db; {SEEN_BY_ALL}"},
        ),
        *_parts_of_a_store(f"--{side}-{{}}", {}),
    ]
    return lambda function: _with(shared, function, section=what)


def environment_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``env_file`` and ``facet``, for a command that names its stores by :func:`side_options`."""
    return _with([_ENV_FILE, _FACET], function)


def timeout_option(default: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def by_default(_: click.Context, __: click.Parameter, seconds: float | None) -> float:
        return seconds or default

    return lambda function: _with([_time_out(default)], function, callback=by_default)


def lock_timeout_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``lock_timeout``, of the commands that change a schema."""
    words = f"how long a statement waits for a table that a transaction holds, before all gives up ({LOCK_TIMEOUT:g})"
    shared = Shared(("--lock-timeout",), {"type": a_time_out, "metavar": "SECONDS", "help": words})

    def by_default(_: click.Context, __: click.Parameter, seconds: float | None) -> float:
        return seconds or LOCK_TIMEOUT

    return _with([shared], function, callback=by_default)


def embedder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``embedder``, the dotted name of an embedder of the caller's own, or ``None``."""
    return _with([_EMBEDDER], function)


def accelerator_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``kind`` and ``embedder_name``: what an accelerator is for."""
    return _with([_KIND, _EMBEDDER_NAME], function)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--json``, which :func:`firefly_memory.cli.output.show` reads."""

    def remember(_: click.Context, __: click.Parameter, is_json: bool) -> None:
        current().json = is_json

    return _with([_JSON], function, expose_value=False, callback=remember)


def yes_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``yes``, for :func:`firefly_memory.cli.consent.require_consent`."""
    return _with([_YES], function)


def dry_run_option(words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda function: _with([_DRY_RUN], function, help=words)


def quiet_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``quiet``, for :func:`firefly_memory.cli.progress.progress_bar`."""
    return _with([_QUIET], function)


def refuse_both(given: Mapping[str, Any], *, needs_one: bool = False) -> None:
    """A usage error if more than one of these options is given, or none where one is needed."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"{names[0]} is not allowed with {names[1]}", click.get_current_context())
    if needs_one and not names:
        raise click.UsageError(f"one of {' and '.join(given)} is required", click.get_current_context())


def _field(option: str) -> str:
    """``"--to-{}"`` → ``"to_"``."""
    return option.format("").lstrip("-").replace("-", "_")


def _with(shared: Iterable[Shared], function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    for each in reversed([*shared]):
        function = click.option(*each.names, cls=Option, **{**each.settings, **settings})(function)
    return function
