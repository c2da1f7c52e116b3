"""Long-term memory of ours, in both modes, as the benchmarks use it."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks.bare_long_term import LongTerm, Pair
from benchmarks.long_term_facts import Ids, Whose
from firefly_memory.longterm import MemoryService, async_memory_read, async_memory_write, memory_read, memory_write


class Blocking(LongTerm):
    """A service in one mode. Its tools are made once for each person, as for a run of an agent."""

    def __init__(self, service: MemoryService) -> None:
        self.service = service
        self._remember = memory_write(service)
        self._recalls = cache(lambda user: memory_read(service, user=user))

    async def get(self, key: str, ids: Ids) -> Any:
        return self.service.get_fact(key, **ids._asdict())

    async def find(self, key: str, whose: Whose) -> Any:
        fact = self.service.find_fact(key, whose.scope, **whose.ids._asdict())  # type: ignore[arg-type]
        return None if fact is None else fact.value

    async def set(self, key: str, value: str, whose: Whose) -> int:
        ids = whose.ids._asdict()
        return self.service.set_fact(key, value, scope=whose.scope, **ids).times_confirmed  # type: ignore[arg-type]

    async def listed(self, ids: Ids, limit: int) -> list[Pair]:
        return [(each.key, each.value) for each in self.service.list_facts(**ids._asdict(), limit=limit)]

    async def search(self, query: str, ids: Ids, limit: int) -> list[Pair]:
        hits = self.service.search_facts(query, **ids._asdict(), limit=limit)
        return [(hit.fact.key, hit.fact.value) for hit in hits]

    async def context(self, user_id: str) -> dict[str, Any]:
        return self.service.get_user_context(user_id)

    async def recall(self, key: str, user_id: str) -> str:
        return self._recalls(user_id)(key)

    async def remember(self, key: str, value: str) -> str:
        return self._remember(key, value)


class Suspending(LongTerm):
    """The same in the other mode."""

    def __init__(self, service: MemoryService) -> None:
        self.service = service
        self._remember = async_memory_write(service)
        self._recalls = cache(lambda user: async_memory_read(service, user=user))

    async def get(self, key: str, ids: Ids) -> Any:
        return await self.service.async_get_fact(key, **ids._asdict())

    async def find(self, key: str, whose: Whose) -> Any:
        fact = await self.service.async_find_fact(key, whose.scope, **whose.ids._asdict())  # type: ignore[arg-type]
        return None if fact is None else fact.value

    async def set(self, key: str, value: str, whose: Whose) -> int:
        ids = whose.ids._asdict()
        fact = await self.service.async_set_fact(key, value, scope=whose.scope, **ids)  # type: ignore[arg-type]
        return fact.times_confirmed

    async def listed(self, ids: Ids, limit: int) -> list[Pair]:
        return [(each.key, each.value) for each in await self.service.async_list_facts(**ids._asdict(), limit=limit)]

    async def search(self, query: str, ids: Ids, limit: int) -> list[Pair]:
        hits = await self.service.async_search_facts(query, **ids._asdict(), limit=limit)
        return [(hit.fact.key, hit.fact.value) for hit in hits]

    async def context(self, user_id: str) -> dict[str, Any]:
        return await self.service.async_get_user_context(user_id)

    async def recall(self, key: str, user_id: str) -> str:
        return await self._recalls(user_id)(key)

    async def remember(self, key: str, value: str) -> str:
        return await self._remember(key, value)
