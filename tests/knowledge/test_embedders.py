"""The embedder of a ``KnowledgeStore``: chosen, absent, failing, changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from uuid import uuid4

import pytest

from firefly_memory import (
    ConfigurationError,
    EntryStore,
    InMemoryStore,
    NotSupportedError,
)
from firefly_memory.errors import EmbedderError
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.search import index_keeper, searching
from firefly_memory.search.embedders import default as default_embedder
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.knowledge_stores import (
    IN_EACH,
    IN_ONE_SERVER,
    Broken,
    Letters,
    Make,
    found,
    letters,
    made_in,
    of_function,
    warnings_in,
)

EMBEDDERS: dict[str, Callable[[], Embedder]] = {"static": Letters, "a function": of_function}


@IN_EACH
@pytest.mark.parametrize("embedder", EMBEDDERS)
async def test_what_means_the_same_is_found_without_a_word_of_the_question(make: Make, embedder: str) -> None:
    knowledge = make(embedder=EMBEDDERS[embedder]())
    near, other = await knowledge.add("notes", ["boot boot", "a wide field"])
    for mode in ("semantic", "hybrid", "best"):
        (first, *_) = await knowledge.search("notes", "boto", 5, mode, explain=True)
        assert (first.id, first.text, first.ranks) == (near, "boot boot", {"semantic": 1})
        assert first.explanation.semantic.cosine > 0.9
        assert first.explanation.notes == ()
    assert await found(knowledge, "boto", "text") == []
    (first, *_) = await knowledge.search("notes", "field", 5, "hybrid")
    assert (first.id, first.ranks) == (other, {"text": 1, "semantic": 1})
    await knowledge.delete("notes", [near])
    for mode in ("semantic", "hybrid"):
        assert await found(knowledge, "boto", mode) == ["a wide field"]
    await knowledge.delete("notes")
    assert await found(knowledge, "boto", "semantic") == []


@IN_ONE_SERVER
async def test_vectors_of_other_owners_collections_and_spaces_are_not_compared(make: Make) -> None:
    knowledge, of_another_space = make(embedder=Letters()), make(embedder=Letters(), space=uuid4().hex)
    ann, bob = uuid4().hex, uuid4().hex
    await knowledge.add("notes", "boot of nobody")
    for owner in (ann, bob):
        await knowledge.add("notes", f"boot of {owner}", owner=owner)
    await knowledge.add("others", "boot")
    await of_another_space.add("notes", "boot")
    for mode in ("semantic", "hybrid"):
        assert await found(knowledge, "boto", mode) == ["boot of nobody"]
        assert sorted(await found(knowledge, "boto", mode, owner=ann)) == sorted([f"boot of {ann}", "boot of nobody"])


@IN_ONE_SERVER
async def test_neighbours_in_a_group_lend_what_they_mean(make: Make) -> None:
    knowledge = make(embedder=of_function())
    said = ["wide wide", "boot boot", "fun", "field", "fell"]
    ids = await knowledge.add("notes", [Chunk(text, group="talk") for text in said])
    (first, second, *_) = await knowledge.search("notes", "boto", 10, "semantic", explain=True)
    assert (first.id, second.id) == (ids[1], ids[2])
    assert second.explanation.semantic.neighbour == ids[1]


@IN_EACH
async def test_texts_are_stored_if_the_embedder_fails_and_their_vectors_are_made_later(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken()
    knowledge = make(embedder=of_function(broken))
    with caplog.at_level(logging.WARNING):
        await knowledge.add("notes", ["boot boot", "a wide field"])
        assert len(warnings_in(caplog)) == 1
        await knowledge.add("notes", "one more")
    said = warnings_in(caplog)
    assert len(said) == 2, "one line for each call"
    assert "2 chunks are stored without vectors" in said[0]
    assert "embed_missing()" in said[0]
    assert "it is broken" in said[0]
    assert await found(knowledge, "boot", "text") == ["boot boot"]
    assert await found(knowledge, "boot", "fuzzy") == ["boot boot"]
    assert await found(knowledge, "boot", "hybrid") == ["boot boot"], "nothing has a vector, so nothing is embedded"
    with pytest.raises(EmbedderError, match="it is broken"):
        await knowledge.embed_missing()
    broken.mend()
    assert await knowledge.embed_missing() >= 3, "those of every space"
    assert await knowledge.embed_missing() == 0
    assert (await found(knowledge, "boto", "semantic"))[0] == "boot boot"


@IN_ONE_SERVER
async def test_a_text_that_is_added_again_gets_the_vector_that_it_lacks(make: Make) -> None:
    broken = Broken()
    knowledge = make(embedder=of_function(broken))
    ids = await knowledge.add("notes", ["boot boot", "a wide field"])
    broken.mend()
    assert await knowledge.add("notes", "boot boot") == ids[:1]
    assert await found(knowledge, "boto", "semantic") == ["boot boot"]
    assert await knowledge.count("notes") == 2


class KilledError(BaseException):
    """Ends a process."""


@pytest.mark.parametrize("end", [EmbedderError("letters", "it is broken"), KilledError()], ids=["failed", "killed"])
@IN_ONE_SERVER
async def test_making_vectors_goes_on_where_it_was_broken_off(
    new_store: EntryStore, mode: Mode, end: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_keeper, "_PAGE", 2)
    make = made_in(new_store, mode)
    without, broken = make(embedder=None), Broken()
    knowledge = make(embedder=CallableEmbedder(broken, name=uuid4().hex, dimensions=26))
    await without.add("notes", [f"text {number}" for number in range(7)])
    broken.broken_after, broken.error = 2, end
    with pytest.raises(type(end)):
        await knowledge.embed_missing()
    assert broken.calls == 2
    assert len(await found(knowledge, "text", "text")) == 7
    broken.mend()
    assert await knowledge.embed_missing() == 7 - 2 * 2
    assert broken.calls == 2 + 2
    assert len(await found(knowledge, "text", "semantic")) == 7


@IN_ONE_SERVER
async def test_a_search_without_its_embedder_is_for_text_and_says_so(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken()
    knowledge = make(embedder=of_function(queries=broken))
    await knowledge.add("notes", ["boot boot", "a wide field"])
    with caplog.at_level(logging.WARNING):
        for mode in ("hybrid", "best", "hybrid"):
            (hit,) = await knowledge.search("notes", "boot", 5, mode, explain=True)
            assert (hit.text, hit.ranks) == ("boot boot", {"text": 1})
            assert hit.explanation.notes == ("the embedder failed, so the search is for text only",)
    assert len(warnings_in(caplog)) == 1
    assert "the embedder failed" in warnings_in(caplog)[0]
    with pytest.raises(EmbedderError, match="it is broken"):
        await knowledge.search("notes", "boot", 5, "semantic")
    broken.mend()
    (hit, *_) = await knowledge.search("notes", "boot", 5, "hybrid", explain=True)
    assert (hit.ranks, hit.explanation.notes) == ({"text": 1, "semantic": 1}, ())


@IN_ONE_SERVER
async def test_without_an_embedder_the_search_is_for_text(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    knowledge = make(embedder=None)
    assert knowledge.embedder is None
    await knowledge.add("notes", ["boot boot", "a wide field"])
    with caplog.at_level(logging.WARNING):
        assert await found(knowledge, "boot", "text") == await found(knowledge, "boot", "fuzzy") == ["boot boot"]
        for mode in ("best", "hybrid", "best"):
            (hit,) = await knowledge.search("notes", "boot", 5, mode, explain=True)
            assert (hit.text, hit.ranks) == ("boot boot", {"text": 1})
            assert "there is no embedder" in hit.explanation.notes[0]
    assert warnings_in(caplog) == [], "whoever has chosen that knows it"
    for call in (knowledge.search("notes", "boot", 5, "semantic"), knowledge.embed_missing()):
        with pytest.raises(ConfigurationError, match=r"firefly-memory\[embeddings\]"):
            await call


def test_the_default_embedder_is_the_local_one_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(KnowledgeStore().embedder, WordLlamaEmbedder)
    monkeypatch.setattr(default_embedder, "find_spec", lambda _: None)
    assert KnowledgeStore().embedder is None


@pytest.mark.parametrize("mode", Mode)
async def test_without_the_default_embedder_the_log_says_once_that_the_search_is_for_text(
    mode: Mode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(default_embedder, "find_spec", lambda _: None)
    knowledge = Memory(KnowledgeStore(), mode)
    with caplog.at_level(logging.WARNING):
        await knowledge.add("notes", "boot boot")
        assert await found(knowledge, "boot", "text") == ["boot boot"]
        assert warnings_in(caplog) == []
        for search_mode in ("best", "hybrid", "best"):
            assert await found(knowledge, "boot", search_mode) == ["boot boot"]
    assert len(warnings_in(caplog)) == 1
    assert "firefly-memory[embeddings]" in warnings_in(caplog)[0]


@pytest.mark.parametrize("mode", Mode)
async def test_the_default_embedder_finds_what_means_the_same(mode: Mode) -> None:
    knowledge = Memory(KnowledgeStore(), mode)
    await knowledge.add("notes", ["The invoice is overdue", "I adopted a puppy"])
    assert (await found(knowledge, "dog"))[0] == "I adopted a puppy"


@IN_ONE_SERVER
async def test_names_of_people_are_left_out_of_the_question_that_is_embedded(make: Make) -> None:
    asked: list[str] = []

    def queries(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [letters(text) for text in texts]

    knowledge = make(embedder=of_function(queries=queries))
    said = [Chunk("we went sailing", "Anna Lee"), Chunk("so did we", "Ben\x00Zoe")]
    await knowledge.add("notes", said)
    await knowledge.add("notes", Chunk("and they", "Carl"), owner=uuid4().hex)
    for question, embedded in (
        ("Where did Anna go, Ben?", "Where did go,"),
        ("Where did Zoe go?", "Where did go?"),
        ("Where did Carl go?", "Where did Carl go?"),
        ("Anna Lee?", "Anna Lee?"),
    ):
        asked.clear()
        await knowledge.search("notes", question, 5, "hybrid")
        assert asked == [embedded]


DIMENSIONS = pytest.mark.parametrize("dimensions", [8, 25, 32], ids=lambda number: f"{number} instead of 26")
"""25 and 32 dimensions have signatures of as many bytes as 26 have."""


@DIMENSIONS
@pytest.mark.parametrize("mode", Mode)
async def test_another_dimension_under_one_name_is_refused(mode: Mode, dimensions: int) -> None:
    make = made_in(InMemoryStore(), mode)
    await make(embedder=of_function()).add("notes", ["boot boot", "a wide field"])
    other = make(embedder=_of_dimensions(dimensions))
    for search_mode in ("semantic", "hybrid", "best"):
        with pytest.raises(ConfigurationError, match="another number of dimensions"):
            await other.search("notes", "boot", 5, search_mode)
    assert len(await found(other, "boot", "text")) == 1


@DIMENSIONS
@pytest.mark.parametrize("mode", Mode)
async def test_vectors_of_two_dimensions_under_one_name_are_a_clear_error(mode: Mode, dimensions: int) -> None:
    """Of the embedder that adds the second ones, or of the search."""
    make = made_in(InMemoryStore(), mode)
    first, other = make(embedder=of_function()), make(embedder=_of_dimensions(dimensions))
    await first.add("notes", [f"boot {number}" for number in range(4)])
    with pytest.raises(ConfigurationError, match="dimensions"):
        await other.add("notes", [f"field {number}" for number in range(4)])
        await first.search("notes", "boot", 5, "semantic")


def _of_dimensions(dimensions: int) -> CallableEmbedder:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [(letters(text) + [1.0] * 6)[:dimensions] for text in texts]

    return of_function(embed, dimensions=dimensions)


@IN_ONE_SERVER
async def test_a_scope_of_very_many_vectors_is_searched_for_text(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(searching, "LARGEST_SCOPE", 3)
    knowledge, ann = make(embedder=Letters()), uuid4().hex
    await knowledge.add("notes", ["boot boot", "a wide field", "a wide lake"])
    assert (await found(knowledge, "boto", "semantic"))[0] == "boot boot"
    await knowledge.add("notes", "boot of ann", owner=ann)
    assert (await found(knowledge, "boto", "semantic"))[0] == "boot boot", "the scope of nobody has three"
    with pytest.raises(NotSupportedError, match=r"search a smaller collection, or one owner's"):
        await knowledge.search("notes", "boto", 5, "semantic", owner=ann)
    with caplog.at_level(logging.WARNING):
        for mode in ("hybrid", "best"):
            hits = await knowledge.search("notes", "boot", 5, mode, owner=ann, explain=True)
            assert sorted(hit.text for hit in hits) == ["boot boot", "boot of ann"]
            assert ["documents have vectors here" in hit.explanation.notes[0] for hit in hits] == [True, True]
    assert len(warnings_in(caplog)) == 1
