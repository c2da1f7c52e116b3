"""``firefly-memory copy``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.left_out import add_without, left_out, wanted
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import SEEN_BY_ALL, add_env_file, add_facet, given, settings_of
from firefly_memory.cli.values import a_file, a_name
from firefly_memory.errors import ConfigurationError
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import Target, reading, store_of, target
from firefly_memory.transfer.copy_store import Copy, copy_store
from firefly_memory.transfer.counts import Progress
from firefly_memory.transfer.estimates import estimated_items


def add_to(commands: Any) -> None:
    copy = commands.add_parser(
        "copy",
        help="copy all entries and conversations into a store of any kind",
        description="Copy all live entries and all conversations, those of pydantic-ai's ConversationStore included, "
        "from one store into another of any kind, in constant memory, then compare both, value by value. A copy that "
        "broke off is simply started again: what is there already is not copied twice. The source is only read.",
    )
    for side, what in (("from", "the store to read"), ("to", "the store to copy into")):
        where = copy.add_mutually_exclusive_group(required=True)
        of_file = f"a file that has the URL of {what} in it"
        where.add_argument(f"--{side}-file", type=a_file, metavar="FILE", help=of_file)
        of_url = f"{what}, such as sqlite:///memory.db; {SEEN_BY_ALL}"
        where.add_argument(f"--{side}", dest=f"{side}_url", type=a_name, metavar="URL", help=of_url)
        copy.add_argument(f"--{side}-schema", type=a_name, metavar="NAME", help="its PostgreSQL schema")
        copy.add_argument(f"--{side}-database", type=a_name, metavar="NAME", help="its MongoDB database")
        copy.add_argument(f"--{side}-collection", type=a_name, metavar="NAME", help="its MongoDB collection of entries")
    copy.add_argument(
        "--merge",
        action="store_true",
        help="let the target have other things, which stay; entries take the place of those with their ids. Without "
        "it, nothing is copied into such a target",
    )
    add_env_file(copy)
    add_facet(copy)
    add_without(copy)
    copy.add_argument("--json", action="store_true", help="print a JSON object")
    copy.add_argument("--quiet", action="store_true", help="no progress bar and no summary")
    copy.set_defaults(run=_copy)


def _copy(arguments: argparse.Namespace) -> int:
    there, other = _target(arguments, "to"), _target(arguments, "from")
    into = store_of(there)
    if _is_same(store_of(other), into):
        raise ConfigurationError("--from and --to name the same store")
    with reading(other) as source, _written(arguments, into), _progress(arguments, other, there) as progress:
        result = copy_store(source, into, merge=arguments.merge, progress=progress, **wanted(arguments))
    if not arguments.quiet or arguments.json:
        show(arguments, _as_json(result), _lines(result))
    if result.equal:
        return Exit.DONE
    print(f"firefly-memory: {_problem(result)}", file=sys.stderr)
    return Exit.FAILED


def _target(arguments: argparse.Namespace, side: str) -> Target:
    """The store of one side, which from now on is the one that advice is about."""
    url, file = getattr(arguments, f"{side}_url"), getattr(arguments, f"{side}_file")
    found = target(settings_of(arguments), given(arguments, url, file, f"--{side}-{{}}"))
    assert found is not None
    return found


@contextmanager
def _written(arguments: argparse.Namespace, store: EntryStore) -> Iterator[None]:
    _target(arguments, "to")
    with store:
        yield


def _is_same(one: EntryStore, other: EntryStore) -> bool:
    """Two names of one place on a server may go unnoticed, and do no harm: all is there already."""
    if one.path is not None and other.path is not None:
        return one.path.resolve() == other.path.resolve()
    return repr(one) == repr(other)


def _progress(arguments: argparse.Namespace, source: Target, target: Target) -> AbstractContextManager[Progress | None]:
    without = left_out(arguments)

    def total(step: str) -> int | None:
        of = (source, target) if step == "looking" else (source,)  # at what is on either side
        return max(estimated_items(each, without) or 0 for each in of) or None

    return progress_bar("copying", quiet=arguments.quiet or arguments.json, total=total)


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
