"""One run of the command: what its options say about its output, and which store it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import click


class Advises(Protocol):
    """A :class:`~firefly_memory.cli.target.Where`, as far as advice is concerned."""

    def advised(self, text: str) -> str: ...


@dataclass
class Invocation:
    json: bool = False
    """Whether the output is one JSON object."""
    where: Advises | None = None
    """The store that advice is about, from the moment that a command asks for it."""

    def advised(self, text: str) -> str:
        """``text``, where the commands that it tells people to run name the store as this command line does."""
        return text if self.where is None else self.where.advised(text)


def current() -> Invocation:
    """The run that is going on."""
    return click.get_current_context().ensure_object(Invocation)
