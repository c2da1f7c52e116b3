"""People in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from pymongo import InsertOne, ReturnDocument
from pymongo.errors import BulkWriteError

from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import Writing, duplicate_in, translated, written
from firefly_memory.databases.mongodb.fields import Document, dated
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.errors import ErasedError, NotSupportedError
from firefly_memory.longterm.log import Met
from firefly_memory.longterm.mongodb import documents, user_documents
from firefly_memory.longterm.mongodb.documents import OF_FACTS
from firefly_memory.longterm.mongodb.merging import merge
from firefly_memory.longterm.mongodb.people_deletion import delete_people
from firefly_memory.longterm.mongodb.user_documents import CANONICAL_ID, IN_ORDER, OF_USERS, STANDS_FOR, WORD, user_row
from firefly_memory.longterm.rows import FACTS, USERS, Merged, UserRow
from firefly_memory.search.mongodb.index import Keys
from firefly_memory.search.mongodb.kept_rows import BY_ID, EVERY
from firefly_memory.tombstones.mongodb.gates import Gate, gate_of, hold_fences

_AFTER = ReturnDocument.AFTER


class MongoPeopleLog:
    """A :class:`~firefly_memory.longterm.log.PeopleLog` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        self._access = access

    async def meet(self, row: UserRow) -> Met:
        with self._writing("get_or_create_user", "person"):
            connection = await self._access.connected("get_or_create_user")
            while True:
                there = await self._with_word(connection, row.word)
                if there is None:
                    gate = await gate_of(connection, OF_USERS, "get_or_create_user", row.identities)
                    made = await self._made(connection, gate, row)
                    if made is not None:
                        return Met(made, is_new=True)
                    continue  # somebody else has made the person
                if there.is_merged:
                    return Met(await self._with_word(connection, there.stands_for) or there, is_new=False)
                if there.display_name or not row.display_name:
                    return Met(there, is_new=False)
                named = {"display_name": row.display_name, **dated("updated_at", row.updated_at)}
                unnamed = {"_id": there.id, "display_name": there.display_name, "stands_for": there.word}
                naming = connection[USERS].find_one_and_update(unnamed, {"$set": named}, return_document=_AFTER)
                found = await connection.result_of(naming)
                if found is not None:
                    return Met(user_row(found), is_new=False)

    async def _made(self, connection: Connection, gate: Gate, row: UserRow) -> UserRow | None:
        """A new person, without the contact that another one has; ``None`` if somebody else has made them."""
        for each in (row, row._replace(telegram_id=None, email=None)):
            try:
                result = await gate.write([user_documents.inserting(each)])
            except ErasedError:
                await connection.result_of(connection[USERS].delete_one({"_id": row.id}))
                raise
            except BulkWriteError as exc:
                refusal = duplicate_in(exc)
                if refusal is None:
                    raise
                if "word" in refusal.get("keyPattern", {}):
                    return None
            else:
                return each if result.upserted_count else None
        return None

    async def restore(self, row: UserRow) -> bool:
        with self._writing("restore_user", "person") as writing:
            connection = await self._access.connected("restore_user")
            gate = await gate_of(connection, OF_USERS, "restore_user", row.identities)
            in_transaction = self._transactions()
            try:
                if in_transaction is not None:
                    await in_transaction(connection, lambda session: self._restore(connection, gate, row, session))
                    return True
                return await connection.finish(self._restore_alone(connection, gate, row, writing))
            except BulkWriteError as exc:
                if duplicate_in(exc) is None:
                    raise
                return False

    async def _restore(self, connection: Connection, gate: Gate, row: UserRow, session: Any) -> None:
        if row.is_merged:
            await hold_fences(connection, OF_FACTS, session)
            marking = connection[FACTS.table].bulk_write([documents.marking(row.word, row.stands_for)], session=session)
            await connection.result_of(marking)
        await gate.write_in_transaction([_insert(row)], session)

    async def _restore_alone(self, connection: Connection, gate: Gate, row: UserRow, writing: Writing) -> bool:
        """The marker comes first: every reader who sees the person finds it."""
        await gate.check()
        there = {"$or": [{"_id": row.id}, {"word": row.word}]}
        if await connection.result_of(connection[USERS].find_one(there, {"_id": 1})) is not None:
            return False
        writing.has_begun = True
        facts = connection[FACTS.table]
        if row.is_merged:
            await connection.result_of(facts.bulk_write([documents.marking(row.word, row.stands_for)]))
        try:
            await gate.write([_insert(row)])
        except (BulkWriteError, ErasedError) as exc:
            if isinstance(exc, ErasedError):
                await connection.result_of(connection[USERS].delete_one({"_id": row.id}))
            await connection.result_of(facts.bulk_write([documents.unmarking([row.word])]))
            raise
        return True

    async def find(self, word: str) -> UserRow | None:
        with self._reading("find_user"):
            return await self._with_word(await self._access.connected("find_user"), word)

    async def root(self, word: str) -> UserRow | None:
        with self._reading("find_user"):
            connection = await self._access.connected("find_user")
            there = await self._with_word(connection, word)
            if there is None or not there.is_merged:
                return there
            return await self._with_word(connection, there.stands_for)

    async def count_conversation(self, word: str, write_id: str, now: datetime) -> UserRow | None:
        changed = {"written_by": write_id, **dated("last_conversation_at", now), **dated("updated_at", now)}
        change = {"$inc": {"total_conversations": 1}, "$set": changed}
        with self._writing("count_conversation"):
            connection = await self._access.connected("count_conversation")
            while True:
                root = {"word": word, "stands_for": word, "written_by": {"$ne": write_id}}
                counting = connection[USERS].find_one_and_update(root, change, return_document=_AFTER, hint=WORD)
                found = await connection.result_of(counting)
                if found is not None:
                    return user_row(found)
                there = await self._with_word(connection, word)
                if there is None or not there.is_merged:  # the same write has counted it
                    return there
                word = there.stands_for

    async def merge(self, source: str, target: str, write_id: str, now: datetime) -> Merged:
        with self._writing("merge_users"):
            connection = await self._access.connected("merge_users")
            in_transaction = self._transactions()
            if in_transaction is None:
                raise NotSupportedError(
                    "merging people needs transactions, which a standalone MongoDB server lacks: "
                    "make it a replica set, one of a single member will do"
                )
            return await in_transaction(
                connection, lambda session: merge(connection, session, source, target, write_id, now)
            )

    async def list(self, space: str, limit: int, after: Moment | None) -> Sequence[UserRow]:
        parts = [{}] if after is None else user_documents.after(after)
        wanted = [{"space": space, "_id": {"$gte": ""}, **each} for each in parts]
        return await self._rows("list_users", wanted[0] if len(wanted) == 1 else {"$or": wanted}, IN_ORDER, limit)

    async def page(self, limit: int, after: str) -> Sequence[UserRow]:
        return await self._rows("page_of_users", {"_id": {"$gt": after}}, BY_ID, limit)

    async def read(self, ids: Sequence[str]) -> Sequence[UserRow]:
        return await self._rows("read_users", {"_id": {"$in": list(ids)}}, BY_ID)

    async def same_people(self, canonical_ids: Sequence[str]) -> Sequence[UserRow]:
        named = await self._rows("same_people", {"canonical_id": {"$in": list(canonical_ids)}}, CANONICAL_ID)
        words = list(dict.fromkeys(row.stands_for for row in named))
        return await self._rows("same_people", {"stands_for": {"$in": words}}, STANDS_FOR)

    async def count(self) -> int:
        with self._reading("count_users"):
            connection = await self._access.connected("count_users")
            return int(await connection.result_of(connection[USERS].count_documents(EVERY, hint=BY_ID)))

    async def delete(self, ids: Sequence[str], idle_since: datetime | None = None) -> int:
        with self._writing("delete_users") as writing:
            connection = await self._access.connected("delete_users")
            in_transaction = self._transactions()
            if in_transaction is not None:
                return await in_transaction(
                    connection, lambda session: delete_people(connection, ids, idle_since, session)
                )
            writing.has_begun = True
            return await connection.finish(delete_people(connection, ids, idle_since, None))

    async def _with_word(self, connection: Connection, word: str) -> UserRow | None:
        found = await connection.result_of(connection[USERS].find_one({"word": word}, hint=WORD))
        return None if found is None else user_row(found)

    async def _rows(self, operation: str, wanted: Document, index: Keys, limit: int | None = None) -> Sequence[UserRow]:
        if limit == 0:  # which is no limit to the server
            return []
        with self._reading(operation):
            connection = await self._access.connected(operation)
            finding = connection[USERS].find(wanted, batch_size=IN_ONE_BATCH).sort(index).hint(index)
            return [user_row(each) for each in await connection.all_of(finding.limit(limit or 0))]

    def _transactions(self) -> InTransaction | None:
        """``None`` on a standalone server."""
        return self._access.in_transaction if self._access.database.has_transactions else None

    def _reading(self, operation: str) -> AbstractContextManager[None]:
        return translated(operation, self._access.database.db_name)

    def _writing(self, operation: str, what: str | None = None) -> AbstractContextManager[Writing]:
        return written(operation, self._access.database.db_name, what)


def _insert(row: UserRow) -> Any:
    return InsertOne(user_documents.user_document(row))
