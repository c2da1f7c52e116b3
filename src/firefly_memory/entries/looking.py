"""Entries, and the facts of working memory, as people look at them.

A fact is an entry in a namespace that begins with ``working:``. Such entries are listed as facts, by scope and key, and
not among the entries: so each of them is counted once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol

from firefly_memory import clock
from firefly_memory.codec import Form
from firefly_memory.cursors import as_token
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.record import Position, ReadInstant, to_entries
from firefly_memory.entries.record import Row as StoredRow
from firefly_memory.entries.scopes import NAMESPACE
from firefly_memory.errors import InvalidEntryError, NotSupportedError
from firefly_memory.identifiers import original_name, stored_name, stored_namespace, stored_text
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Size, Type, Where
from firefly_memory.protocols import Capability, StoreView

_PAGE = 500

_PAST_FACTS = "working;"
"""The first name after all that begin with ``working:``: the semicolon comes after the colon."""

_LAST_FACTS = f"{NAMESPACE}\U0010ffff"


class Range(NamedTuple):
    """Namespaces from ``first`` on and before ``beyond``; ``None``: to the last."""

    first: str
    beyond: str | None

    def has(self, namespace: str) -> bool:
        return namespace >= self.first and (self.beyond is None or namespace < self.beyond)


class Named(NamedTuple):
    """An entry, and the namespace that it is in."""

    namespace: str
    entry: MemoryEntry


class DirectEntries(Protocol):
    """What a database reads of all namespaces by its indexes. Names are in their stored form, rows as they are kept."""

    form: Form
    read_instant: ReadInstant

    async def across(
        self, names: Range, after: tuple[str, Position] | None, limit: int, now: datetime
    ) -> Sequence[StoredRow]:
        """The first ``limit`` live entries of these namespaces after a place, by namespace, then oldest first."""

    async def of_key(
        self, namespace: str, key: str, after: Position | None, limit: int, now: datetime
    ) -> Sequence[StoredRow]:
        """The first ``limit`` live entries of a namespace with this key, oldest first."""

    async def one(self, namespace: str, entry_id: str, now: datetime) -> Sequence[StoredRow]:
        """A live entry, or nothing."""

    async def count_across(self, names: Range, now: datetime) -> int:
        """How many live entries these namespaces have."""


class EntryReader:
    """All entries that are no facts, in any store."""

    ranges: ClassVar[tuple[Range, ...]] = (Range("", NAMESPACE), Range(_PAST_FACTS, None))
    prefix: ClassVar[str] = ""
    to_name: ClassVar[str] = "namespace"
    """The field without which a store cannot list that cannot list its namespaces."""

    def __init__(self, view: StoreView, direct: DirectEntries | None) -> None:
        self._view = view
        self._direct = direct

    async def page(self, query: Query) -> Sequence[Placed]:
        namespace = self.namespace_of(query.where)
        if namespace is None:
            found = await self._across(query)
        elif self._direct is not None and "key" in query.where:
            key = stored_name("key", query.where["key"])
            place, now = _place(query), clock.now()
            rows = await self._direct.of_key(stored_namespace(namespace), key, place, query.limit, now)
            found = self._named(rows)
        else:
            found = await self._of_namespace(namespace, query)
        return [Placed((name, entry.created_at, entry.entry_id), self.row(name, entry)) for name, entry in found]

    async def get(self, row_id: RowId) -> Row | None:
        namespace, entry_id = row_id
        found = await self._one(namespace, entry_id) if self.is_mine(namespace) else None
        return None if found is None else self.row(*found)

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        by_namespace: dict[str, list[str]] = {}
        for namespace, entry_id in row_ids:
            if self.is_mine(namespace):
                by_namespace.setdefault(namespace, []).append(entry_id)
        return sum([await self._view.delete_many(namespace, ids) for namespace, ids in by_namespace.items()])

    async def size(self, where: Where) -> Size:
        namespace = self.namespace_of(where)
        if namespace is not None:
            return Size(await self._view.count(namespace))
        if self._direct is not None:
            now = clock.now()
            return Size(sum([await self._direct.count_across(names, now) for names in self.ranges]))
        return Size(sum([await self._view.count(each) async for each in self._namespaces("")]))

    def namespace_of(self, where: Where) -> str | None:
        """The namespace that all rows are to be of."""
        namespace: str | None = where.get("namespace")
        if namespace is not None and not self.is_mine(namespace):
            raise InvalidEntryError("namespace", f"begins with {NAMESPACE!r}; list working-facts, by their scope")
        return namespace

    def row(self, namespace: str, entry: MemoryEntry) -> Row:
        return {"namespace": namespace, **_as_json(entry)}

    def is_mine(self, namespace: str) -> bool:
        stored = stored_namespace(namespace)
        return any(names.has(stored) for names in self.ranges)

    async def _of_namespace(self, namespace: str, query: Query) -> Sequence[Named]:
        token = None if query.after is None else as_token(query.after[1], query.after[2])
        if "key" in query.where:
            return await self._of_key_by_walking(namespace, query, token)
        page = await self._view.load_page(namespace, query.limit, token)
        return [Named(namespace, entry) for entry in page]

    async def _of_key_by_walking(self, namespace: str, query: Query, token: str | None) -> Sequence[Named]:
        found: list[Named] = []
        async with aclosing(self._walk(namespace, token)) as entries:
            async for entry in entries:
                if entry.key == query.where["key"]:
                    found.append(Named(namespace, entry))
                    if len(found) == query.limit:
                        break
        return found

    async def _walk(self, namespace: str, token: str | None = None) -> AsyncGenerator[MemoryEntry, None]:
        """All entries of a namespace, for stores without indexes."""
        while True:
            page = await self._view.load_page(namespace, _PAGE, token)
            for entry in page:
                yield entry
            if page.next is None:
                return
            token = page.next

    async def _across(self, query: Query) -> Sequence[Named]:
        if self._direct is None:
            return await self._across_by_walking(query)
        rows: list[StoredRow] = []
        place, now = _place(query), clock.now()
        after = None if place is None or query.after is None else (stored_text(query.after[0]), place)
        for names in self.ranges:
            wanted = query.limit - len(rows)
            if wanted and (after is None or names.beyond is None or after[0] < names.beyond):
                rows += await self._direct.across(names, after, wanted, now)
        return self._named(rows)

    async def _across_by_walking(self, query: Query) -> Sequence[Named]:
        """One namespace after the other, from the one in which the last page ended."""
        start = "" if query.after is None else query.after[0]
        found = [*await self._of_namespace(start, query)] if start and self.is_mine(start) else []
        async with aclosing(self._namespaces(start)) as namespaces:
            async for namespace in namespaces:
                wanted = query.limit - len(found)
                if wanted == 0:
                    break
                found += [Named(namespace, entry) for entry in await self._view.load_page(namespace, wanted)]
        return found

    async def _namespaces(self, after: str) -> AsyncGenerator[str, None]:
        """All namespaces of the reader after one, in order."""
        if Capability.LISTING not in self._view.capabilities:
            raise NotSupportedError(f"this store cannot list its namespaces; name one {self.to_name}, and see its rows")
        start: str | None = after or None
        while page := await self._view.namespaces(self.prefix, _PAGE, start):
            for namespace in page:
                if self.is_mine(namespace):
                    yield namespace
            start = page[-1] if self.is_mine(page[-1]) else _LAST_FACTS

    async def _one(self, namespace: str, entry_id: str) -> Named | None:
        if self._direct is not None:
            stored = stored_namespace(namespace), stored_name("entry_id", entry_id)
            return next(iter(self._named(await self._direct.one(*stored, clock.now()))), None)
        async with aclosing(self._walk(namespace)) as entries:
            async for entry in entries:
                if entry.entry_id == entry_id:
                    return Named(namespace, entry)
        return None

    def _named(self, rows: Iterable[StoredRow]) -> list[Named]:
        assert self._direct is not None
        rows = list(rows)
        entries = to_entries(self._direct.form, self._direct.read_instant, rows, "list")
        return [Named(original_name(row[1]), entry) for row, entry in zip(rows, entries, strict=True)]


class FactReader(EntryReader):
    """The facts of working memory, by scope and key."""

    ranges = (Range(NAMESPACE, _PAST_FACTS),)
    prefix = NAMESPACE
    to_name = "scope"

    async def get(self, row_id: RowId) -> Row | None:
        scope, key = row_id
        entry = await self._fact(f"{NAMESPACE}{scope}", key)
        return None if entry is None else self.row(f"{NAMESPACE}{scope}", entry)

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        deleted = 0
        for scope, key in dict.fromkeys(row_ids):
            namespace = f"{NAMESPACE}{scope}"
            entry = await self._fact(namespace, key)
            if entry is not None:
                deleted += await self._view.delete_many(namespace, [entry.entry_id])
        return deleted

    async def _fact(self, namespace: str, key: str) -> MemoryEntry | None:
        """An entry without a key, which somebody saved among the facts, is listed with them and is none of them."""
        return await self._view.load_by_key(namespace, key) if key else None

    def namespace_of(self, where: Where) -> str | None:
        scope: str | None = where.get("scope")
        return None if scope is None else f"{NAMESPACE}{scope}"

    def row(self, namespace: str, entry: MemoryEntry) -> Row:
        fields = _as_json(entry)
        fact = {"scope": namespace.removeprefix(NAMESPACE), "key": fields["key"], "value": fields["content"]}
        return {**fact, **{name: fields[name] for name in _OF_FACTS}}


_OF_FACTS = ("metadata", "created_at", "expires_at", "importance")


def _place(query: Query) -> Position | None:
    return None if query.after is None else Position(query.after[1], stored_text(query.after[2]))


def _as_json(entry: MemoryEntry) -> Row:
    return {
        "entry_id": entry.entry_id,
        "scope": entry.scope.value,
        "key": entry.key,
        "content": entry.content,
        "metadata": entry.metadata,
        "created_at": entry.created_at.isoformat(),
        "expires_at": None if entry.expires_at is None else entry.expires_at.isoformat(),
        "importance": entry.importance,
    }


_BY_NAMESPACE = {"namespace": (str, datetime, str)}

_DIRECT = {
    "sql": "firefly_memory.entries.sql.looking:SQLDirectEntries",
    "mongodb": "firefly_memory.entries.mongodb.looking:MongoDirectEntries",
}

_ALIKE = (
    Field("metadata", Type.JSON, in_table=False),
    Field("created_at", Type.INSTANT),
    Field("expires_at", Type.INSTANT, in_table=False),
    Field("importance", Type.NUMBER, in_table=False),
)

ENTRIES = Resource(
    kind="entries",
    title="entries of all namespaces, but for the facts of working memory",
    fields=(
        Field("namespace"),
        Field("entry_id"),
        Field("scope", in_table=False),
        Field("key"),
        Field("content", Type.JSON),
        *_ALIKE,
    ),
    identity=("namespace", "entry_id"),
    orders=_BY_NAMESPACE,
    reader="firefly_memory.entries.looking:EntryReader",
    direct=_DIRECT,
    indexed=(("namespace", "key"), ("namespace",)),
    counted=((), ("namespace",)),
)

WORKING_FACTS = Resource(
    kind="working-facts",
    title="facts of working memory",
    fields=(Field("scope"), Field("key"), Field("value", Type.JSON), *_ALIKE),
    identity=("scope", "key"),
    orders={"scope": (str, datetime, str)},
    reader="firefly_memory.entries.looking:FactReader",
    direct=_DIRECT,
    indexed=(("scope",),),
    counted=((), ("scope",)),
)

RESOURCES = (ENTRIES, WORKING_FACTS)
