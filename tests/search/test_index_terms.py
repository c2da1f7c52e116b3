"""Words and scopes as terms of an engine: none is lost or changed, and none of a text is the word of a scope."""

from __future__ import annotations

import sqlite3
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from firefly_memory.search.scopes import scope_word
from firefly_memory.search.words import index_words, question_words
from tests.search.strategies import languages, texts
from tests.support.value_strategies import names

parts = st.lists(names, max_size=3)


@given(parts, parts)
@example(["ab", "c"], ["a", "bc"])
@example(["a"], ["a", ""])
@example(["\ud800"], ["\udfff"])
def test_the_word_of_a_scope_is_that_of_no_other_scope(one: list[str], other: list[str]) -> None:
    assert (scope_word(*one) == scope_word(*other)) == (one == other)


def test_the_word_of_a_scope_stays_as_it_is_in_stored_indexes() -> None:
    assert scope_word("space", "owner") == "_014281202ff49dfe9be85de67e6928f9"


@given(names, languages)
def test_no_text_has_the_word_of_a_scope(owner: str, language: str) -> None:
    word = scope_word("space", owner)
    assert word not in index_words(f"{word} {word}{word} x{word}", language)
    assert word not in question_words(word, language)


@given(texts, languages)
@example("🦩 𞤀𞤣𞤤𞤢𞤥 ꟊ naïve", "english")
def test_the_full_text_index_of_sqlite_keeps_each_word_as_it_is(text: str, language: str) -> None:
    """With the tokenizer ``ascii``. That of Unicode would split words at characters that are newer than itself."""
    words = [*index_words(text, language), scope_word("space", "owner")]
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE VIRTUAL TABLE i USING fts5(words, tokenize=\"ascii tokenchars '_'\")")
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(i, instance)")
        connection.execute("INSERT INTO i VALUES (?)", (" ".join(words),))
        terms = Counter(term for (term,) in connection.execute("SELECT term FROM terms"))
        phrase = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        found = connection.execute("SELECT count(*) FROM i WHERE i MATCH ?", (phrase,)).fetchone()
    connection.close()
    assert terms == Counter(words)
    assert found == (1,)
