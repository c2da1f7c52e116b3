"""Long-term memory in MongoDB while answers of the server get lost: each of a call's answers once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from firefly_memory import MongoDBStore
from firefly_memory.errors import OutcomeUnknownError
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FactRow
from firefly_memory.testing import Mode
from firefly_memory.testing.proxy import CALM, Proxy
from tests.support.backends import Place
from tests.support.long_term_logs import ENGLISH, at, fact, person, written
from tests.support.mongodb_chunks import vector
from tests.support.mongodb_long_term import Stored
from tests.support.mongodb_tombstones import Somewhere

pytestmark = pytest.mark.thorough

MANY = 20
"""More answers than an act has."""

ANN, BOB = person("Ann"), person("Bob")


def mine(key: str, value: Any = "value", second: int = 0) -> FactRow:
    return fact(key, value, scope="user", scope_id=ANN.canonical_id, second=second)


THERE = mine("there", "old")
NEW, CHANGED, SAME = mine("new"), mine("there", "changed", 1), mine("there", "old", 1)

Act = Callable[[Stored], Coroutine[Any, Any, Any]]


async def set_new(stored: Stored) -> Any:
    return (await stored.set(NEW, vector(2))).outcome


async def set_changed(stored: Stored) -> Any:
    return (await stored.set(CHANGED, vector(2))).outcome


async def set_same(stored: Stored) -> Any:
    return (await stored.set(SAME)).outcome


async def set_several(stored: Stored) -> Any:
    done = await stored.facts("set", [written(NEW), written(CHANGED)], ENGLISH)
    return [each.outcome for each in done]


async def set_at_once(stored: Stored) -> Any:
    """The first one alone, and the others as a group."""
    rows = [NEW, CHANGED, mine("other"), mine("another")]
    return [each.outcome for each in await asyncio.gather(*[stored.set(row) for row in rows])]


async def restore(stored: Stored) -> Any:
    return await stored.facts("restore", NEW, [], ENGLISH)


async def confirm(stored: Stored) -> Any:
    return (await stored.facts("confirm", "default", THERE.id, "w", at(1))).times_confirmed


async def get(stored: Stored) -> Any:
    return (await stored.facts("get", Lookup(None, ANN.word, None, None), "there", at(1))).access_count


async def delete(stored: Stored) -> Any:
    return await stored.facts("delete", [THERE.id])


async def meet(stored: Stored) -> Any:
    return (await stored.people("meet", person("Cleo"))).is_new


async def count_conversation(stored: Stored) -> Any:
    return (await stored.people("count_conversation", ANN.word, "w", at(1))).total_conversations


async def merge(stored: Stored) -> Any:
    return (await stored.people("merge", ANN.word, BOB.word, "w", at(1))).refusal


async def delete_people(stored: Stored) -> Any:
    return await stored.people("delete", [ANN.id])


async def prepared(stored: Stored) -> None:
    for row in (ANN, BOB):
        assert await stored.people("restore", row)
    await stored.set(THERE, vector(1))


async def found(stored: Stored) -> tuple[Any, ...]:
    """What is there now, but for the ids of people."""
    rows = await stored.facts("page", 99, "")
    facts = [(row.key, row.value, row.scope_id, row.times_confirmed, row.versions, row.access_count) for row in rows]
    people = [
        (row.canonical_id, row.total_conversations, row.stands_for == row.word)
        for row in await stored.people("list", "default", 99, None)
    ]
    counts = await stored.facts("count_versions"), dict(await stored.facts("vectors_by_embedder"))
    return sorted(facts), people, counts, len(stored.markers())


@pytest.fixture
def proxy(place: Place) -> Iterator[Proxy]:
    port = urlsplit(place.mongodb()).port
    assert port is not None
    with Proxy(port, CALM).running() as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (set_new, "created"),
        (set_changed, "updated"),
        (set_same, "updated"),
        (set_several, ["created", "updated"]),
        (set_at_once, ["created", "updated", "created", "created"]),
        (restore, True),
        (confirm, 2),
        (get, 1),
        (delete, 1),
        (meet, True),
        (count_conversation, 1),
        (merge, None),
        (delete_people, 1),
    ],
)
async def test_after_any_lost_reply_the_result_is_right(
    act: Act, expected: Any, replica_set: Somewhere, proxy: Proxy
) -> None:
    answers, lost = 0, 1
    async with replica_set.store() as store:
        direct = Stored(replica_set, store, Mode.SUSPENDING)

        async def cleared() -> None:
            await direct.people("delete", [row.id for row in await direct.people("page", 99, "")])

        await prepared(direct)
        before = await found(direct)
        assert await act(direct) == expected
        after = await found(direct)
        await cleared()
        while lost and answers < MANY:
            await prepared(direct)
            async with MongoDBStore(proxy.url(replica_set.url), database=replica_set.name) as behind:
                await behind.async_count("warm")
                proxy.lose_reply(answers)
                try:
                    assert await act(Stored(replica_set, behind, Mode.SUSPENDING)) == expected, answers
                except OutcomeUnknownError:
                    assert await found(direct) in (before, after)
                else:
                    assert await found(direct) == after, answers
                finally:
                    proxy.calm_down()
                lost, answers = proxy.lost, answers + 1
            await cleared()
    assert 1 < answers < MANY
