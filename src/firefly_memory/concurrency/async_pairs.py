"""Classes whose operations exist in both modes: ``name`` and ``async_name``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self, TypeVar

C = TypeVar("C", bound=type)


class Openable(ABC):
    """``with`` and ``async with`` for what is initialized and closed in both modes."""

    @abstractmethod
    def initialize_sync(self) -> None: ...

    @abstractmethod
    async def initialize(self) -> None: ...

    @abstractmethod
    def close_sync(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

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


def documented(cls: C) -> C:
    """Give each ``async_…`` method the docstring of its blocking counterpart: the contract is worded once."""
    members = vars(cls)
    for name, member in members.items():
        blocking = members.get(name.removeprefix("async_"))
        if name.startswith("async_") and blocking is not None:
            _function(member).__doc__ = blocking.__doc__
    return cls


def _function(member: object) -> object:
    return getattr(member, "__func__", member)
