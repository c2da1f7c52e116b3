"""What ``firefly-memory index`` does with accelerators: :mod:`firefly_memory.service.accelerators`, on the terminal."""

from __future__ import annotations

from collections.abc import Callable

from firefly_memory.cli.output import show
from firefly_memory.cli.search_indexes import progress_of
from firefly_memory.cli.target import Where
from firefly_memory.databases.sql.schema.accelerators import registered_accelerators
from firefly_memory.databases.sql.schema.switching import Work
from firefly_memory.errors import ConfigurationError
from firefly_memory.search.embedders.default import DEFAULT
from firefly_memory.service.accelerators import EXACT_ONLY, disabling, enabling
from firefly_memory.target import database_of


def run_enable(where: Where, name: str, kind: str, embedder: str | None, *, quiet: bool) -> None:
    with progress_of("preparing", quiet=quiet) as progress:
        _administered(where, lambda: enabling(name, kind, DEFAULT if embedder is None else embedder, progress))
    _say(name, kind, "enabled", quiet=quiet)


def run_disable(where: Where, name: str, kind: str, embedder: str | None, *, quiet: bool) -> None:
    _administered(where, lambda: disabling(name, kind, embedder))
    _say(name, kind, "disabled", quiet=quiet)


def _administered(where: Where, work: Callable[[], Work[None]]) -> None:
    """Do the work, which is asked for only where there are accelerators: what it lacks would be the wrong answer."""
    target = where.target()
    exact_only = ConfigurationError(EXACT_ONLY.format(target.row.in_words))
    if target.row.database is None:
        raise exact_only
    with database_of(target, where.timeout) as (engine, db_name):
        if not any(each.names(engine.dialect.name) for each in registered_accelerators()):
            raise exact_only
        work()(engine, db_name, where.timeout)


def _say(name: str, kind: str, state: str, *, quiet: bool) -> None:
    details = {"accelerator": name, "kind": kind, "state": state}
    show(details, [] if quiet else [f"{name} is {state} for {kind}"])
