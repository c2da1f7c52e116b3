"""The contract of an index: what every backend does for the search over the rows of one facet.

The rows that are searched are those of a facet's own table or collection, which has the :class:`Indexed` fields beside
those of the facet. Vectors and signatures stand in two more of their own. All of them are written by the facet,
together with the row: so they are in step with it.

A *scope* is the word of a scope (:func:`~firefly_memory.search.scopes.scope_word`), and each row is in one. A question
names every scope that it may see. Rows of other scopes are never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Protocol

from firefly_memory.identifiers import stored_or_none
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.filters import Conditions, Filter
from firefly_memory.search.kinds import kinds_of
from firefly_memory.search.searchable import folded, indexed_text, with_single_spaces
from firefly_memory.search.words import index_words, words_of_folded

CANDIDATES = 100
"""So many documents of an engine are ranked, with their neighbours."""

COUNTED = 1_000
"""Up to so many documents are counted for each question. Larger counts are kept for some minutes."""

EXACT = 2_000
"""Up to so many documents of a word are counted, where counting more takes long. Larger counts are estimates."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The documents of one facet that are searched."""

    kind: str
    """Their noun on the command line, such as ``chunks``."""
    table: str
    """Their table or collection. Its key ``id`` is text and unique."""
    expires: str | None = None
    """The column or field that says until when a row is there. A row without a value stays."""
    has_vectors: bool = True
    """Whether they are searched by meaning as well."""
    filters: tuple[Filter, ...] = ()
    """What they can be filtered by beside their scope."""

    @property
    def vectors(self) -> str:
        """The table or collection of their vectors."""
        return f"{self.table}_vectors"

    @property
    def signatures(self) -> str:
        """The table or collection of their signatures."""
        return f"{self.table}_signatures"

    @property
    def words(self) -> str:
        """The full-text table of SQLite."""
        return f"{self.table}_words"


class Indexed(NamedTuple):
    """The fields of a row by which it is found."""

    scope: str
    searchable: str
    """The text in the form of :func:`~firefly_memory.search.searchable.searchable`."""
    words: Sequence[str]
    """The scope, the word of the kinds, and the words of the text with its date and person; in this order, each as
    often as it is there."""
    who: str | None
    """Who said it, in the stored form, as the group is."""
    group_id: str | None
    """Rows of one group in one scope are neighbours."""
    position: int
    """The number in the group."""


class Vector(NamedTuple):
    """The vector of a row, as it is stored."""

    embedder: str
    vector: bytes
    signature: bytes


class Signatures(NamedTuple):
    """The signatures of some scopes, beside the ids of their rows; in any order."""

    ids: Sequence[str]
    signatures: Sequence[bytes]


class Nearest(NamedTuple):
    """What an accelerator gives of some scopes."""

    ids: Sequence[str]
    """The rows whose vectors are nearest."""
    signatures: Sequence[bytes]
    """Those of some other rows, which tell what is common there."""


class SearchIndex(Protocol):
    """The reading half of an index. Each call is one query, where the backend has queries.

    Rows that have expired are neither found nor lent from. Counts, signatures and vectors may have them still.

    ``conditions`` are for filters of the subject. Rows that do not fulfil them are neither found nor lent from, nor are
    their signatures given; they do not count for a limit. Counts and people are those of all rows.
    """

    async def counts(self, scopes: Sequence[str], words: Sequence[str], most: int | None) -> Mapping[str, int]:
        """How many documents of the scopes have each word. A scope is a word of all its documents, so their number is
        asked for in the same way. All counts are exact, but for those of words that are above ``most``: these may be
        estimates, which are no smaller than ``most``."""

    async def best(
        self, scopes: Sequence[str], weights: Mapping[str, int], limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        """The ids of the documents with the largest sums of the weights of the words that they have."""

    async def around(
        self, scopes: Sequence[str], ids: Sequence[str], conditions: Conditions = (), *, words: bool = True
    ) -> Sequence[Candidate]:
        """These documents and their neighbours, each once, in any order. Names are in their original form, and groups
        of different scopes have different names. Without ``words`` they may have their lengths only."""

    async def containing(
        self, scopes: Sequence[str], text: str, limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        """The ids of the newest documents whose searchable form has this text, word for word; newest first, by the date
        of what was said, or else of the writing; equal ones by id."""

    async def people(self, scopes: Sequence[str], limit: int) -> Sequence[str]:
        """Who said the documents of the scopes, each once, in the original form."""

    async def signatures(
        self, scopes: Sequence[str], embedder: str, most: int, conditions: Conditions = ()
    ) -> Signatures | None:
        """The signatures of all documents that have a vector of this embedder; ``None`` if these are more than
        ``most``. With conditions, also if the documents that fulfil them are, with a vector or without."""

    async def vectors(self, embedder: str, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The vectors of these documents that have one."""

    async def has_accelerator(self, embedder: str) -> bool:
        """Whether :meth:`nearest` answers, for vectors of this embedder."""

    async def nearest(
        self, scopes: Sequence[str], embedder: str, vector: bytes, most: int, conditions: Conditions = ()
    ) -> Nearest | None:
        """The documents, up to ``most``, whose vectors are nearest to a vector: nearly all of these. ``None`` without
        an accelerator. The signatures are of any documents of the scopes."""


class WithoutAccelerator:
    """The part of a :class:`SearchIndex` on a backend that has exact search only."""

    async def has_accelerator(self, embedder: str) -> bool:
        return False

    async def nearest(
        self,
        scopes: Sequence[str],
        embedder: str,
        vector: bytes,
        most: int,
        conditions: Conditions = (),
    ) -> Nearest | None:
        return None


def indexed(
    scope: str,
    text: str,
    language: str,
    *,
    who: str | None = None,
    at: date | None = None,
    group_id: str | None = None,
    position: int = 0,
) -> Indexed:
    """What a row is found by."""
    once = folded(text)
    words = words_of_folded(once, language)
    before = index_words(indexed_text("", who, at, language), language)
    every = [scope, *kinds_of(text, words, language), *before, *words]
    return Indexed(scope, with_single_spaces(once), every, stored_or_none(who), stored_or_none(group_id), position)
