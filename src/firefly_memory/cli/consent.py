"""Nothing is lost by a slip: who wants to drop data types the name of the database, or says so beforehand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from firefly_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from firefly_memory.databases.sql.schema.commands import Downgrade, Loss


def in_words(plan: Downgrade) -> Iterator[str]:
    if not plan.undone:
        yield "nothing to do"
        return
    yield f"would undo {', '.join(plan.undone)} in {plan.database}"
    yield f"which is {plan.where}"
    for loss in plan.losses:
        yield f"would drop {_loss(loss)}"


def ask_for_consent(plan: Downgrade) -> None:
    """Go on if the name of the database is typed; ``ConfigurationError`` if not, or if there is nobody to ask."""
    if not sys.stdin.isatty():
        lost = ", ".join(map(_loss, plan.losses))
        raise ConfigurationError(
            f"nothing was changed: this would drop {lost}. Pass --yes if {plan.database} ({plan.where}) is to "
            "lose that; --dry-run only looks"
        )
    for line in in_words(plan):
        print(line, file=sys.stderr)
    print(f"type the name of the database, {plan.database}, to do that: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != plan.database:
        raise ConfigurationError("nothing was changed: that is not the name of the database")


def _loss(loss: Loss) -> str:
    return f"{loss.table} with {loss.rows:,} {'row' if loss.rows == 1 else 'rows'}"
