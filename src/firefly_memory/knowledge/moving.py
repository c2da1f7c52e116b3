"""Chunks on their way from one store to another.

An item has what somebody added. The fields by which a chunk is found are made anew, by the language of the target's
index; its vectors are made by the target, in its own time.
"""

from __future__ import annotations

from typing import Any

from firefly_memory.clock import instant_of
from firefly_memory.codec import DOCUMENT
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import original_name, stored_name
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from firefly_memory.knowledge.rows import (
    checked_position,
    row_of,
    said_at,
    source_text,
    stored_chunk,
    stored_owner,
    stored_space,
)
from firefly_memory.knowledge.types import Chunk
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing, as_sorted_json
from firefly_memory.protocols import StoreView
from firefly_memory.search.index_language import ENGLISH, IndexLanguage
from firefly_memory.search.languages import checked_language
from firefly_memory.search.words import FORM
from firefly_memory.validation import checked_text

_PAGE = 200
_MOST_CHARACTERS = 4_000_000
"""So many of texts, or a little more, are written together."""


async def chunks_of(walk: Walk, _: None) -> Placed:
    """All chunks, by their ids."""
    log, after = walk.view.log(KNOWLEDGE_LOG), ""
    kept = await log.language()
    while page := await log.page(_PAGE, after):
        for row in page:
            yield row.id, _as_json(row, ENGLISH if kept is None else kept.language)
        after = page[-1].id


def _without_language(item: Item) -> str:
    """Two stores may have the same chunk with words of different languages."""
    return as_sorted_json({name: value for name, value in item.items() if name != "language"})


def name_of(item: Item) -> str:
    return f"chunk {item['id']!r} of collection {item['collection']!r}"


CHUNK = Kind(
    name="chunk",
    version=1,
    since="firefly-memory 0.2",
    plural="chunks",
    noun="chunks",
    read=chunks_of,
    selected_by="collection",
    describe=name_of,
    canonical=_without_language,
    # An untrusted archive keeps its owners: without one, a chunk would be found by everybody who searches the
    # collection. No text of a chunk speaks as the system. The writer checks every field, of copies as well.
)

KINDS = (CHUNK,)


class KnowledgeWriter:
    """Writes chunks in batches. A chunk that is there already is left; in a merge, it is replaced."""

    def __init__(self, view: StoreView, writing: Writing) -> None:
        self._log = view.log(KNOWLEDGE_LOG)
        self._replace = writing.replace
        self._language: IndexLanguage | None = None
        self._waiting: dict[str | None, list[ChunkRow]] = {}
        """By owner: those of one person are written together."""
        self._rows = self._characters = 0

    async def take(self, _: str, item: Item, *, there: bool = False) -> None:
        if there:
            return
        if self._language is None:
            kept = await self._log.language()
            # That of the target; if it has no chunks yet, that of the source.
            language = checked_language(item["language"]) if kept is None else kept.language
            self._language = IndexLanguage(language, FORM)
        row = _row_from_json(item, self._language.language)
        self._waiting.setdefault(row.owner, []).append(row)
        self._rows += 1
        self._characters += len(row.text)
        if self._rows >= _PAGE or self._characters >= _MOST_CHARACTERS:
            await self.flush()

    async def flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._rows = self._characters = 0
        for rows in waiting.values():
            if self._replace:
                await self._log.delete([row.id for row in rows])
            # Always with the language: somebody may have made the index again since it was read.
            await self._log.add(rows, {}, self._language)

    async def finish(self) -> None:
        await self.flush()

    async def abandon(self) -> None:
        """Chunks that are written are whole."""


def _as_json(row: ChunkRow, language: str = ENGLISH) -> Item:
    chunk = stored_chunk(row)
    return {
        "id": chunk.id,
        "space": original_name(row.space),
        "collection": chunk.collection,
        "owner": chunk.owner,
        "source": DOCUMENT.encode(chunk.source, "source"),
        "text": chunk.text,
        "said_at": None if chunk.at is None else chunk.at.isoformat(),
        "who": chunk.who,
        "group": chunk.group,
        "position": chunk.position,
        "created_at": chunk.created_at.isoformat(),
        "language": language,
    }


def _row_from_json(item: Item, language: str) -> ChunkRow:
    """The row of an item, each field of which is checked."""
    who, group, at = (_text_or_none(item, name) for name in ("who", "group", "said_at"))
    row = row_of(
        Chunk(item["text"], who, None if at is None else said_at(at), group),
        space=stored_space(item["space"]),
        collection=stored_name("collection", item["collection"]),
        owner=stored_owner(item["owner"]),
        source=source_text(DOCUMENT.decode(item["source"])),
        position=checked_position(item["position"]),
        created_at=instant_of(item["created_at"]),
        language=language,
    )
    if row.id != item["id"]:
        raise InvalidEntryError("id", f"of {name_of(item)} is not made of its contents, which make {row.id!r}")
    return row


def _text_or_none(item: Item, name: str) -> str | None:
    value: Any = item[name]
    return None if value is None else checked_text(name, value)
