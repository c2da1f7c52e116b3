"""What is done with tombstones in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic

from firefly_memory.concurrency.growing_pauses import growing_pauses
from firefly_memory.databases.sql.errors import is_an_answer
from firefly_memory.databases.sql.operation import REPEAT, REPORT, operation, reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.errors import NotSupportedError, StoreTimeoutError
from firefly_memory.tombstones.log import Identity, owner_identity, tombstone
from firefly_memory.tombstones.sql.refusal import read_key
from firefly_memory.tombstones.sql.statements import TombstoneStatements

_IN_A_TRANSACTION = (
    "a person cannot be erased inside a transaction of the application's: erasing waits for the writes of others, and "
    "they would wait for that transaction; call it with the store itself"
)


@operation(on_lost_reply=REPEAT)
def add_tombstones(session: Session, identities: Sequence[Identity], owner: str, now: datetime) -> None:
    if session.timeout is None:
        raise NotSupportedError(_IN_A_TRANSACTION)
    statements, moment = session.statements(TombstoneStatements), session.dialect.instant(now)
    with session.transaction():
        session.execute(statements.touch_key, {})
        secret = read_key(session).secret
        person = tombstone(secret, owner_identity(owner))
        ids = sorted({tombstone(secret, each) for each in identities})
        session.execute_many(statements.add, [{"id": each, "owner": person, "now": moment} for each in ids])


@operation(name="add_tombstones", on_lost_reply=REPEAT)
def wait_for_writers(session: Session) -> None:
    """Returns after the end of all transactions that have written to a guarded table so far.

    PostgreSQL gives a statement its lock on a table before it decides what the statement sees. So a statement that does
    not see a tombstone had its lock before the tombstone was committed, and is found here. Nobody is locked out.
    """
    statements = session.statements(TombstoneStatements)
    under_way = _writers(session)
    deadline = monotonic() + (session.timeout or 0.0)
    pauses = growing_pauses()
    while under_way:
        left = deadline - monotonic()
        if left <= 0:
            reason = "a transaction that has written, and may not have seen who is erased, has not ended in time"
            raise StoreTimeoutError("erase", reason, retryable=True)
        session.fetch(statements.pause, {"seconds": min(next(pauses), left)})
        under_way &= _writers(session)


def _writers(session: Session) -> set[str]:
    statements = session.statements(TombstoneStatements)
    query = statements.writers
    return {row[0] for row in session.fetch(query, statements.guarded)} if query is not None else set()


@reads
def are_refused(session: Session, identities: Sequence[Identity]) -> bool:
    secret = read_key(session).secret
    ids = session.dialect.texts([tombstone(secret, each) for each in identities])
    return bool(session.fetch(session.statements(TombstoneStatements).among, {"tombstones": ids}))


@operation(on_lost_reply=REPORT)
def remove_tombstones(session: Session, owner: str) -> int:
    with session.transaction():
        person = tombstone(read_key(session).secret, owner_identity(owner))
        return session.execute(session.statements(TombstoneStatements).remove, {"owner": person})


@operation(on_lost_reply=REPEAT)
def scrub(session: Session) -> None:
    """SQLite overwrites rows when it deletes them (``PRAGMA secure_delete``). The WAL has them as they were before, and
    is emptied here, unless somebody reads it at this moment. PostgreSQL keeps them in its files until ``VACUUM``, which
    is up to the operator."""
    statement = session.statements(TombstoneStatements).scrub
    if statement is None:
        return
    try:
        session.fetch(statement, {})
    except Exception as exc:
        if not is_an_answer(exc):
            raise
