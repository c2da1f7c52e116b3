"""``firefly-memory copy``."""

from __future__ import annotations

from typing import Any

from firefly_memory.cli.command import OF_A_STORE, command, flag
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.left_out import without_options
from firefly_memory.cli.options import (
    environment_options,
    json_option,
    quiet_option,
    refuse_both,
    side_options,
    timeout_option,
)

_WORDS = {Exit.FAILED: "it could not be done, or the two sides differ", Exit.UNREACHABLE: "a store cannot be reached"}


@command(
    "Copy everything but expired entries from one store into another of any kind, in constant memory, then compare "
    "both, value by value. A copy that broke off is simply started again: what is there already is not copied twice. "
    "The source is only read.",
    examples=["firefly-memory copy --from sqlite:///memory.db --to-file service-url"],
    exits={code: WORDS[code] for code in OF_A_STORE} | _WORDS,
    more=without_options,
)
@side_options("from", "the store to read")
@side_options("to", "the store to copy into")
@flag(
    "--merge",
    help="let the target have other things, which stay; entries take the place of those with their ids. Without "
    "it, nothing is copied into such a target",
)
@environment_options
@timeout_option(30.0)
@json_option
@quiet_option
def copy(**options: Any) -> int:
    for side in ("from", "to"):
        refuse_both({f"--{side}-file": options[f"{side}_file"], f"--{side}": options[f"{side}_url"]}, needs_one=True)
    from firefly_memory.cli.copy import run

    return run(options)
