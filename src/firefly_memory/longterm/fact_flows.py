"""What ``MemoryService`` does with facts, once for both modes: coroutines over a view of the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from firefly_memory import clock
from firefly_memory.errors import ConfigurationError, InvalidEntryError, UnknownRecordError
from firefly_memory.identifiers import new_entry_id, original_name, stored_name
from firefly_memory.longterm.fact_form import (
    NewFact,
    checked_confidence,
    encoded_value,
    fact_of,
    fact_text,
    value_of,
    version_of,
)
from firefly_memory.longterm.fact_writer import FactWriter
from firefly_memory.longterm.keeping import fact_index_keeper
from firefly_memory.longterm.list_cursors import position_of, position_token
from firefly_memory.longterm.log import LONG_TERM_LOG, FactLog, LongTermLog
from firefly_memory.longterm.options import Options
from firefly_memory.longterm.patterns import beginning_of, fits, pattern_of
from firefly_memory.longterm.places import Lookup, lookup_in, lookup_of, most_specific, place_of
from firefly_memory.longterm.rows import FACTS, FactPosition, FactRow, Filters, Written
from firefly_memory.longterm.types import USUAL_TYPE, FactHit, FactHits, Facts, History, MemoryFact
from firefly_memory.protocols import StoreView
from firefly_memory.search.counting import counts_of
from firefly_memory.search.hits import Explanation, Request
from firefly_memory.search.searching import Searcher, Work
from firefly_memory.validation import checked_text, checked_whole_number, true_or_false

MOST_ROWS = 2**31 - 2
"""Upper bound of limits: ``limit + 1`` must fit a signed 32-bit integer."""

MOST_RANKED = 100
"""So many facts a ranked search gives, and no more."""

_DELETED_AT_ONCE = 1_000

Ids = Mapping[str, Any]
"""``session_id``, ``user_id`` and ``agent_id``, as callers give them."""


class Search(NamedTuple):
    """The arguments of a search beside the question and the ids."""

    request: Request
    types: Iterable[str] | None
    min_confidence: float | None
    after: str | None


class _Seen(NamedTuple):
    """What somebody sees."""

    words: Sequence[str]
    """Those of the places."""
    person: str | None
    """The one of these whose person may stand for another one."""


class FactFlows:
    """The methods of ``MemoryService`` for facts in one mode."""

    def __init__(self, view: StoreView, options: Options, work: Work) -> None:
        self._view = view
        self._options = options
        self._work = work
        self._writer = FactWriter(options, work)

    async def set(
        self,
        key: str,
        value: Any,
        *,
        scope: str | None,
        ids: Ids,
        fact_type: str | None = None,
        usual_type: str = USUAL_TYPE,
        confidence: float | None = None,
        source_episode_id: str | None = None,
        overwrite: bool = True,
    ) -> Written:
        """Store a fact. ``fact_type`` changes that of an old one; without it, ``usual_type`` is that of a new one."""
        kind = usual_type if fact_type is None else fact_type
        written = await self._writer.write(
            self._facts,
            [self._new(key, value, scope, ids, kind, confidence, source_episode_id)],
            overwrite=true_or_false("overwrite", overwrite),
            sets_type=fact_type is not None,
            sets_confidence=confidence is not None,
        )
        return written[0]

    async def set_many(self, values: Mapping[str, Any], fact_type: str, ids: Ids) -> Sequence[Written]:
        """Store facts of one person and type, all of them or none."""
        if not isinstance(values, Mapping):
            raise InvalidEntryError("preferences", f"must be a dict, not {type(values).__name__}")
        new = [self._new(key, value, "user", ids, fact_type, None, None) for key, value in values.items()]
        return await self._writer.write(self._facts, new, sets_confidence=False) if new else []

    async def get(self, key: str, ids: Ids, as_of: datetime | None = None) -> FactRow | None:
        """The fact that a lookup finds; with ``as_of``, as it was then."""
        lookup, name = self._lookup(ids), stored_name("key", key)
        if as_of is None:
            return await self._facts.get(lookup, name, clock.now())
        return await self._facts.as_of(lookup, name, _instant(as_of))

    async def value(self, key: str, ids: Ids, as_of: datetime | None, default: Any) -> Any:
        row = await self.get(key, ids, as_of)
        return default if row is None else value_of(row)

    async def find(self, key: str, scope: str, ids: Ids) -> MemoryFact | None:
        """The record of just one scope."""
        lookup = lookup_in(place_of(self._options.space, scope, ids))
        row = await self._facts.find(lookup, stored_name("key", key))
        return None if row is None else fact_of(row)

    async def read(self, fact_id: str) -> MemoryFact | None:
        row = await self._row(fact_id)
        return None if row is None else fact_of(row)

    async def confirm(self, fact_id: str) -> MemoryFact:
        return await self._changed(self._facts.confirm, fact_id)

    async def contradict(self, fact_id: str) -> MemoryFact:
        return await self._changed(self._facts.contradict, fact_id)

    async def history(self, fact_id: str, limit: int, after: str | None) -> History:
        row = await self._row(fact_id)
        if row is None:
            raise self._unknown(fact_id)
        most, number = checked_limit(limit), 0 if after is None else _number(after)
        rows = await self._facts.versions(row.id, min(most + 1, MOST_ROWS), number) if number < row.versions else []
        versions = [version_of(each) for each in rows if each.number <= row.versions]
        page = tuple(versions[:most])
        return History(items=page, next=str(page[-1].number) if len(versions) > most else None)

    async def listed(self, ids: Ids, limit: int, after: str | None, filters: Filters = Filters()) -> Facts:  # noqa: B008
        """The facts of all places that somebody with these ids sees."""
        rows, token = await self._page(self._seen(ids), filters, limit, after, "list_facts()")
        return Facts(items=tuple(map(fact_of, rows)), next=token)

    async def list_own(
        self,
        word: str,
        limit: int,
        after: str | None,
        filters: Filters = Filters(),  # noqa: B008
        *,
        is_root: bool = True,
    ) -> Facts:
        """The facts of one person, whose word this is. With ``is_root=False`` they may stand for another one."""
        seen = _Seen([word], None if is_root else word)
        rows, token = await self._page(seen, filters, limit, after, "get_user_facts()")
        return Facts(items=tuple(map(fact_of, rows)), next=token)

    async def search(self, ids: Ids, search: Search) -> FactHits:
        request = search.request
        filters = Filters(types=_types(search.types), min_confidence=_confidence(search.min_confidence))
        if request.mode == "fuzzy":
            return await self._containing(self._seen(ids), filters, search)
        if search.after is not None:
            raise InvalidEntryError("after", f"goes with mode='fuzzy'; mode={request.mode!r} gives one list")
        if request.top_k > MOST_RANKED:
            raise InvalidEntryError("limit", f"must be at most {MOST_RANKED} with mode={request.mode!r}")
        log, options = self._facts, self._options
        words = await self._words(ids)
        language = await self._writer.language.read(log)
        counts = counts_of(log.index)
        searcher = Searcher(FACTS, log.index, options.embedder, language, self._work, counts, options.said)
        found = await searcher.found(request, words, filters_of(filters))
        rows = {row.id: row for row in await log.read([each.id for each in found])} if found else {}
        hits = [
            _hit(rows[each.id], each.score, each.ranks, each.explanation) for each in found if each.id in rows
        ]  # others were deleted meanwhile
        return FactHits(items=tuple(hits), next=None)

    async def delete(self, fact_ids: Iterable[str]) -> int:
        """Delete those of these facts that are in the space."""
        if isinstance(fact_ids, str) or not isinstance(fact_ids, Iterable):
            raise InvalidEntryError("ids", "must be several ids, in a list")
        names = list(dict.fromkeys(stored_name("id", each) for each in fact_ids))
        deleted = 0
        for start in range(0, len(names), _DELETED_AT_ONCE):
            rows = await self._facts.read(names[start : start + _DELETED_AT_ONCE])
            mine = [row.id for row in rows if row.space == self._options.space]
            deleted += await self._facts.delete(mine) if mine else 0
        return deleted

    async def embed_missing(self) -> int:
        if self._options.embedder is None:
            raise ConfigurationError(
                "there is no embedder: install firefly-memory[embeddings], or give the service one"
            )
        keeper = fact_index_keeper(self._view, self._work)
        return sum([made async for made in keeper.embed(self._options.embedder)])

    def _new(
        self,
        key: str,
        value: Any,
        scope: str | None,
        ids: Ids,
        fact_type: str,
        confidence: float | None,
        source_episode_id: str | None,
    ) -> NewFact:
        user = ids.get("user_id")
        return NewFact(
            place=place_of(self._options.space, most_specific(ids) if scope is None else scope, ids),
            key=stored_name("key", key),
            value=encoded_value(value),
            fact_type=stored_name("fact_type", fact_type),
            confidence=1.0 if confidence is None else checked_confidence(confidence),
            source_episode_id=(
                None if source_episode_id is None else stored_name("source_episode_id", source_episode_id)
            ),
            owner=None if user is None else stored_name("user_id", user),
            now=clock.now(),
        )

    async def _row(self, fact_id: str) -> FactRow | None:
        rows = await self._facts.read([stored_name("fact_id", fact_id)])
        return next((row for row in rows if row.space == self._options.space), None)

    async def _changed(self, change: Any, fact_id: str) -> MemoryFact:
        name = stored_name("fact_id", fact_id)
        row = await change(self._options.space, name, new_entry_id(), clock.now())
        if row is None:
            raise self._unknown(fact_id)
        return fact_of(row)

    def _unknown(self, fact_id: str) -> UnknownRecordError:
        return UnknownRecordError("fact", fact_id, original_name(self._options.space))

    async def _containing(self, seen: _Seen, filters: Filters, search: Search) -> FactHits:
        wanted = filters._replace(pattern=pattern_of(search.request.question))
        rows, token = await self._page(seen, wanted, search.request.top_k, search.after, "search_facts()")
        explain = search.request.explain
        hits = [
            _hit(row, row.confidence, {"fuzzy": rank}, _explained(row) if explain else None)
            for rank, row in enumerate(rows, start=1)
        ]
        return FactHits(items=tuple(hits), next=token)

    async def _page(
        self, seen: _Seen, filters: Filters, limit: int, after: str | None, call: str
    ) -> tuple[Sequence[FactRow], str | None]:
        most = checked_limit(limit)
        position = None if after is None else position_of(after, call)
        rows = await self._rows(seen, filters, min(most + 1, MOST_ROWS), position)
        return rows[:most], position_token(rows[most - 1].listed_at) if len(rows) > most else None

    async def _rows(self, seen: _Seen, filters: Filters, limit: int, after: FactPosition | None) -> Sequence[FactRow]:
        """What a list has after a position. A database is asked for the beginning of a long pattern."""
        asked = filters._replace(pattern=beginning_of(filters.pattern))
        if asked == filters:
            return await self._facts.list(seen.words, filters, limit, after, seen.person)
        found: list[FactRow] = []
        while len(found) < limit:
            rows = await self._facts.list(seen.words, asked, limit, after, seen.person)
            found += [row for row in rows if fits(filters.pattern, row.searchable)]
            if len(rows) < limit:
                break
            after = rows[-1].listed_at
        return found[:limit]

    def _lookup(self, ids: Ids) -> Lookup:
        return lookup_of(self._options.space, ids)

    def _seen(self, ids: Ids) -> _Seen:
        lookup = self._lookup(ids)
        return _Seen(lookup.words, lookup.user)

    async def _words(self, ids: Ids) -> list[str]:
        """The words of the places that somebody sees, with that of the person for whom they stand."""
        lookup = self._lookup(ids)
        if lookup.user is None:
            return lookup.words
        root = await self._log.people.root(lookup.user)
        return lookup.words if root is None else lookup._replace(user=root.word).words

    @property
    def _log(self) -> LongTermLog:
        return self._view.log(LONG_TERM_LOG)

    @property
    def _facts(self) -> FactLog:
        return self._log.facts


def checked_limit(limit: Any) -> int:
    """A limit that every driver takes."""
    return min(checked_whole_number("limit", limit, 1), MOST_ROWS)


def filters_of(filters: Filters) -> dict[str, Any]:
    """Those that leave something out, by the names that the index knows them by."""
    named = {"fact_type": filters.types, "confidence": filters.min_confidence or None}
    return {name: value for name, value in named.items() if value is not None}


def _types(types: Iterable[str] | None) -> tuple[str, ...] | None:
    if types is None:
        return None
    if isinstance(types, str) or not isinstance(types, Iterable):
        raise InvalidEntryError("fact_types", "must be several types, in a list")
    return tuple(dict.fromkeys(stored_name("fact_types", each) for each in types))


def _confidence(confidence: Any) -> float | None:
    return None if confidence is None else checked_confidence(confidence, "min_confidence")


def _instant(as_of: Any) -> datetime:
    if not isinstance(as_of, datetime) or as_of.tzinfo is None:
        raise InvalidEntryError("as_of", "must be a datetime with a time zone")
    try:
        return as_of.astimezone(UTC)
    except OverflowError as exc:
        raise InvalidEntryError("as_of", "is before the year 1 or after 9999 in UTC") from exc


def _number(after: Any) -> int:
    text = checked_text("after", after)
    if not text.isascii() or not text.isdigit() or len(text) > 18:  # noqa: PLR2004 - what every database takes
        raise InvalidEntryError("after", f"{after!r} is not the next of a page of history()")
    return int(text)


def _hit(row: FactRow, score: float, ranks: Mapping[str, int], explanation: Explanation | None) -> FactHit:
    fact = fact_of(row)
    text = fact_text(fact.key, fact.value)
    return FactHit(id=fact.id, text=text, score=score, ranks=ranks, explanation=explanation, fact=fact)


def _explained(row: FactRow) -> Explanation:
    return Explanation(scores={"fuzzy": row.confidence})
