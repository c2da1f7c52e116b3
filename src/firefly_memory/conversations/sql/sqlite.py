"""Appends in SQLite, in a transaction: no query can write two tables."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.conversations.sql.statements import ConversationStatements
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.errors import CorruptDataError
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.sql.refusal import NOT_REFUSED, are_accepted


class SQLiteConversationStatements(ConversationStatements):
    def write_turn(
        self, session: Session, draft: Draft, expected: int | None, owner: str | None, refusal: Values
    ) -> Appended | None:
        with session.transaction():
            return self._write_turn(session, draft, expected, owner, refusal)

    def write_turns(self, session: Session, drafts: Sequence[Draft], refusal: Values) -> list[Appended]:
        with session.transaction():  # nobody else writes until it ends, so one look for all is enough
            if not are_accepted(session, refusal):
                return []
            accepted = {**NOT_REFUSED, **refusal}
            written = [self._write_turn(session, draft, None, None, accepted) for draft in drafts]
        return [appended for appended in written if appended is not None]

    def _write_turn(
        self, session: Session, draft: Draft, expected: int | None, owner: str | None, refusal: Values
    ) -> Appended | None:
        values = {**self.values(*draft), "expected": expected, "owner": owner, **refusal}
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
