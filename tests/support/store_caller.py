"""A store used in one mode, so that a test can be written once for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from firefly_memory import EntryStore
from firefly_memory.testing import Mode


class StoreCaller:
    """``used("save", namespace, entry)`` calls ``store.save`` or awaits ``store.async_save``."""

    def __init__(self, store: EntryStore, mode: Mode) -> None:
        self._store = store
        self._mode = mode
        self.runner = asyncio.Runner()

    def __call__(self, operation: str, *arguments: Any) -> Any:
        if self._mode is Mode.BLOCKING:
            return getattr(self._store, operation)(*arguments)
        return self.runner.run(getattr(self._store, f"async_{operation}")(*arguments))

    def close(self) -> None:
        if self._mode is Mode.BLOCKING:
            self._store.close_sync()
        else:
            self.runner.run(self._store.close())
        self.runner.close()


MakeStoreCaller = Callable[[EntryStore, Mode], StoreCaller]
