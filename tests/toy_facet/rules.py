"""The rules of the notes, for the conformance kit."""

from __future__ import annotations

from datetime import timedelta

from firefly_memory import clock
from firefly_memory.protocols import StoreView
from firefly_memory.search.hits import Request
from firefly_memory.search.searching import at_once
from firefly_memory.testing.checks import Subject, check
from tests.toy_facet.facet import key
from tests.toy_facet.log import Note
from tests.toy_facet.looking import ToySearcher

NOTES = key()


async def found(view: StoreView, question: str) -> list[str]:
    """The ids of nobody's notes with these words, best first."""
    hits = await ToySearcher(1, view, at_once, None).hits(Request(question, top_k=10, mode="text", explain=False), {})
    return [hit.id for hit in hits]


@check("T1", facet=NOTES)
async def a_note_comes_back_as_it_was_saved_last(subject: Subject) -> None:
    log, name = subject.view.log(NOTES), subject.namespace("note")
    for body in ("first", "second words"):
        await log.put(Note(name, body))
        assert await log.get(name, clock.now()) == Note(name, body)


@check("T2", facet=NOTES)
async def a_word_is_found_while_it_is_in_the_note(subject: Subject) -> None:
    log, name = subject.view.log(NOTES), subject.namespace("note")
    word = f"w{name.partition(':')[2]}"
    await log.put(Note(name, f"one {word} more"))
    assert await found(subject.view, word) == [name]
    await log.put(Note(name, "another text"))
    assert await found(subject.view, word) == []


@check("T3", facet=NOTES)
async def an_expired_note_is_invisible_and_is_cleaned_up(subject: Subject) -> None:
    log, name = subject.view.log(NOTES), subject.namespace("note")
    word = f"w{name.partition(':')[2]}"
    now = clock.now()
    await log.put(Note(name, word, now + timedelta(hours=1)))
    assert await found(subject.view, word) == [name]
    assert await log.get(name, now + timedelta(hours=2)) is None
    await log.put(Note(name, word, now - timedelta(hours=1)))
    assert await found(subject.view, word) == []
    assert await subject.view.cleanup_expired() >= 1


RULES = (a_note_comes_back_as_it_was_saved_last, a_word_is_found_while_it_is_in_the_note)
"""Loading them registers the checks."""
