"""A person is erased while other processes write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from firefly_memory import EntryStore, connect
from firefly_memory.erasure import erase, find_text
from firefly_memory.longterm import MemoryService
from tests.support import long_term_worker
from tests.support.backends import Place
from tests.support.knowledge_stores import dropped

pytestmark = pytest.mark.thorough

PEOPLE = ["web:Tarantella", "mail:Tarantella"]


@pytest.fixture(params=["sqlite", "asyncpg", "mongodb"])
def target(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    own = f"own_{uuid4().hex[:12]}"
    match request.param:
        case "sqlite":
            yield f"sqlite:///{tmp_path / 'memory.db'}", {}
        case "mongodb":
            yield place.mongodb(), {"database": own}
        case driver:
            yield place.with_driver(driver), {"schema_name": own}
    dropped(request.param, place, own)


def opened(url: str, **options: Any) -> EntryStore:
    return connect(url, **options)


def test_nothing_is_left_of_a_person_whom_processes_write_while_they_are_erased(
    target: tuple[str, dict[str, str]],
) -> None:
    url, options = target
    with opened(url, **options) as store:
        memory = MemoryService(store, embedder=None)
        for person in PEOPLE:
            memory.get_or_create_user(*person.split(":"))
        memory.merge_users(PEOPLE[1], PEOPLE[0])
        workers = [long_term_worker.start(url, options, *PEOPLE) for _ in range(3)]
        for each in workers:
            assert each.stdout.readline() == "ready\n"
        receipt = erase(store, PEOPLE[1])
        assert (receipt.further_ids, receipt.rows["users"]) == (1, 2)
        for each in workers:
            assert int(each.stdout.readline()) > 0
            each.communicate()
            assert each.returncode == 0
        assert find_text(store, "Tarantella") == {}
        assert (memory.list_users().items, memory.list_facts(user_id=PEOPLE[0]).items) == ((), ())
