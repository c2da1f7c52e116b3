"""A space is a tenant: no method sees or changes anything of another space."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from firefly_memory import InMemoryStore
from firefly_memory.errors import UnknownRecordError
from firefly_memory.longterm import MemoryService
from firefly_memory.testing.checks import Memory
from tests.support.long_term_calls import ANOTHER, IDS, PERSON, every_call
from tests.support.long_term_stores import IN_EACH, Make


def test_a_service_without_a_space_is_that_of_the_default_space() -> None:
    store = InMemoryStore()
    MemoryService(store, embedder=None).set_fact("k", 1)
    assert MemoryService(store, space="default", embedder=None).get_fact("k") == 1
    assert MemoryService(store, space="Default", embedder=None).get_fact("k") is None


async def _fill(service: Memory, word: str) -> None:
    for person in (PERSON, ANOTHER):
        await service.get_or_create_user(*person.split(":"), word)
        await service.set_fact("k", word, scope="user", user_id=person, fact_type="user_preference")
    for scope in ("session", "agent", "global"):
        await service.set_fact("k", word, scope=scope, **IDS)


async def _seen(service: Memory) -> list[Any]:
    facts = [*await service.list_facts(**IDS), *await service.get_user_facts(ANOTHER)]
    return [facts, [list(await service.history(each.id)) for each in facts], list(await service.list_users())]


@IN_EACH
async def test_no_method_sees_or_changes_anything_of_another_space(make: Make) -> None:
    mine, other, empty = make(), make(space=uuid4().hex), make(space=uuid4().hex)
    for service, word in ((mine, "mine"), (other, "theirs")):
        await _fill(service, word)
    before = await _seen(other)
    for service in (mine, empty):
        for call in every_call(service, before[0][0].id):
            with suppress(UnknownRecordError):
                result = await call
                assert "theirs" not in repr(result)
    assert await _seen(other) == before
    assert await _seen(mine) != before
