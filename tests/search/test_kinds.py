"""The kinds of texts: questions, and texts with a number, a time, or a name."""

from __future__ import annotations

import unicodedata
from datetime import date
from time import process_time

import pytest
from hypothesis import given

from firefly_memory.search.index import indexed
from firefly_memory.search.kinds import ASKS, NAME, NUMBER, TIME, kinds_among, kinds_asked, kinds_of
from firefly_memory.search.scopes import scope_word
from firefly_memory.search.words import index_words
from tests.search.strategies import languages, texts


def kinds(text: str, language: str = "english") -> str:
    return kinds_among(kinds_of(text, index_words(text, language), language))


@pytest.mark.parametrize(
    "text", ["Where?", "Où est-il ? ", "“Really?!” 🎉", "你在哪里？", "أين؟", "Πού\u037e", "(why?)\n", "?"]
)
@pytest.mark.parametrize("language", ["english", "french", "none"])
def test_a_text_that_ends_with_a_question_mark_asks(text: str, language: str) -> None:
    assert kinds(text, language) == ASKS
    assert ASKS not in kinds(f"{text} yes", language)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("no, _is_a.", ""),
        ("it costs 30 euros", NUMBER + TIME),
        ("we have fourteen", NUMBER + TIME),
        ("We left on Tuesdays. Then it rained.", TIME),
        ("the third of May", TIME),
        ("They call her Éloise.", NAME),
        ("Anna said so. Ben did not. I was there: We left.", ""),
        ("Is it Rex?", ASKS + NAME),
        ("two from Oslo?", ASKS + NUMBER + TIME + NAME),
    ],
)
def test_a_text_has_the_kinds_of_what_it_names(text: str, expected: str) -> None:
    assert kinds(text) == expected
    assert kinds(text, "german") == expected.strip(NUMBER + TIME + NAME)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Anna buy?", ""),
        ("How did they meet?", ""),
        ("How much was it?", NUMBER),
        ("HOW LONG did it take?", NUMBER + TIME),
        ("When was it, and who came?", TIME + NAME),
        ("In which year?", TIME),
        ("What is the dog called?", NAME),
        ("the whole one", ""),
    ],
)
def test_a_question_asks_for_kinds(question: str, expected: str) -> None:
    assert kinds_asked(question, "english") == expected
    assert kinds_asked(question, "german") == ""


def test_neither_the_date_nor_the_person_makes_a_kind() -> None:
    fields = indexed("_scope", "yes", "english", who="Anna Berg", at=date(2023, 5, 8))
    assert fields.words == ["_scope", "8", "may", "2023", "anna", "berg", "yes"]
    assert indexed("_scope", "4?", "english", who="Al").words == ["_scope", f"_is_{ASKS}{NUMBER}{TIME}", "al", "4"]


@given(texts, texts, languages)
def test_the_kinds_are_read_from_the_first_words_and_no_text_has_their_word(text: str, who: str, language: str) -> None:
    scope = scope_word("space", who)
    words = indexed(scope, text, language, who=who).words
    assert kinds_among(words) == kinds_among(words[1:]) == kinds(text, language)
    assert sum("_" in word for word in words) == 1 + bool(kinds(text, language))
    assert all(unicodedata.category(each) in {"Ll", "Pc"} for word in kinds_of(text, [], language) for each in word)


@pytest.mark.parametrize("text", ["!" * 1_000_000, "?" * 1_000_000, "a A" * 300_000, " " * 1_000_000, "A b " * 250_000])
def test_the_kinds_of_a_large_text_take_seconds_at_most(text: str) -> None:
    began = process_time()
    kinds_of(text, [], "english")
    kinds_asked(text, "english")
    assert process_time() - began < 5  # with time that grows with the square of the text it would be hours
