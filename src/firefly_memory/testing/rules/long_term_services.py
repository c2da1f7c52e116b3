"""What the rules of long-term memory are checked with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any
from uuid import uuid4

from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.types import MemoryFact
from firefly_memory.testing.checks import Memory, Subject

_RANDOM = Random(18)

LONGEST = [
    "".join(chr(_RANDOM.randrange(first, last)) for _ in range(512))
    for first, last in ((0x10000, 0x110000), (0xD800, 0xE000), (0, 0x11))
]
"""Names of 512 characters: of four bytes each, and of such as no database takes. No index can compress them."""


class Service(Memory):
    """A service in one mode, all of whose methods are to be awaited."""

    def __init__(self, subject: Subject, space: str) -> None:
        super().__init__(MemoryService(subject.store, space=space, embedder=None), subject.mode)
        self._subject = subject
        self._facts: list[str] = []

    async def set_fact(self, key: str, value: Any, **options: Any) -> MemoryFact:
        fact: MemoryFact = await self.__getattr__("set_fact")(key, value, **options)
        self._facts.append(fact.id)
        return fact

    async def delete_all(self) -> None:
        """Delete everything that was stored by this service."""
        log = self._subject.view.log(LONG_TERM_LOG)
        await log.facts.delete(list(dict.fromkeys(self._facts)))
        while users := await self.list_users(1_000):
            if not await log.people.delete([each.id for each in users]):
                return


@asynccontextmanager
async def service_in(subject: Subject, space: str = "") -> AsyncIterator[Service]:
    """The long-term memory of a space of this run's own, deleted at the end."""
    service = Service(subject, f"{space}{uuid4().hex}")
    try:
        yield service
    finally:
        with suppress(Exception):  # a check may have failed because of the store
            await service.delete_all()


async def all_pages(call: Callable[..., Any], *arguments: Any, limit: int = 1_000, **options: Any) -> list[Any]:
    """What a list has, read page by page."""
    found: list[Any] = []
    cursors = set()
    page = await call(*arguments, limit=limit, **options)
    while True:
        assert len(page) <= limit
        assert page.next not in cursors, "each page goes on"
        cursors.add(page.next)
        found += page
        if page.next is None:
            return found
        assert len(page) == limit
        page = await call(*arguments, limit=limit, after=page.next, **options)
