"""The rows whose vectors are added are locked in one order, whatever others do between two statements."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import psycopg
import pytest

from firefly_memory import PostgreSQLStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.sql.session import DriverSession
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from tests.knowledge import ENGLISH, row
from tests.support.backends import Place
from tests.support.mongodb_chunks import vector

_IS_WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%memory_chunks%'"


def test_a_row_that_comes_between_two_statements_is_not_locked_out_of_order(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first row is away while the rows are locked, and there again before their vectors are added. A deletion locks
    it, and waits for the second row: nobody may wait for the deletion then."""
    url = place.with_driver("psycopg")
    with PostgreSQLStore(url, schema_name="lock_order") as store:
        log = store.blocking.log(KNOWLEDGE_LOG)
        first, second = sorted((row("one"), row("two")), key=lambda each: each.id)
        run_without_loop(log.add([first, second], {}, ENGLISH))
        ids = [first.id, second.id]
        deletion = Thread(target=lambda: run_without_loop(log.delete(ids)))

        def come_back() -> None:
            run_without_loop(log.add([first], {}, ENGLISH))
            deletion.start()
            with psycopg.connect(place.postgresql(), autocommit=True) as server:
                while server.execute(_IS_WAITING).fetchone() is None:
                    assert deletion.is_alive()

        around_the_first_lock(monkeypatch, lambda: run_without_loop(log.delete([first.id])), come_back)
        run_without_loop(log.add_vectors({each: vector(number) for number, each in enumerate(ids)}))
        deletion.join()
        assert run_without_loop(log.read(ids)) == []


def around_the_first_lock(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], object], after: Callable[[], object]
) -> None:
    """Do something before and after the first statement that locks rows for their vectors."""
    steps = [before, after]

    def hooked(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(session: DriverSession, statement: Any, values: Any) -> Any:
            if "FOR KEY SHARE" not in statement.sql or not steps:
                return real(session, statement, values)
            (first, then), steps[:] = list(steps), []
            first()
            result = real(session, statement, values)
            then()
            return result

        return call

    for name in ("execute", "fetch"):
        monkeypatch.setattr(DriverSession, name, hooked(getattr(DriverSession, name)))
