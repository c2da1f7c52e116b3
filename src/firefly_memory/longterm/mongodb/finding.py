"""How a writer finds the facts that are there, and the markers of people who were merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.longterm.mongodb import documents
from firefly_memory.longterm.mongodb.documents import KEYS, MOVED, marker_id
from firefly_memory.longterm.mongodb.user_documents import user_row
from firefly_memory.longterm.person_form import damaged_user
from firefly_memory.longterm.rows import FACTS, USERS, FactRow, PersonMovedError
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb.languages import check_language, with_language


class There(NamedTuple):
    """A fact that is there."""

    row: FactRow
    has_vectors: bool


Found = Mapping[tuple[str, str], There]
"""Facts by place and key."""


def markers_of(rows: Sequence[FactRow]) -> dict[bytes, str]:
    """The ids of the markers that may be in the places of these facts, each with the word of the place."""
    return {marker_id(row.scope): row.scope for row in rows if row.fact_scope == "user"}


async def find_facts(connection: Connection, rows: Sequence[FactRow], session: Any = None) -> Found:
    """The facts with these keys; ``PersonMovedError`` if there is a marker."""
    wanted = _with_these_keys(rows)
    finding = connection[FACTS.table].find(wanted, batch_size=IN_ONE_BATCH, session=session).hint(KEYS)
    return await _found(connection, rows, await connection.all_of(finding), session)


async def find_facts_and_language(
    connection: Connection, rows: Sequence[FactRow], language: IndexLanguage
) -> tuple[Found, bool]:
    """The same in one command, and whether the language of the index is noted; ``LanguageError`` if another one is."""
    steps = [{"$match": _with_these_keys(rows)}, with_language(FACTS)]
    asking = connection[FACTS.table].aggregate(steps, batchSize=IN_ONE_BATCH, hint=dict(KEYS))
    found: list[Document] = []
    notes: list[Document] = []
    for each in await connection.all_of(asking):
        (found if "scope" in each else notes).append(each)
    for note in notes:
        check_language(FACTS, note, language)
    return await _found(connection, rows, found, None), bool(notes)


def _with_these_keys(rows: Sequence[FactRow]) -> Document:
    """A filter for the facts with these keys, and for the markers in their places."""
    markers, keys = list(markers_of(rows)), dict[str, dict[str, None]]()
    for row in rows:
        keys.setdefault(row.scope, {})[row.key] = None
    if len(keys) == 1:  # which the server plans faster
        ((scope, some),) = keys.items()
        return {"scope": {"$in": [scope, *markers]}, "key": {"$in": [*some, *([MOVED] if markers else [])]}}
    places: list[Document] = [{"scope": scope, "key": {"$in": list(some)}} for scope, some in keys.items()]
    return {"$or": [*places, *([{"scope": {"$in": markers}, "key": MOVED}] if markers else [])]}


async def _found(connection: Connection, rows: Sequence[FactRow], found: Sequence[Document], session: Any) -> Found:
    there: dict[tuple[str, str], There] = {}
    for each in found:
        if documents.is_marker(each):
            raise await _moved(connection, markers_of(rows)[each["_id"]], each, session)
        row = documents.fact_row(each)
        there[row.scope, row.key] = There(row, bool(each.get("embedders")))
    return there


async def _moved(connection: Connection, word: str, marker: Document, session: Any) -> Exception:
    wanted = {"word": documents.stands_for(marker)}
    root = await connection.result_of(connection[USERS].find_one(wanted, session=session))
    if root is None:
        return damaged_user(word, LookupError("the one whom they were merged into is not there"))
    return PersonMovedError(word, user_row(root))


async def is_fact_there(connection: Connection, row: FactRow, session: Any = None) -> bool:
    """Whether there is a fact with this id or this key."""
    if await find_facts(connection, [row], session):
        return True
    finding = connection[FACTS.table].find_one({"_id": row.id}, {"_id": 1}, session=session)
    return await connection.result_of(finding) is not None
