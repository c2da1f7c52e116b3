"""The language of an index: what its words are made by. One for all rows of a kind in a database."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

from firefly_memory.errors import ConfigurationError, ConflictError
from firefly_memory.search.index import Subject
from firefly_memory.search.words import FORM

ENGLISH = "english"
"""The language of an index, unless somebody says otherwise."""

_KEPT_FOR = 60.0
"""Seconds: then a search notices that the index has another language now."""


class IndexLanguage(NamedTuple):
    """What the words of an index are made by."""

    language: str
    form: int
    """:data:`~firefly_memory.search.words.FORM` when they were made."""


class LanguageError(ConflictError):
    """The words of some rows are made by other rules than those of the index."""


def another_language(subject: Subject, kept: IndexLanguage | None, asked: IndexLanguage) -> LanguageError:
    """The error for a writer whose words are made by other rules than those of the index."""
    there, these = (
        "missing" if each is None else f"{each.language} by the rules {each.form}" for each in (kept, asked)
    )
    return LanguageError(f"the words of the index of {subject.kind} are {there}, these are {these}")


class HasLanguage(Protocol):
    """The index of a facet, as far as it knows its language."""

    async def language(self) -> IndexLanguage | None:
        """What the words of the index are made by; ``None`` before the first row."""


class LanguageInUse:
    """The language that a facet makes words by. It is read from the index, and kept for a minute."""

    def __init__(self, subject: Subject, asked: str | None, *, in_transaction: bool) -> None:
        """``asked`` is the language that the caller wants, if any. In somebody's transaction nothing is kept, because
        it may be taken back."""
        self._subject = subject
        self._asked = asked
        self._keeps = not in_transaction
        self._kept: str | None = None
        self._until = 0.0

    async def read(self, index: HasLanguage) -> str:
        """The language; of an index that has no row yet, the one that was asked for."""
        if self._kept is None or time.monotonic() > self._until:
            found = await index.language()
            if found is None:
                return self._asked or ENGLISH
            if found.form != FORM:
                rules = f"by the rules {found.form}, and this version has the rules {FORM}"
                raise ConfigurationError(
                    f"the words of {self._subject.kind} were made {rules}; run `firefly-memory index rebuild`"
                )
            self.keep(found.language)
            return self._checked(found.language)
        return self._checked(self._kept)

    def keep(self, language: str) -> None:
        """This is the language of the index now."""
        if self._keeps:
            self._kept, self._until = language, time.monotonic() + _KEPT_FOR

    def forget(self) -> None:
        """Read it again the next time."""
        self._kept = None

    def _checked(self, kept: str) -> str:
        if self._asked not in (None, kept):
            raise ConfigurationError(
                f"the {self._subject.kind} of this database are {kept}, not {self._asked}: "
                "a database has one language for them, which the first of them decides; "
                "`firefly-memory index rebuild --language` changes it"
            )
        return kept
