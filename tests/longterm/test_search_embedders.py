"""The index of facts: vectors that are missing, of another embedder, or of a former value; and its language."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from firefly_memory import ConfigurationError, EntryStore, service
from firefly_memory.errors import EmbedderError
from firefly_memory.search import searching
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.search.keeping import IndexState
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.knowledge_stores import Broken, Letters, letters, new_store, of_function, warnings_in
from tests.support.long_term_stores import Make, made_in

__all__ = ["new_store"]


SOME = pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("memory", Mode.SUSPENDING),
        ("sqlite", Mode.BLOCKING),
        ("asyncpg", Mode.SUSPENDING),
        ("psycopg", Mode.BLOCKING),
        ("mongodb", Mode.SUSPENDING),
    ],
)
"""Each kind of store, in one mode: the flows of both are the same."""


async def keys(service: Memory, query: str, mode: str, **options: Any) -> list[str]:
    return [hit.fact.key for hit in await service.search_facts(query, limit=100, mode=mode, **options)]


@SOME
async def test_facts_are_stored_if_the_embedder_fails_and_their_vectors_are_made_later(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken()
    memory = make(embedder=of_function(broken))
    with caplog.at_level(logging.WARNING):
        fact = await memory.set_fact("boot", "boot", scope="user", user_id="ann")
        await memory.set_fact("field", "wide")
    said = warnings_in(caplog)
    assert len(said) == 2
    assert "1 facts are stored without vectors, embed_missing() makes them" in said[0]
    assert "it is broken" in said[0]
    assert (
        await keys(memory, "boot", "text", user_id="ann")
        == await keys(memory, "boot", "fuzzy", user_id="ann")
        == ["boot"]
    )
    assert await keys(memory, "boot", "hybrid", user_id="ann") == ["boot"]
    with pytest.raises(EmbedderError, match="it is broken"):
        await memory.embed_missing()
    broken.mend()
    assert await memory.set_fact("boot", "boot", scope="user", user_id="ann") != fact, (
        "it is confirmed, and gets its vector"
    )
    assert await keys(memory, "boto", "semantic", user_id="ann") == ["boot"]
    assert await memory.embed_missing() >= 1, "those of every space"
    assert await memory.embed_missing() == 0
    assert await keys(memory, "boto", "semantic", user_id="ann") == ["boot", "field"]


@SOME
async def test_a_new_value_that_cannot_be_embedded_leaves_no_vector_of_the_old_one(make: Make) -> None:
    broken = Broken()
    broken.mend()
    memory = make(embedder=of_function(broken))
    await memory.set_fact("thing", "boot boot")
    broken.broken_after = 0
    await memory.set_fact("thing", "zug")
    broken.mend()
    assert await keys(memory, "boot", "semantic") == []
    assert await keys(memory, "zug", "hybrid") == ["thing"]
    await memory.embed_missing()
    (hit,) = await memory.search_facts("thing zug", mode="semantic", explain=True)
    assert hit.explanation.semantic.cosine == pytest.approx(1)


@SOME
async def test_a_fact_that_changes_while_its_vector_is_made_gets_none_of_its_old_value(make: Make) -> None:
    writer = make(embedder=None)
    fact = await writer.set_fact("thing", "boot boot")
    made: list[str] = []

    def changing(texts: Sequence[str]) -> list[list[float]]:
        if not made:
            writer.inner.set_fact("thing", "zug")
        made.extend(texts)
        return [letters(text) for text in texts]

    memory = make(embedder=of_function(changing))
    await memory.embed_missing()
    assert "thing: boot boot" in made
    assert [hit.fact.value for hit in await memory.search_facts("boot boot", mode="semantic")] == []
    await memory.embed_missing()
    assert "thing: zug" in made
    (hit,) = await memory.search_facts("thing zug", mode="semantic", explain=True)
    assert hit.fact.id == fact.id
    assert hit.explanation.semantic.cosine == pytest.approx(1)


@SOME
async def test_a_search_says_what_it_does_without(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    memory, without = make(embedder=of_function(queries=broken)), make(embedder=None)
    with caplog.at_level(logging.WARNING):
        await without.set_fact("boat", "wooden", fact_type="correction")
        for mode in ("best", "hybrid"):
            (hit,) = await without.search_facts("boat", mode=mode, explain=True)
            assert (hit.ranks, hit.explanation.notes) == ({"text": 1}, (searching.NO_EMBEDDER,))
        assert warnings_in(caplog) == [], "who has chosen that knows it"
        for _ in range(2):
            (hit,) = await memory.search_facts("boat", mode="hybrid", explain=True)
            assert (hit.ranks, hit.explanation.notes) == ({"text": 1}, (searching.NO_VECTORS,))
        assert warnings_in(caplog) == [f"facts: {searching.NO_VECTORS}"]
        await memory.set_fact("boot", "leather")
        for _ in range(2):
            (hit,) = await memory.search_facts("boot", mode="best", explain=True)
            assert (hit.ranks, hit.explanation.notes) == (
                {"text": 1},
                ("the embedder failed, so the search is for text only",),
            )
        assert len(warnings_in(caplog)) == 2
        with pytest.raises(EmbedderError, match="it is broken"):
            await memory.search_facts("boot", mode="semantic")
    for call in (without.search_facts("boot", mode="semantic"), without.embed_missing()):
        with pytest.raises(ConfigurationError, match=r"firefly-memory\[embeddings\]"):
            await call


@SOME
async def test_filters_that_leave_nothing_are_not_taken_for_missing_vectors(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    memory = make(embedder=Letters())
    await memory.set_fact("boat", "wooden")
    await make(embedder=None).set_fact("boot", "leather", fact_type="correction")
    with caplog.at_level(logging.WARNING):
        assert await keys(memory, "boat", "semantic", fact_types=["relationship"]) == []
        assert await keys(memory, "boat", "hybrid", fact_types=["relationship"]) == []
        (hit,) = await memory.search_facts("boot", mode="hybrid", fact_types=["correction"], explain=True)
        assert (hit.fact.key, hit.ranks, hit.explanation.notes) == ("boot", {"text": 1}, ())
    assert warnings_in(caplog) == []


def of_two_numbers(name: str) -> CallableEmbedder:
    return CallableEmbedder(lambda texts: [[1.0, float(len(text))] for text in texts], name=name, dimensions=2)


@SOME
async def test_another_embedder_has_vectors_of_its_own(new_store: EntryStore, mode: Mode) -> None:
    make = made_in(new_store, mode)
    former, used = make(embedder=of_two_numbers("former")), make(embedder=Letters())
    await former.set_fact("boot", "boot")
    assert await keys(used, "boot", "semantic") == []
    await used.set_fact("field", "wide")
    assert (await keys(used, "boto", "semantic"), await keys(former, "boto", "semantic")) == (["field"], ["boot"])
    assert await used.embed_missing() == 1
    assert await keys(used, "boto", "semantic") == ["boot", "field"]
    assert (await _state(new_store)).vectors == {"former": 1, "letters": 2}
    assert await service.async_delete_vectors(new_store, "former") | {"facts": 1} == await service.async_delete_vectors(
        new_store, "unknown"
    ) | {"facts": 1}
    assert (await _state(new_store)).vectors == {"letters": 2}
    with pytest.raises(
        ConfigurationError, match="stored vectors of the embedder 'letters' have another number of dimen"
    ):
        await keys(make(embedder=of_two_numbers("letters")), "boto", "semantic")


async def _state(store: EntryStore, embedder: Any = None) -> IndexState:
    return next(each for each in await service.async_index_states(store, embedder=embedder) if each.kind == "facts")


@SOME
async def test_the_first_fact_decides_the_language_and_a_rebuild_changes_it(new_store: EntryStore, mode: Mode) -> None:
    make = made_in(new_store, mode)
    german, undecided = make(language="german"), make(space="another")
    assert await keys(undecided, "haus", "text") == []
    await undecided.set_fact("homes", "two houses")
    assert await keys(undecided, "house", "text") == ["homes"]
    for call in (german.set_fact("Häuser", 1), german.search_facts("Haus", mode="text")):
        with pytest.raises(ConfigurationError, match="are english, not german"):
            await call
    mine = make(embedder=Letters())
    fact = await mine.set_fact("gebäude", "zwei Häuser", confidence=0.6)
    assert await keys(mine, "haus", "text") == []
    assert (await service.async_rebuild_indexes(new_store, "german"))["facts"] == 2
    state = await _state(new_store, Letters())
    assert (state.language, state.rows, state.outdated, state.without_vector, state.is_right) == (
        "german",
        2,
        0,
        1,
        True,
    )
    assert await keys(mine, "haus", "text") == await keys(make(language="german"), "Haus", "text") == ["gebäude"]
    assert await keys(mine, "zwei haus", "hybrid") == ["gebäude"]
    assert await mine.find_fact("gebäude", "global") == fact, "nothing else has changed"
    await undecided.set_fact("homes", "alte Häuser")  # by a writer who knew the former language
    assert await keys(undecided, "haus", "text") == ["homes"]


@SOME
async def test_facts_are_searched_as_people_look_at_them(new_store: EntryStore, mode: Mode) -> None:
    make = made_in(new_store, mode)
    mine, other = make(embedder=Letters(), space="default"), make(embedder=Letters(), space="tenant")
    await mine.set_fact("boat", "global, doubtful", confidence=0.1)
    await mine.set_fact("boat", "of ann", scope="user", user_id="ann", fact_type="correction")
    await mine.set_fact("boat", "of a planner", scope="agent", agent_id="planner")
    await mine.set_fact("boat", "of a session", scope="session", session_id="s")
    await other.set_fact("boat", "of a tenant")

    async def found(**where: str) -> list[set[str]]:
        return [
            {hit.text async for hit in _each(new_store, mode, way, where)}
            for way in ("text", "fuzzy", "semantic", "best")
        ]

    assert await found() == [{"boat: global, doubtful"}] * 4
    assert await found(user_id="ann") == [{"boat: global, doubtful", "boat: of ann"}] * 4
    assert await found(user_id="ann", fact_type="correction") == [{"boat: of ann"}] * 4
    assert (
        await found(agent_id="planner", session_id="s", fact_type="world_knowledge")
        == [{"boat: global, doubtful", "boat: of a planner", "boat: of a session"}] * 4
    )
    assert await found(space="tenant", user_id="ann") == [{"boat: of a tenant"}] * 4
    assert await found(user_id="nobody we know", space="unknown") == [set()] * 4


async def _each(store: EntryStore, mode: Mode, way: Any, where: dict[str, str]) -> Any:
    search: Callable[..., Any] = service.search if mode is Mode.BLOCKING else service.async_search
    hits = search(store, "facts", "boat", mode=way, where=where, embedder=Letters())
    for hit in hits if mode is Mode.BLOCKING else await hits:
        yield hit
