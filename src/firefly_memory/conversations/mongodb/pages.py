"""The lists of conversations: each page is one range of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import ASCENDING

from firefly_memory.clock import instant_of
from firefly_memory.codec import DAMAGE
from firefly_memory.conversations.log import Head, Order
from firefly_memory.conversations.mongodb.damage import damaged
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS, MOMENTS, Pipeline, head
from firefly_memory.conversations.mongodb.queries import WITH_NEWEST
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document, text
from firefly_memory.entries.mongodb.documents import document_id
from firefly_memory.entries.record import Position


async def page(
    connection: Connection, limit: int, after: tuple[datetime, str] | None, owner: str | None, order: Order
) -> Sequence[Head]:
    """The first ``limit`` conversations after a place. What somebody has only begun is left out, and others follow."""
    heads: list[Head] = []
    beyond = None if after is None else document_id(Position(*after))
    while len(heads) < limit:
        wanted = limit - len(heads)
        pipeline, index = range_of(wanted, beyond, owner, order), index_of(owner, order)
        found = await connection.all_of(
            connection[CONVERSATIONS].aggregate(pipeline, batchSize=IN_ONE_BATCH, hint=index)
        )
        heads += [listed for document in found if (listed := _listed(document, order)) is not None]
        if len(found) < wanted:
            break
        beyond = found[-1][MOMENTS[order]]
    return heads


def range_of(limit: int, beyond: str | None, owner: str | None, order: Order) -> Pipeline:
    """The limit comes before the look-up: else the server reads on, in batches of megabytes, before it looks up."""
    field = MOMENTS[order]
    mine = {} if owner is None else {"owner": owner}
    older = {field: {"$exists": True} if beyond is None else {"$lt": beyond}}
    newest_first: Pipeline = [{"$match": {**mine, **older}}, {"$sort": {field: -1}}, {"$limit": limit}]
    return [*newest_first, {"$unset": "summary"}, *WITH_NEWEST]


def index_of(owner: str | None, order: Order) -> Document:
    """The fields of the index that has :func:`range_of`."""
    return {**({} if owner is None else {"owner": ASCENDING}), MOMENTS[order]: ASCENDING}


def _listed(document: Mapping[str, Any], order: Order) -> Head | None:
    """A conversation of a page. In the order of their newest turns it has the instant that it is found by."""
    found = head(document)
    if found is None or order == "created":
        return found
    try:
        return found._replace(updated_at=instant_of(text(document, "active").partition("/")[0]))
    except DAMAGE as exc:
        raise damaged(document, exc) from exc
