"""What ``firefly-memory forget`` and ``readmit`` do: :mod:`firefly_memory.erasure`, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from firefly_memory import erasure
from firefly_memory.cli.consent import require_consent
from firefly_memory.cli.output import show
from firefly_memory.cli.receipts import lines_of, number_of_rows
from firefly_memory.cli.target import Where
from firefly_memory.errors import FireflyMemoryError
from firefly_memory.target import changing


def forget_owner(
    where: Where, owner: str, namespaces: Sequence[str], texts: Sequence[str], *, yes: bool, dry_run: bool
) -> None:
    with changing(where.target(), timeout=where.timeout) as store:
        there = erasure.erase(store, owner, namespaces, dry_run=True)
        if dry_run:
            lines = [*_would_delete(there), there.note]
            show({"rows": there.rows, "deleted": {}, "further_ids": there.further_ids, "note": there.note}, lines)
            return
        ids = f", of {there.further_ids + 1:,} ids" if there.further_ids else ""
        would = f"delete {number_of_rows(sum(there.rows.values()))} of this person{ids}"
        require_consent(
            yes=yes,
            name=owner,
            of="the owner",
            would=_would_delete(there),
            lost=would,
            is_to="this person is to be erased",
            or_else="; --dry-run only counts",
        )
        receipt = erasure.erase(store, owner, namespaces)
        found = {text: erasure.find_text(store, text) for text in texts}
    result = {"rows": there.rows, "deleted": receipt.rows, "further_ids": receipt.further_ids, "note": receipt.note}
    lines = [*_table(receipt.rows, "deleted"), *_ids(receipt, "were"), receipt.note, *_places(found)]
    show({**result, "found": found}, lines)
    if any(found.values()):
        raise FireflyMemoryError("a text of --find is still in the store: it belongs to somebody else, or to nobody")


def readmit_owner(where: Where, owner: str) -> None:
    with changing(where.target(), timeout=where.timeout) as store:
        if not erasure.readmit(store, owner):
            raise FireflyMemoryError("this owner was not erased")
    show({"readmitted": True}, ["new data of this owner is accepted"])


def _would_delete(there: erasure.Receipt) -> Iterator[str]:
    yield from _table(there.rows, "would delete")
    yield from _ids(there, "would be")


def _ids(receipt: erasure.Receipt, verb: str) -> Iterator[str]:
    """That the person has several ids, if so."""
    if receipt.further_ids:
        yield f"further ids of this person that {verb} erased as well: {receipt.further_ids:,}"


def _table(rows: Mapping[str, int], what: str) -> Iterator[str]:
    """The receipt."""
    return lines_of(rows, what, nothing="this owner has no data")


def _places(found: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for text, places in found.items():
        if not places:
            yield f"{text!r} is nowhere in the store"
        for place, rows in places.items():
            yield f"{text!r} is in {place}: {number_of_rows(rows)}"
