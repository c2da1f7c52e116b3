"""What a write must not bring back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firefly_memory.tombstones.log import Identity


class Guard(NamedTuple):
    """The identities that a write to a namespace of entries needs: if one of them is refused, so is the write."""

    operation: str
    """The name of the write, for the error."""
    identities: Sequence[Identity]
    if_empty: bool = False
    """Whether only what begins in an empty namespace is refused: what goes on there was not erased."""

    def applies(self, records: int) -> bool:
        """Whether to look for tombstones, if the namespace has so many records."""
        return bool(self.identities) and not (self.if_empty and records)


UNGUARDED = Guard("", ())
