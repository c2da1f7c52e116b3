"""What ``firefly-memory copy`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.invocation import current
from firefly_memory.cli.left_out import left_out, wanted
from firefly_memory.cli.output import say, show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import Environment, Where
from firefly_memory.errors import ConfigurationError
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import Target, reading, store_of
from firefly_memory.transfer.copy_store import Copy, copy_store
from firefly_memory.transfer.counts import Progress
from firefly_memory.transfer.estimates import estimated_items


def run(options: Mapping[str, Any]) -> Exit:
    environment, timeout = Environment(options["env_file"], options["facet"]), options["timeout"]
    to, source = _side("to", options, environment), _side("from", options, environment)
    without = {name: value for name, value in options.items() if name.startswith("without_")}
    there, other = to.target(), source.target()
    into = store_of(there, timeout=timeout)
    if _is_same(store_of(other), into):
        raise ConfigurationError("--from and --to name the same store")
    is_quiet = options["quiet"] or current().json
    with (
        reading(other, timeout=timeout) as store,
        _written(to, into),
        _progress(without, other, there, quiet=is_quiet) as progress,
    ):
        result = copy_store(store, into, merge=options["merge"], progress=progress, **wanted(without))
    if not options["quiet"] or current().json:
        show(_as_json(result), _lines(result))
    if result.equal:
        return Exit.DONE
    say(f"firefly-memory: {_problem(result)}")
    return Exit.FAILED


def _side(side: str, options: Mapping[str, Any], environment: Environment) -> Where:
    url, file, schema, database, collection = (
        options[f"{side}_{name}"] for name in ("url", "file", "schema", "database", "collection")
    )
    return Where(environment, url, file, schema, database, collection, option=f"--{side}-{{}}")


@contextmanager
def _written(where: Where, store: EntryStore) -> Iterator[None]:
    current().where = where  # from now on advice is about this side
    with store:
        yield


def _is_same(one: EntryStore, other: EntryStore) -> bool:
    """Two names of one place on a server may go unnoticed, and do no harm: all is there already."""
    if one.path is not None and other.path is not None:
        return one.path.resolve() == other.path.resolve()
    return repr(one) == repr(other)


def _progress(
    without: Mapping[str, bool], source: Target, target: Target, *, quiet: bool
) -> AbstractContextManager[Progress | None]:
    facets = left_out(without)

    def total(step: str) -> int | None:
        of = (source, target) if step == "looking" else (source,)  # at what is on either side
        return max(estimated_items(each, facets) or 0 for each in of) or None

    return progress_bar("copying", quiet=quiet, total=total)


def _lines(result: Copy) -> Iterator[str]:
    if not result.equal:
        yield f"source: {result.source.counts.in_words()}; checksum {result.source.checksum}"
        yield f"target: {result.target.counts.in_words()}; checksum {result.target.checksum}"
        return
    before = f" ({result.before.in_words()} were there before)" if result.before.total else ""
    copied = result.source.counts.in_words()
    yield f"copied {copied}{before}; both sides have the same checksum {result.source.checksum}"
    if result.beyond.total:
        yield f"the target also has {result.beyond.in_words()} of its own"


def _problem(result: Copy) -> str:
    return (
        f"the two sides differ: {result.difference}. Somebody has written to one of them meanwhile, or the target had "
        "it before and a merge cannot replace it; stop the writers and copy again"
    )


def _as_json(result: Copy) -> dict[str, Any]:
    return {
        "equal": result.equal,
        "source": {**result.source.counts.as_dict(), "checksum": result.source.checksum},
        "target": {**result.target.counts.as_dict(), "checksum": result.target.checksum},
        "there_before": result.before.as_dict(),
        "only_in_target": result.beyond.as_dict(),
        "difference": result.difference,
    }
