"""What is opened and closed in both modes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Openable(ABC):
    """``with`` and ``async with`` for what is initialized and closed in both modes."""

    @abstractmethod
    def initialize_sync(self) -> None:
        """Connect now instead of at the first use."""

    @abstractmethod
    async def initialize(self) -> None:
        """Connect now instead of at the first use."""

    async def async_initialize(self) -> None:
        """Connect now instead of at the first use."""
        await self.initialize()

    @abstractmethod
    def close_sync(self) -> None:
        """Give back what was opened. Closing twice is fine."""

    @abstractmethod
    async def close(self) -> None:
        """Give back what was opened. Closing twice is fine."""

    async def async_close(self) -> None:
        """Give back what was opened. Closing twice is fine."""
        await self.close()

    def __enter__(self) -> Self:
        try:
            self.initialize_sync()
        except BaseException:  # the block is not entered, so it will not be left either
            self.close_sync()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_sync()

    async def __aenter__(self) -> Self:
        try:
            await self.initialize()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
