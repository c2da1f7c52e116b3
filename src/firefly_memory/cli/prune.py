"""What ``firefly-memory prune`` does: :mod:`firefly_memory.retention`, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from firefly_memory.cli.consent import require_consent
from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.receipts import lines_of, number_of_rows
from firefly_memory.cli.target import Where
from firefly_memory.errors import ConfigurationError
from firefly_memory.retention import Progress, prune
from firefly_memory.settings import PREFIX
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import changing


class Asked(NamedTuple):
    """The bounds."""

    older_than: str | None = None
    keep_last: int | None = None
    max_tokens: int | None = None
    owner: str | None = None

    @property
    def has_bound(self) -> bool:
        return self._replace(owner=None) != Asked()


def run_prune(where: Where, asked: Asked, *, yes: bool, dry_run: bool, quiet: bool) -> None:
    if not asked.has_bound:
        asked = _of_settings(where)._replace(owner=asked.owner)
    with changing(where.target(), timeout=where.timeout) as store:
        there = prune(store, **asked._asdict(), dry_run=True).rows
        rows = sum(there.values())
        if dry_run or not rows:
            _show(there, {}, _table(there, "would delete"), quiet=quiet)
            return
        require_consent(
            yes=yes,
            name="prune",
            of="the command",
            would=_table(there, "would delete"),
            lost=f"delete {number_of_rows(rows)}",
            is_to="they are to be deleted",
            or_else="; --dry-run only counts",
        )
        deleted = _delete(store, asked, rows, quiet=quiet or current().json)
    _show(there, deleted, _table(deleted, "deleted"), quiet=quiet)


def _of_settings(where: Where) -> Asked:
    settings = where.settings
    asked = Asked(settings.retention_older_than, settings.retention_keep_last)
    if not asked.has_bound:
        raise ConfigurationError(
            "nothing is deleted unasked: pass --older-than, --keep-last or --max-tokens, or set "
            f"{PREFIX}RETENTION_OLDER_THAN or {PREFIX}RETENTION_KEEP_LAST"
        )
    return asked


def _delete(store: EntryStore, asked: Asked, total: int, *, quiet: bool) -> Mapping[str, int]:
    with progress_bar("pruning", quiet=quiet, total=lambda _: total, unit="row") as bar:
        progress: Progress | None = None if bar is None else lambda rows: bar("pruning", _SoFar(rows))
        return prune(store, **asked._asdict(), progress=progress).rows


class _SoFar:
    """Rows as a progress bar counts them."""

    def __init__(self, rows: Mapping[str, int]) -> None:
        self._rows = rows

    @property
    def total(self) -> int:
        return sum(self._rows.values())

    def in_words(self) -> str:
        return ", ".join(f"{number:,} {kind}" for kind, number in self._rows.items() if number)


def _show(there: Mapping[str, int], deleted: Mapping[str, int], lines: Iterator[str], *, quiet: bool) -> None:
    if not quiet or current().json:
        show({"rows": dict(there), "deleted": dict(deleted)}, lines)


def _table(rows: Mapping[str, int], what: str) -> Iterator[str]:
    return lines_of(rows, what, nothing="all is within the bounds")
