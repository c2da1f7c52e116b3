"""A run with ``Memory`` needs at most two round trips to a server before it, and one after it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pymongo import AsyncMongoClient, monitoring

from firefly_memory import MemoryManager, MemoryStore, MongoDBStore, connect
from firefly_memory.agents import Memory
from firefly_memory.databases.sql.session import DriverSession
from tests.support.backends import Place
from tests.support.scripted_model import Scripted
from tests.support.turns import new_id

TRIP, RUN = "a round trip", "the run"
WITH_A_SUMMARIZER = pytest.mark.parametrize("summarizes", [False, True], ids=["alone", "summarizer"])


async def trips_of_runs(store: MemoryStore, trips: list[str], summarizes: bool) -> list[list[str]]:
    """Of the first run in a conversation, and of the second; whatever counts writes to ``trips``."""
    summarizer = (lambda turns: f"{len(turns)} turns") if summarizes else None
    manager = MemoryManager(store=store, working_scope_id=new_id(), summarizer=summarizer, summarize_threshold=5_000)
    await manager.async_set_fact("k", "v")
    agent = Agent(Scripted({"look": {}}, "done", {"look": {}}, "done").model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def look() -> str:
        trips.append(RUN)
        return "seen"

    runs, conversation = [], new_id()
    for prompt in ("one", "two"):
        trips.clear()
        await agent.run(prompt, conversation_id=conversation)
        runs.append(trips.copy())
    assert len(await manager.conversation.async_get_turns(conversation)) == 2
    return runs


@WITH_A_SUMMARIZER
async def test_a_run_on_postgresql_needs_three_round_trips(
    place: Place, monkeypatch: pytest.MonkeyPatch, summarizes: bool
) -> None:
    trips: list[str] = []
    real = DriverSession._cursor

    def counted(session: Any) -> Any:
        trips.append(TRIP)
        return real(session)

    async with connect(place.with_driver("asyncpg")) as store:
        monkeypatch.setattr(DriverSession, "_cursor", counted)
        assert await trips_of_runs(store, trips, summarizes) == [[TRIP, TRIP, RUN, TRIP]] * 2


@WITH_A_SUMMARIZER
async def test_a_run_on_mongodb_needs_three_round_trips(place: Place, summarizes: bool) -> None:
    trips: list[str] = []

    class Counted(monitoring.CommandListener):
        def started(self, event: monitoring.CommandStartedEvent) -> None:
            trips.append(TRIP)

        def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

        def failed(self, event: monitoring.CommandFailedEvent) -> None: ...

    client: AsyncMongoClient[Any]
    async with (
        AsyncMongoClient(place.mongodb(), event_listeners=[Counted()]) as client,
        MongoDBStore(client=client, database="trips") as store,
    ):
        assert await trips_of_runs(store, trips, summarizes) == [[TRIP, TRIP, RUN, TRIP]] * 2
