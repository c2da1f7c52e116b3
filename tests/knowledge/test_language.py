"""The language of an index."""

from __future__ import annotations

import pytest

from firefly_memory import (
    ConfigurationError,
    ConflictError,
    EntryStore,
    ErasedError,
)
from firefly_memory.erasure import async_erase
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from tests.knowledge import Chunks
from tests.support.knowledge_stores import IN_ONE_SERVER, found, made_in, row


@IN_ONE_SERVER
async def test_the_first_chunk_decides_the_language(new_store: EntryStore, mode: Mode) -> None:
    make = made_in(new_store, mode)
    german, undecided, english = make(language="german"), make(), make(language="english")
    assert await found(english, "boat", "text") == []
    await german.add("notes", ["Die Häuser am See", "Der Garten"])
    for knowledge in (german, undecided, make(space="another")):
        assert await knowledge.search("notes", "Haus", 5, "text") == await german.search(
            "notes", "Haus", 5, "text"
        ) or (knowledge is not german)
    assert await found(german, "welches Haus?", "text") == ["Die Häuser am See"]
    assert await found(undecided, "Gärten der", "text") == ["Der Garten"]
    assert await found(german, "der", "text") == ["Der Garten"], "a stop word, and nothing else is asked for"
    for call in (
        english.add("notes", "houses"),
        english.search("notes", "houses"),
        make(language="none").add("n", "x"),
    ):
        with pytest.raises(ConfigurationError, match=r"are german, not .*: a database has one language"):
            await call
    await undecided.add("others", "Noch ein Haus")
    assert await german.count() == 3
    await german.delete("notes")
    await german.delete("others")
    with pytest.raises(ConfigurationError, match="german"):
        await english.add("notes", "houses")


@IN_ONE_SERVER
async def test_english_is_the_language_if_nobody_says_otherwise(new_store: EntryStore, mode: Mode) -> None:
    knowledge = made_in(new_store, mode)()
    await knowledge.add("notes", ["the boats of May", "a piano"])
    assert await found(knowledge, "which boat is sailing?", "text") == ["the boats of May"]
    with pytest.raises(ConfigurationError, match="are english, not german"):
        await made_in(new_store, mode)(language="german").add("notes", "Boote")


@IN_ONE_SERVER
async def test_of_first_writers_with_two_languages_one_is_refused(new_store: EntryStore, mode: Mode) -> None:
    """Neither has read a language before."""
    chunks = Chunks(new_store, mode)
    assert await chunks("language") is None
    assert await chunks("add", [row("Haus", "german")], {}, IndexLanguage("german", FORM)) == 1
    for kept in (IndexLanguage("english", FORM), IndexLanguage("german", FORM + 1)):
        with pytest.raises(ConflictError):
            await chunks("add", [row("house", "english")], {}, kept)
    assert await chunks("language") == IndexLanguage("german", FORM)
    assert [each.text for each in await chunks.every()] == ["Haus"]


@IN_ONE_SERVER
async def test_words_by_the_rules_of_another_version_are_refused(new_store: EntryStore, mode: Mode) -> None:
    await Chunks(new_store, mode)("add", [row("house", "english")], {}, IndexLanguage("english", FORM + 1))
    knowledge = made_in(new_store, mode)()
    for call in (knowledge.add("notes", "boat"), knowledge.search("notes", "boat")):
        with pytest.raises(ConfigurationError, match=f"this version has the rules {FORM}"):
            await call


@IN_ONE_SERVER
async def test_a_first_chunk_that_is_refused_decides_no_language(new_store: EntryStore, mode: Mode) -> None:
    await async_erase(new_store, "ann")
    make = made_in(new_store, mode)
    with pytest.raises(ErasedError):
        await make(language="german").add("notes", "Haus", owner="ann")
    await make(language="english").add("notes", "houses")
    assert await found(make(), "house", "text") == ["houses"]
