"""Chunks, as people look at them."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.identifiers import original_name, stored_name, stored_text
from firefly_memory.knowledge.log import CHUNKS, KNOWLEDGE_LOG, ChunkRow
from firefly_memory.knowledge.rows import stored_chunk
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Search, Size, Type, Where
from firefly_memory.protocols import StoreView


class ChunkReader:
    """Chunks by their ids, in every store that keeps them."""

    def __init__(self, view: StoreView, direct: None) -> None:
        self._log = view.log(KNOWLEDGE_LOG)

    async def page(self, query: Query) -> Sequence[Placed]:
        after = "" if query.after is None else stored_text(query.after[0])
        if "owner" in query.where:
            rows = await self._of_owner(stored_name("owner", query.where["owner"]), query.limit, after)
        else:
            rows = await self._log.page(query.limit, after)
        return [Placed((original_name(row.id),), _row(row)) for row in rows]

    async def get(self, row_id: RowId) -> Row | None:
        rows = await self._log.read([stored_name("id", row_id[0])])
        return _row(rows[0]) if rows else None

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        return await self._log.delete([stored_name("id", row_id[0]) for row_id in dict.fromkeys(row_ids)])

    async def size(self, _: Where) -> Size:
        return Size(await self._log.count(None, None))

    async def _of_owner(self, owner: str, limit: int, after: str) -> Sequence[ChunkRow]:
        """A page that is not full counts as the last one: so others take the place of what is deleted meanwhile."""
        rows: list[ChunkRow] = []
        while wanted := limit - len(rows):
            ids = await self._log.of_owner(owner, wanted, after)
            rows += sorted(await self._log.read(ids), key=lambda row: row.id) if ids else []
            if len(ids) < wanted:
                break
            after = ids[-1]
        return rows


def _row(row: ChunkRow) -> Row:
    chunk = stored_chunk(row)
    return {
        "id": original_name(chunk.id),
        "collection": chunk.collection,
        "space": original_name(row.space),
        "who": chunk.who,
        "said_at": None if chunk.at is None else chunk.at.isoformat(),
        "text": chunk.text,
        "group": chunk.group,
        "position": chunk.position,
        "owner": chunk.owner,
        "source": chunk.source,
        "created_at": chunk.created_at.isoformat(),
    }


CHUNK_ROWS = Resource(
    kind=CHUNKS.kind,
    title="chunks of text in the collections of KnowledgeStore",
    fields=(
        Field("id"),
        Field("collection"),
        Field("space", in_table=False),
        Field("who"),
        Field("said_at"),  # a date or an instant, and so text
        Field("text"),
        Field("group", in_table=False),
        Field("position", Type.NUMBER, in_table=False),
        Field("owner", in_table=False),
        Field("source", Type.JSON, in_table=False),
        Field("created_at", Type.INSTANT, in_table=False),
    ),
    identity=("id",),
    orders={"id": (str,)},
    reader="firefly_memory.knowledge.looking:ChunkReader",
    indexed=(("owner",),),
    search=Search(
        "firefly_memory.knowledge.searching:ChunkSearcher",
        needs=("collection",),
        takes=("space", "owner"),
        shows=("who", "source"),
    ),
)

RESOURCES = (CHUNK_ROWS,)
