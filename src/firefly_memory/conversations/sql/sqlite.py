"""Appends in SQLite, in a transaction: no query can write two tables."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.conversations.sql.statements import ConversationStatements
from firefly_memory.databases.sql.session import Session
from firefly_memory.errors import CorruptDataError
from firefly_memory.identifiers import original_name


class SQLiteConversationStatements(ConversationStatements):
    def write_turn(self, session: Session, draft: Draft, expected: int | None, owner: str | None) -> Appended | None:
        with session.transaction():
            return self._write_turn(session, draft, expected, owner)

    def write_turns(self, session: Session, drafts: Sequence[Draft]) -> list[Appended]:
        with session.transaction():
            written = [self._write_turn(session, draft, None, None) for draft in drafts]
        return [appended for appended in written if appended is not None]

    def _write_turn(self, session: Session, draft: Draft, expected: int | None, owner: str | None) -> Appended | None:
        values = {**self.values(*draft), "expected": expected, "owner": owner}
        rows = session.fetch(self.take_number, values)
        if not rows:
            return None
        appended = Appended(*rows[0])
        if not all(isinstance(each, int) and each >= 0 for each in appended):
            # SQLite counts with anything, and goes on with a float where 64 bits are not enough.
            where = f"conversation {original_name(draft[0])!r}"
            raise CorruptDataError(
                "append_turn", where, "a count or the sum of its tokens is no whole number of 64 bits"
            )
        position = {"turn_id": appended.turns - 1, "tokens_before": appended.tokens - values["tokens"]}
        session.execute(self.insert_turn, {**values, **position})
        return appended
