"""Nothing is lost by a slip: who wants to destroy something types its name, or says so beforehand."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from firefly_memory.cli.output import say
from firefly_memory.cli.text import on_one_line
from firefly_memory.errors import ConfigurationError


def require_consent(
    *, yes: bool, name: str, of: str, would: Iterable[str], lost: str, is_to: str = "", or_else: str = ""
) -> None:
    """Go on with ``--yes``, or if ``name`` is typed; ``ConfigurationError`` if not, or if there is nobody to ask.

    ``name`` is that of the thing ``of`` which something is lost, such as ``"the database"``. ``would`` are the lines
    that say what would be done, ``lost`` says the same in a few words. ``is_to`` and ``or_else`` complete the sentence
    for those who cannot be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"nothing was changed: this would {lost}. Pass --yes if {is_to or f'{name} is to lose that'}{or_else}"
        )
    for line in would:
        say(line)
    print(f"type the name of {of}, {on_one_line(name)}, to do that: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise ConfigurationError(f"nothing was changed: that is not the name of {of}")
