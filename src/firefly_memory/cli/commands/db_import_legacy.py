"""``firefly-memory db import-legacy``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firefly_memory.cli.command import MOST, command, option
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import (
    SEEN_BY_ALL,
    dry_run_option,
    json_option,
    quiet_option,
    refuse_both,
    store_options,
)
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_file, a_name

_OLD = "the old place"

_WORDS = {
    Exit.DONE: "done: every entry that has not expired is in the new store",
    Exit.FAILED: "it could not be done; what was taken over is in the store, and the same command goes on from there",
    Exit.USAGE: "the command was called wrongly, or the old table or collection was not found",
    Exit.DRIFT: "done, but some rows were refused",
    Exit.UNREACHABLE: "one of the places cannot be reached",
    Exit.BUSY: "somebody else holds a lock for too long, or a place does not answer; try again",
}


@command(
    "Take over the entries of a database or directory that a predecessor of this library wrote. "
    "Nothing there is changed, and no entry of the new store is replaced. Running it again changes nothing.",
    examples=["firefly-memory db import-legacy --from sqlite:///old.db --url sqlite:///memory.db --dry-run"],
    exits={code: WORDS[code] for code in MOST} | _WORDS,
)
@option("--from-file", type=a_file, metavar="FILE", help="a file that has the URL in it", section=_OLD)
@option(
    "--from",
    "old",
    type=a_name,
    metavar="URL",
    help=f"such as postgresql://host/name or sqlite:///old.db; {SEEN_BY_ALL}",
    section=_OLD,
)
@option(
    "--table",
    type=a_name,
    metavar="[SCHEMA.]NAME",
    help="by default the one that looks like a predecessor's",
    section=_OLD,
)
@option(
    "--database",
    type=a_name,
    metavar="NAME",
    help="of MongoDB, by default that of the URL or a documented one",
    section=_OLD,
)
@option(
    "--collection",
    type=a_name,
    metavar="NAME",
    help="of MongoDB, by default entries or firefly_memory",
    section=_OLD,
)
@store_options(timeout=60.0, option="--to-{}", also={"schema": "--schema"}, section="the new store")
@dry_run_option("read and judge everything, write nothing")
@json_option
@quiet_option
def import_legacy(where: Where, old: str | None, from_file: Path | None, **options: Any) -> int:
    refuse_both({"--from-file": from_file, "--from": old}, needs_one=True)
    from firefly_memory.cli.legacy import run

    return run(where, old, from_file, **options)
