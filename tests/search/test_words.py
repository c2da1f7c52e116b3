"""Searchable text and the words of texts and questions."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from importlib import import_module
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firefly_memory.errors import ConfigurationError
from firefly_memory.search import words
from firefly_memory.search.irregular import IRREGULAR
from firefly_memory.search.languages import MONTHS, STEMMED, checked_language, stop_words
from firefly_memory.search.searchable import document_text, indexed_text, searchable, value_text
from firefly_memory.search.stop_words import STOP_WORDS
from firefly_memory.search.words import Piece, index_words, question_pieces, question_words
from tests.search.strategies import languages, texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lesson_local_time_command", "lesson local time command"),
        ("  Local \t-- Time_ ", "local time"),
        ("Straße ﬁn ①", "strasse fin 1"),
        ("İstanbul", "istanbul"),
        ("100% \\ 'x'", "100% \\ 'x'"),
        ("a\0b\ud800", "a\ufffdb\ufffd"),
        ("\0", "\ufffd"),
        ("_-_", ""),
    ],
)
def test_searchable_text_has_no_case_and_one_space_for_each_gap(text: str, expected: str) -> None:
    assert searchable(text) == expected


@given(texts)
def test_searchable_text_is_stable_and_can_be_stored_everywhere(text: str) -> None:
    form = searchable(text)
    assert searchable(form) == form
    assert searchable(f" _{text}- ") == form
    assert "\0" not in form
    form.encode("utf-8")


def test_values_count_as_their_text() -> None:
    assert value_text("Oslo") == "Oslo"
    assert value_text({"città": ["Roma", 3, None]}) == '{"città": ["Roma", 3, null]}'


def test_a_document_names_who_says_it_and_its_index_the_date_in_words() -> None:
    assert document_text("I moved") == "I moved"
    assert document_text("I moved", "Anna") == "Anna: I moved"
    assert indexed_text("I moved", "Anna") == "Anna: I moved"
    assert indexed_text("I moved", "Anna", date(2023, 5, 8)) == "8 May 2023 Anna: I moved"
    assert indexed_text("Umzug", at=date(2023, 3, 8), language="german") == "8 März 2023 Umzug"
    assert indexed_text("x", at=date(2023, 3, 8), language="hindi") == "8 March 2023 x"


def test_an_instant_counts_by_its_date_in_utc() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert indexed_text("x", at=late) == indexed_text("x", at=late.astimezone(UTC)) == "9 May 2023 x"


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("english", "Caroline's MOVING, she moved!", ["carolin", "s", "move", "she", "move"]),
        ("english", "organizations organized skies", ["organiz", "organiz", "sky"]),
        ("german", "Häuser laufen Straße", ["haus", "lauf", "strass"]),
        ("french", "l'avion continuellement", ["l", "avion", "continuel"]),
        ("spanish", "corriendo chicas", ["corr", "chic"]),
        ("russian", "вагоны красивые", ["вагон", "красив"]),
        ("none", "Moving houses", ["moving", "houses"]),
        ("english", "हिन्दी 7.30 café_bar", ["हिन्दी", "7", "30", "café", "bar"]),
        ("english", "❤️ 1️⃣ 👩‍👧🎉", ["❤", "1", "👩", "👧", "🎉"]),
        ("english", "soft\xadhyphen \u200fשלום a\u200bb", ["softhyphen", "שלום", "a", "b"]),
        (
            "english",
            "Women went; who bought teeth for children's wolves",
            [
                "woman",
                "go",
                "who",
                "buy",
                "tooth",
                "for",
                "child",
                "s",
                "wolf",
            ],
        ),
        ("german", "went", ["went"]),
        ("none", "went bought", ["went", "bought"]),
        ("english", "Tom在北京x", ["tom", "在", "北", "京", "在北", "北京", "在北京", "x"]),
    ],
)
def test_words_are_stemmed_by_language_and_cut_where_a_script_has_no_spaces(
    language: str, text: str, expected: list[str]
) -> None:
    """A stem that changes here changes in every index: raise ``words.FORM``."""
    assert index_words(text, language) == expected


def test_an_irregular_form_is_found_by_each_other_form() -> None:
    assert question_words("When did Ben go, and what was sold?", "english") == ["ben", "go", "sell"]
    assert {"go", "sell"} <= {*index_words("Ben has gone and sells boats", "english")}


@pytest.mark.parametrize("language", IRREGULAR)
def test_each_irregular_form_is_listed_once_and_no_stemmer_is_enough_for_it(language: str) -> None:
    forms = IRREGULAR[language].replace(";", " ").split()
    stems = [words._regular_stem(language, form) for form in forms]
    assert len(set(stems)) == len(forms)


def test_stop_words_stay_in_the_index_and_are_left_out_of_questions() -> None:
    assert index_words("what did she do", "english") == ["what", "did", "she", "do"]
    assert question_words("What did she do about the Boats on the boat?", "english") == ["boat"]
    assert question_words("Who are you?", "english") == ["who", "are", "you"]
    assert question_pieces("Did Anna's BOATS sink?", "english") == [
        Piece("Anna", ("anna",)),
        Piece("BOATS", ("boat",)),
        Piece("sink", ("sink",)),
    ]
    assert [piece.text for piece in question_pieces("Who are you?", "english")] == ["Who", "are", "you"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [("猫", ["猫"]), ("北京", ["北京"]), ("北京大学", ["北京", "京大", "大学", "北京大", "京大学"])],
)
def test_a_question_without_spaces_asks_for_pieces_that_documents_have(question: str, expected: list[str]) -> None:
    assert question_words(question, "english") == expected
    assert set(expected) <= set(index_words(f"我在{question}里", "english"))


@given(texts, texts, languages)
def test_what_is_asked_in_the_words_of_a_document_is_in_it(text: str, around: str, language: str) -> None:
    found = index_words(f"{around} {text} {around}", language)
    assert set(question_words(text, language)) <= set(found)


def test_of_a_question_as_long_as_a_document_the_first_words_count() -> None:
    numbers = [str(number) for number in range(2 * words.LONGEST_QUESTION)]
    text = " the ".join(numbers)
    assert question_words(text, "english") == numbers[: words.LONGEST_QUESTION]
    assert [piece.text for piece in question_pieces(text, "english")] == numbers[: words.LONGEST_QUESTION]
    assert len(question_words("".join(map(chr, range(0x4E00, 0x5000))), "english")) == words.LONGEST_QUESTION


@given(texts, languages)
def test_a_word_is_made_of_letters_digits_marks_or_one_symbol(text: str, language: str) -> None:
    asked = [word for piece in question_pieces(text, language) for word in piece.words]
    for word in [*index_words(text, language), *question_words(text, language), *asked]:
        assert 0 < len(word) <= words.LONGEST_WORD + 8
        categories = {unicodedata.category(each) for each in word}
        assert categories == {"So"} or {each[0] for each in categories} <= set("LNM"), word


LARGE = {
    "ascii": "going home " * 90_000,
    "one word": "x" * 1_000_000,
    "marks": "a" + "\u0301" * 250_000 + "\u0323" * 250_000,
    "gaps": "_ " * 500_000,
    "chinese": "我在北京大学" * 50_000,
    "surrogates": "\ud800" * 1_000_000,
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_text_takes_seconds_at_most(kind: str) -> None:
    began = process_time()
    searchable(LARGE[kind])
    index_words(LARGE[kind], "english")
    question_words(LARGE[kind], "english")
    assert process_time() - began < 10  # with time that grows with the square of the text it would be hours


def test_threads_may_stem_at_once() -> None:
    texts = [f"{stem}{ending}" for stem in map(str, range(300)) for ending in ("ing", "ations")]
    alone = [words._regular_stem("english", text) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda text: words._regular_stem("english", text), texts)) == alone


_ENDINGS = ["", "s", "sses", "ied", "ed", "eed", "ing", "ingly", "y", "fulli", "ogist", "alism", "tional", "ative"]
_ENDINGS += ["ation", "izer", "ator", "iveness", "biliti", "ement", "ant", "ic", "ible", "ion", "sion", "e", "l", "ll"]
_ENDINGS += ["us", "ss", "ousness", "enci", "ogi", "eli", "ful", "ical", "ey", "yy"]


@given(st.text("abcdeghilmnoprstuvyzé0", max_size=7), st.lists(st.sampled_from(_ENDINGS), max_size=3))
@example("past", ["ing"])
@example("sk", ["ies"])
@example("a", ["yy"])
def test_a_word_without_the_endings_of_english_is_its_own_stem(beginning: str, endings: list[str]) -> None:
    """If this fails with a new version of the stemmer, it has rules for other endings."""
    word = beginning + "".join(endings)
    assert words._CHANGED_IN_ENGLISH.search(word) or words._regular_stem("english", word) == word


@given(texts, languages)
@example("x" * 100 + " " + "\u00df" * 100, "english")
def test_words_that_are_kept_are_those_that_are_made(text: str, language: str) -> None:
    words._stems(language).clear()
    first = index_words(text, language)
    assert index_words(text, language) == first
    assert max(map(len, words._stems(language)), default=0) <= words.LONGEST_WORD


def test_every_language_has_its_stemmer_and_every_list_its_language() -> None:
    assert {"porter", "dutch_porter"}.isdisjoint(STEMMED)
    for language in STEMMED:
        assert index_words("abc", language)
        assert hasattr(import_module(f"snowballstemmer.{language}_stemmer"), f"{language.capitalize()}Stemmer")
    assert set(import_module("snowballstemmer").algorithms()) >= STEMMED
    assert set(STOP_WORDS) | set(MONTHS) | set(IRREGULAR) <= STEMMED
    for language in STOP_WORDS:
        assert all(list(words._parts(each)) == [each] for each in stop_words(language)), language


@pytest.mark.parametrize("value", ["klingon", "English", "", None, 3, ["english"]])
def test_an_unknown_language_is_refused_with_the_list_of_those_there_are(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"language must be 'none' or one of arabic, .*, yiddish, not "):
        checked_language(value)
    assert checked_language("english") == "english"
