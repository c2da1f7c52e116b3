"""People in somebody's transaction, and what belongs to a person whose id is named in two ways."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import text

from firefly_memory.longterm import MemoryService
from firefly_memory.testing.checks import Memory
from tests.support.backends import Place
from tests.support.bound_stores import KINDS, opened
from tests.support.long_term_stores import IN_EACH, IN_ONE_SERVER


@KINDS
def test_a_row_and_a_merging_commit_or_roll_back_together(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        service = MemoryService(store, space=uuid4().hex, embedder=None)
        for name in ("ann", "bob"):
            service.get_or_create_user("web", name)
            service.set_fact("k", name, scope="user", user_id=f"web:{name}")
        for commits in (False, True):
            with engine.connect() as connection:
                connection.execute(text("INSERT INTO orders VALUES (1)"))
                bound = MemoryService(store.bind(connection), space=service.space, embedder=None)
                bound.merge_users("web:ann", "web:bob")
                assert bound.set_fact("new", 1, scope="user", user_id="web:ann").user_id == "web:bob"
                assert bound.get_fact("k", user_id="web:ann") == "bob"
                if commits:
                    connection.commit()
            assert service.get_fact("k", user_id="web:ann") == ("bob" if commits else "ann")
            assert service.get_fact("new", user_id="web:bob") == (1 if commits else None)
            people = service.list_users()
            assert [each.merged_into_id is None for each in people] == [not commits, True]


@IN_EACH
async def test_facts_of_a_stranger_are_those_of_the_person_who_is_met_later(service: Memory) -> None:
    made = await service.set_fact("tone", "short", scope="user", user_id="web:ann", fact_type="user_preference")
    assert list(await service.get_user_facts("web:ann")) == [made]
    assert await service.get_user("web:ann") is None
    assert (await service.get_user_context("web:ann"))["facts"] == [], "a stranger, as long as nobody has met them"
    person = await service.get_or_create_user("web", "ann")
    assert person.preferences_cache == {"tone": "short"}
    assert list(await service.get_user_facts("web:ann")) == [made]


@IN_ONE_SERVER
async def test_a_person_with_many_facts_is_merged_in_one_call(service: Memory) -> None:
    for name in ("ann", "bob"):
        await service.get_or_create_user("web", name)
    await service.update_preferences("web:ann", {f"k{number:04}": "ann's" for number in range(1_200)})
    await service.update_preferences("web:bob", {f"k{number:04}": "bob's" for number in range(600, 1_800)})
    merged = await service.merge_users("web:ann", "web:bob")
    expected = {f"k{number:04}": "ann's" if number < 600 else "bob's" for number in range(1_800)}
    assert merged.preferences_cache == expected
    conflict = await service.find_fact("k0900", "user", user_id="web:ann")
    assert (conflict.value, conflict.times_confirmed) == ("bob's", 2)
    assert [each.value for each in await service.history(conflict.id)] == ["ann's"]
    assert await service.get_fact("k0000", user_id="web:bob", as_of=datetime.now(UTC)) == "ann's"
