"""Looks for a text in a whole database: also in collections that no facet has registered."""

from __future__ import annotations

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.text_forms import forms_of

_AT_ONCE = 200  # documents that are in memory

_RAW = CodecOptions(document_class=RawBSONDocument)


async def documents_with(connection: Connection, text: str) -> list[tuple[str, int]]:
    """Every collection, and how many of its documents have the text: in a key, a value, or binary data."""
    database = connection.entries.database
    # A view has no documents of its own.
    names = await connection.result_of(database.list_collection_names(filter={"type": {"$ne": "view"}}))
    wanted = [each.encode("utf-8", "surrogatepass") for each in forms_of(text)]
    return [(name, await _count(connection, name, wanted)) for name in sorted(names)]


async def _count(connection: Connection, name: str, wanted: list[bytes]) -> int:
    found = 0
    cursor = connection[name].with_options(codec_options=_RAW).find({}, batch_size=_AT_ONCE)
    while page := await connection.result_of(cursor.to_list(_AT_ONCE)):
        found += sum(any(each in document.raw for each in wanted) for document in page)
    return found
