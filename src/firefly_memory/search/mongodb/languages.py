"""The languages of indexes in MongoDB, noted among the versions, where no name of a collection has a ``$``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymongo import ReturnDocument

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.databases.mongodb.clients import VERSION, Connection
from firefly_memory.databases.mongodb.fields import Document, text, whole
from firefly_memory.search.index import Subject
from firefly_memory.search.index_language import IndexLanguage, another_language


async def read_language(connection: Connection, subject: Subject) -> IndexLanguage | None:
    """What the words of the index are made by; ``None`` before the first row."""
    noted = await connection.result_of(connection[VERSION].find_one(_note(subject)))
    return None if noted is None else _language(noted)


async def agree_on_language(connection: Connection, subject: Subject, language: IndexLanguage, session: Any) -> None:
    """Note the language of the first rows; ``LanguageError`` if another one is noted."""
    versions = connection[VERSION]
    noted = await connection.result_of(versions.find_one(_note(subject), session=session))
    if noted is None:
        unless_there, after = {"$setOnInsert": language._asdict()}, ReturnDocument.AFTER
        noting = versions.find_one_and_update(
            _note(subject), unless_there, upsert=True, return_document=after, session=session
        )
        noted = await connection.result_of(noting)
    check_language(subject, noted, language)


def check_language(subject: Subject, noted: Mapping[str, Any], language: IndexLanguage) -> None:
    """``LanguageError`` if a note names another language."""
    kept = _language(noted)
    if kept != language:
        raise another_language(subject, kept, language)


def with_language(subject: Subject) -> Document:
    """The step of an aggregation that adds the note, if there is one: the only document without a ``scope``."""
    return {"$unionWith": {"coll": VERSION, "pipeline": [{"$match": _note(subject)}]}}


async def set_language(connection: Connection, subject: Subject, language: IndexLanguage) -> None:
    """Note another language."""
    noting = connection[VERSION].update_one(_note(subject), {"$set": language._asdict()}, upsert=True)
    await connection.result_of(noting)


def _note(subject: Subject) -> Document:
    return {"_id": f"${subject.kind}"}


def _language(document: Mapping[str, Any]) -> IndexLanguage:
    try:
        return IndexLanguage(text(document, "language"), whole(document, "form"))
    except DAMAGE as exc:
        where = f"the document {document['_id']!r} of {VERSION}"
        raise damaged("reading the language of the index", where, exc) from exc
