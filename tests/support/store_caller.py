"""A store used in one colour, so that a test can be written once for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from firefly_memory import EntryStore
from firefly_memory.testing import Colour


class StoreCaller:
    """``used("save", namespace, entry)`` calls ``store.save`` or awaits ``store.async_save``."""

    def __init__(self, store: EntryStore, colour: Colour) -> None:
        self._store = store
        self._colour = colour
        self.runner = asyncio.Runner()

    def __call__(self, operation: str, *arguments: Any) -> Any:
        if self._colour is Colour.BLOCKING:
            return getattr(self._store, operation)(*arguments)
        return self.runner.run(getattr(self._store, f"async_{operation}")(*arguments))

    def close(self) -> None:
        if self._colour is Colour.BLOCKING:
            self._store.close_sync()
        else:
            self.runner.run(self._store.close())
        self.runner.close()


MakeStoreCaller = Callable[[EntryStore, Colour], StoreCaller]
