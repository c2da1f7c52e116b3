"""How a write in SQL is refused in its own statement, and how its caller learns why nothing was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.errors import CorruptDataError, ErasedError
from firefly_memory.tombstones.log import KEY, Identity, tombstone
from firefly_memory.tombstones.sql.statements import IDENTITIES, TABLE, Key, TombstoneStatements

T = TypeVar("T")

_tombstone = lru_cache(1_024)(tombstone)  # of conversations that grow turn by turn


def unless_erased(session: Session, operation: str, identities: Sequence[Identity], write: Callable[[Values], T]) -> T:
    """What ``write`` returns. It gets the parameters of
    :func:`~firefly_memory.tombstones.sql.statements.not_erased`, for none, one or two.

    If it returns something false, that may be because of a tombstone: then this raises ``ErasedError``. Otherwise it
    costs no other query than the first one for the key.
    """
    while True:
        key = _key(session)
        written = write(_refusal_of(key, identities))
        if written or _is_accepted(session, operation, key, identities):
            return written


def refusal_of_several(session: Session, identities: Sequence[Identity]) -> Values:
    """The parameters of :func:`~firefly_memory.tombstones.sql.statements.none_erased`."""
    key = _key(session)
    ids = [_tombstone(key.secret, each) for each in identities]
    return {"tombstones": session.dialect.texts(ids), "key_made_at": key.made_at}


def are_accepted(session: Session, refusal: Values) -> bool:
    """Whether none of several identities is refused, as far as the key that is known is the right one."""
    return bool(session.fetch(session.statements(TombstoneStatements).accepts, refusal))


NOT_REFUSED: Values = dict.fromkeys(IDENTITIES)
"""In the place of tombstones, where it is known that there are none."""


def _refusal_of(key: Key, identities: Sequence[Identity]) -> Values:
    first, second = (*identities, None, None)[:2]
    return {
        "tombstone": None if first is None else _tombstone(key.secret, first),
        "other_tombstone": None if second is None else _tombstone(key.secret, second),
        "key_made_at": key.made_at,
    }


def refuse_erased(session: Session, operation: str, identities: Sequence[Identity]) -> None:
    """``ErasedError`` if one of these is refused. After a write, in its transaction: a tombstone that is not seen then
    is added by somebody who waits for the end of this transaction, and sees what it wrote."""
    while identities and not _is_accepted(session, operation, _key(session), identities):
        pass


def _is_accepted(session: Session, operation: str, key: Key, identities: Sequence[Identity]) -> bool:
    """Whether none of these is refused. ``False`` if that is not known, because ``key`` is not the database's: another
    one is read then. ``ErasedError`` if one is refused."""
    ids = [KEY, *[_tombstone(key.secret, each) for each in identities]]
    rows = session.fetch(session.statements(TombstoneStatements).refusing, {"tombstones": session.dialect.texts(ids)})
    found = {row[0]: row[1] for row in rows}
    if found.pop(KEY, None) != key.secret:
        read_key(session)
        return False
    if found:
        raise ErasedError(operation)
    return True


def _key(session: Session) -> Key:
    """The key as it was last read. A statement that depends on it says whether it is the database's still."""
    key: Key | None = session.kept.get(KEY)
    return key or read_key(session)


def read_key(session: Session) -> Key:
    """The key of the database as it is now."""
    rows = session.fetch(session.statements(TombstoneStatements).read_key, {})
    if not rows or not isinstance(rows[0][0], str) or not rows[0][0]:
        problem = "its key is missing; put it back from a backup, or erased people are not known any more"
        raise CorruptDataError("reading the key of tombstones", f"table {TABLE}", problem)
    secret, made_at = rows[0]
    key = Key(secret, session.dialect.native_instant(session.dialect.read_instant(made_at)))
    session.kept[KEY] = key
    return key
