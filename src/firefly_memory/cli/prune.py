"""What ``firefly-memory prune`` does."""

from __future__ import annotations

from typing import NamedTuple

from firefly_memory.cli.consent import require_consent
from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import Where
from firefly_memory.errors import ConfigurationError
from firefly_memory.retention import Pruned, prune
from firefly_memory.settings import PREFIX
from firefly_memory.target import changing


class Asked(NamedTuple):
    """The bounds."""

    older_than: str | None = None
    keep_last: int | None = None
    max_tokens: int | None = None


def run_prune(where: Where, asked: Asked, owner: str | None, *, yes: bool, dry_run: bool, quiet: bool) -> None:
    if asked == Asked():
        asked = _of_settings(where)
    bounds = asked._asdict()
    with changing(where.target(), timeout=where.timeout) as store:
        found = prune(store, **bounds, owner=owner, dry_run=True)
        if dry_run or not found.total:
            _show(found, Pruned(), f"would delete {found.in_words()}", quiet=quiet)
            return
        would = f"delete {found.in_words()}"
        require_consent(
            yes=yes,
            name="prune",
            of="the command",
            would=[f"would {would}"],
            lost=would,
            is_to="they are to be deleted",
            or_else="; --dry-run only counts",
        )
        with progress_bar("pruning", quiet=quiet or current().json, total=lambda _: found.total) as progress:
            pruned = prune(store, **bounds, owner=owner, progress=progress)
    _show(found, pruned, f"deleted {pruned.in_words()}", quiet=quiet)


def _of_settings(where: Where) -> Asked:
    settings = where.settings
    asked = Asked(settings.retention_older_than, settings.retention_keep_last)
    if asked == Asked():
        raise ConfigurationError(
            "nothing is deleted unasked: pass --older-than, --keep-last or --max-tokens, or set "
            f"{PREFIX}RETENTION_OLDER_THAN or {PREFIX}RETENTION_KEEP_LAST"
        )
    return asked


def _show(found: Pruned, pruned: Pruned, words: str, *, quiet: bool) -> None:
    if not quiet or current().json:
        show({"found": dict(found.counts), "deleted": dict(pruned.counts)}, [words])
