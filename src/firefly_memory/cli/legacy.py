"""``firefly-memory db import-legacy``: what the predecessors wrote, into a store of this library."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import SEEN_BY_ALL, add_target, target_of
from firefly_memory.cli.values import a_file, a_name, a_time_out
from firefly_memory.settings import read_url_file
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.target import reading, store_of
from firefly_memory.transfer.importers.firefly_legacy.sources import IMPORTER, Where, has_been_here
from firefly_memory.transfer.importers.importing import import_entries
from firefly_memory.transfer.importers.outcome import Outcome

_EPILOG = f"""
exit codes:
  {Exit.DONE}  done: every entry that has not expired is in the new store
  {Exit.FAILED}  it could not be done; what was taken over is in the store, and the same command goes on from there
  {Exit.USAGE}  the command was called wrongly, or the old table or collection was not found
  {Exit.DRIFT}  done, but some rows were refused
  {Exit.UNREACHABLE}  one of the places cannot be reached
  {Exit.BUSY}  somebody else holds a lock for too long, or a place does not answer; try again
"""

_OPTION = "--to-{}"  # --database and --collection are of the old place


def add_to(actions: Any) -> None:
    parser: argparse.ArgumentParser = actions.add_parser(
        "import-legacy",
        help="take over what the predecessors of this library wrote",
        description="Take over the entries of a database or directory that a predecessor of this library wrote. "
        "Nothing there is changed, and no entry of the new store is replaced. Running it again changes nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    old = parser.add_argument_group("the old place")
    where = old.add_mutually_exclusive_group(required=True)
    where.add_argument("--from-file", type=a_file, metavar="FILE", help="a file that has the URL in it")
    where.add_argument(
        "--from",
        dest="old",
        type=a_name,
        metavar="URL",
        help=f"such as postgresql://host/name or sqlite:///old.db; {SEEN_BY_ALL}",
    )
    old.add_argument(
        "--table", type=a_name, metavar="[SCHEMA.]NAME", help="by default the one that looks like a predecessor's"
    )
    old.add_argument(
        "--database", type=a_name, metavar="NAME", help="of MongoDB, by default that of the URL or a documented one"
    )
    old.add_argument(
        "--collection", type=a_name, metavar="NAME", help="of MongoDB, by default entries or firefly_memory"
    )
    new = parser.add_argument_group("the new store")
    add_target(new, _OPTION, schema="--schema")
    parser.add_argument("--dry-run", action="store_true", help="read and judge everything, write nothing")
    parser.add_argument("--timeout", type=a_time_out, default=60.0, metavar="SECONDS", help="for the servers (60)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    url = arguments.old if arguments.from_file is None else read_url_file(arguments.from_file)
    where = Where(arguments.table, arguments.database, arguments.collection)
    with (
        IMPORTER(url, where, timeout=arguments.timeout) as source,
        _new_store(arguments) as store,
        progress_bar(
            "imported", quiet=arguments.quiet or arguments.json, total=lambda _: source.estimate()
        ) as progress,
    ):
        outcome = import_entries(source, store, dry_run=arguments.dry_run, progress=progress)
    result = {"from": source.name, "dry_run": arguments.dry_run, **outcome.as_json()}
    show(arguments, result, _in_words(source.name, outcome, dry_run=arguments.dry_run))
    return Exit.DRIFT if outcome.refused else Exit.DONE


@contextmanager
def _new_store(arguments: argparse.Namespace) -> Iterator[EntryStore]:
    """The store to save into; for a dry run an empty one, where there is none yet."""
    new = target_of(arguments, _OPTION)
    store = store_of(new, timeout=arguments.timeout)
    is_there = (store.path is None or store.path.exists()) and has_been_here(new, timeout=arguments.timeout)
    dry = reading(new, timeout=arguments.timeout) if is_there else InMemoryStore()
    with dry if arguments.dry_run else store as opened:
        yield opened


def _in_words(name: str, outcome: Outcome, *, dry_run: bool) -> Iterator[str]:
    yield (
        f"{name}: {outcome.taken} {'would be taken' if dry_run else 'taken'}, {outcome.there_already} there already, "
        f"{outcome.expired} expired, {outcome.superseded} superseded, {outcome.refused} refused"
    )
    if outcome.taken == outcome.refused == 0:
        yield "nothing to do"
    for reason, refusals in outcome.reasons.items():
        yield f"refused {refusals.count}: {reason}"
        for each in refusals.examples:
            yield f"  {each['entry_id']!r} in {each['namespace']!r}"
