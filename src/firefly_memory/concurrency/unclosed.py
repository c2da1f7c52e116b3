"""A warning for a store that nobody can close any more."""

from __future__ import annotations

import warnings
from typing import Any


class WarnsIfUnclosed:
    """``ResourceWarning`` if this is collected while it still holds connections or threads."""

    def holds_resources(self) -> bool:
        """Whether there is something to close."""
        raise NotImplementedError

    def described(self) -> str:
        """What was not closed, without a password."""
        raise NotImplementedError

    def drop_resources(self) -> None:
        """Drop them without waiting, so that the driver gives no second warning."""

    def __del__(self, warn: Any = warnings.warn) -> None:  # bound now: a process that ends takes its modules apart
        try:
            is_open = self.holds_resources()
        except AttributeError:  # the constructor has failed
            return
        if is_open:
            advice = "call close_sync() or await close(), or use the store in a with block"
            warn(f"a store was not closed: {self.described()}; {advice}", ResourceWarning, source=self)
            self.drop_resources()
