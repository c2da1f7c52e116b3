"""Many processes that append to one location."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from firefly_memory import adapt
from firefly_memory.testing.rules.feed_stores import message_store
from tests.support.backends import BY_NAME, Place
from tests.support.store_worker import start, together

pytestmark = pytest.mark.thorough

PROCESSES = 32
EACH = 5


@pytest.mark.parametrize("kind", ["sqlite", "postgresql-asyncpg", "postgresql-psycopg", "mongodb"])
def test_32_processes_on_one_location_lose_nothing_and_every_reader_sees_one_order(kind: str, place: Place) -> None:
    backend, location = BY_NAME[kind], f"shared {uuid4().hex}"
    with adapt(backend.open(place)) as store:
        messages = message_store(store)
        messages.get_items(location)
        names = [f"agent {number}" for number in range(PROCESSES)]
        printed = together([start(backend, place, "append_and_read", location, name, EACH) for name in names])
        order = [[each.number, each.message["content"]] for each in messages.get_items(location)]
        assert [number for number, _ in order] == list(range(1, PROCESSES * EACH + 1))
        for name in names:
            own = [content for _, content in order if content.startswith(f"{name} ")]
            assert own == [f"{name} {number}" for number in range(EACH)], "each in its own order"
            newest = messages.get_agent_messages(location, name, limit=2)
            assert [each["content"] for each in newest] == own[-2:]
        for each in printed:
            seen = json.loads(each)
            assert len(seen) >= EACH
            assert seen == order[: len(seen)], "no reader sees a number before all smaller ones"
