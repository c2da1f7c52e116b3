"""What is done with conversations in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.conversations.log import (
    Appended,
    Head,
    Order,
    StoredTurn,
    checked_head,
    checked_turn,
    identities_of,
)
from firefly_memory.conversations.sql.statements import ConversationStatements
from firefly_memory.databases.sql.errors import is_duplicate
from firefly_memory.databases.sql.operation import REPEAT, UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.entries.record import Row
from firefly_memory.entries.scopes import FACTS_OF_CONVERSATIONS
from firefly_memory.entries.sql.statements import EntryStatements
from firefly_memory.errors import ErasedError, TurnsDroppedError
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.log import conversation_identity, owner_identity
from firefly_memory.tombstones.sql.refusal import refusal_of_several, refuse_erased, unless_erased

_HEAD = len(Head._fields)
_FACTS_OF_CONVERSATIONS = {"first": FACTS_OF_CONVERSATIONS, "beyond": FACTS_OF_CONVERSATIONS[:-1] + chr(ord(":") + 1)}
_ATTEMPTS = 1000  # each that fails is another writer's success


def create_unless_created(session: Session, conversation_id: str, now: datetime, owner: str | None = None) -> bool:
    """:func:`create_conversation` after a lost answer. Looks last: the first attempt may still be under way when the
    second one begins."""
    return create_conversation(session, conversation_id, now, owner) or _was_made(session, conversation_id, now)


def _was_made(session: Session, conversation_id: str, now: datetime) -> bool:
    """Whether this very caller made the conversation: at this moment, to the microsecond."""
    there = conversation_head(session, conversation_id)
    return there is not None and session.dialect.read_instant(there.created_at) == now


@operation(on_lost_reply=create_unless_created)
def create_conversation(session: Session, conversation_id: str, now: datetime, owner: str | None = None) -> bool:
    statements = session.statements(ConversationStatements)
    values = {"conversation_id": conversation_id, "now": session.dialect.instant(now), "owner": owner}

    def create(refusal: Values) -> bool:
        with session.writing():
            return session.execute(statements.create, {**values, **refusal}) == 1

    return unless_erased(session, "new_conversation", identities_of(conversation_id, owner), create)


def append_unless_appended(
    session: Session, conversation_id: str, draft: StoredTurn, expected: int | None, owner: str | None = None
) -> Appended | None:
    """:func:`append_turn` after a lost answer. The first attempt may still be under way, so the second one is made on
    the condition that no turn has come since it was looked for."""
    for _ in range(_ATTEMPTS):
        head = conversation_head(session, conversation_id)
        turns = 0 if head is None else head.turns
        appended = _appended(session, conversation_id, draft)
        if appended is not None:
            return appended
        if expected not in (None, turns) or _is_known(session, conversation_id, draft.idempotency_key):
            return None
        if head is not None and owner not in (None, head.owner):
            return None
        appended = append_turn(session, conversation_id, draft, turns, owner)
        if appended is not None:
            return appended
    raise UndecidedError


def _is_known(session: Session, conversation_id: str, idempotency_key: str | None) -> bool:
    return idempotency_key is not None and find_turn(session, conversation_id, idempotency_key) is not None


def _appended(session: Session, conversation_id: str, draft: StoredTurn) -> Appended | None:
    values = {"conversation_id": conversation_id, "append_id": draft.append_id}
    appended = session.fetch(session.statements(ConversationStatements).appended, values)
    head = conversation_head(session, conversation_id) if appended else None
    if head is None:
        return None
    turns, tokens = appended[0]  # others may have appended since
    return Appended(turns, tokens, head.evicted_tokens, head.evicted_turns)


def _append_turn(
    session: Session, conversation_id: str, draft: StoredTurn, expected: int | None, owner: str | None = None
) -> Appended | None:
    statements = session.statements(ConversationStatements)
    append = partial(statements.write_turn, session, (conversation_id, draft), expected, owner)
    try:
        return unless_erased(session, "append_turn", identities_of(conversation_id, owner), append)
    except Exception as exc:
        if not is_duplicate(exc):
            raise
        return None  # somebody else appended it under its idempotency key at the same moment


_Append = tuple[str, StoredTurn, None, None]


def append_group_unless_appended(session: Session, appends: Sequence[_Append]) -> list[Appended | ErasedError | None]:
    """:func:`append_group` after a lost answer."""
    return [_alone(append_unless_appended, session, each) for each in appends]


@operation(on_lost_reply=append_group_unless_appended, retryable=False)
def append_group(session: Session, appends: Sequence[_Append]) -> list[Appended | ErasedError | None]:
    """Append turns of different callers, which have no conditions and no owners. Durable when it returns.

    ``ErasedError`` if one of them is refused: nothing is written then, and each is tried by itself. Not here: an
    operation may be begun again, and so it must not have written anything before its one transaction.
    """
    statements = session.statements(ConversationStatements)
    refusal = refusal_of_several(session, [conversation_identity(conversation_id) for conversation_id, *_ in appends])
    drafts = [(conversation_id, draft) for conversation_id, draft, *_ in appends]
    written = statements.write_turns(session, drafts, refusal)
    if not written:
        raise ErasedError("append_turn")
    return [*written]


def _alone(way: Callable[..., Appended | None], session: Session, append: _Append) -> Appended | ErasedError | None:
    try:
        return way(session, *append)
    except ErasedError as error:
        return error


_looked_for = operation(name="append_turn", on_lost_reply=REPEAT, retryable=False)(append_unless_appended)

_APPENDS = Grouping(
    key=lambda _, draft, *__: draft.append_id,
    size=lambda _, draft, *__: draft.size,
    several=append_group,
    after_cancellation=_looked_for,
    after_lost_reply=_looked_for,
    may_join=lambda _, draft, expected, owner=None: expected is owner is draft.idempotency_key is None,
)

append_turn = operation(name="append_turn", on_lost_reply=append_unless_appended, retryable=False, grouping=_APPENDS)(
    _append_turn
)


@reads
def conversation_head(session: Session, conversation_id: str) -> Head | None:
    rows = session.fetch(session.statements(ConversationStatements).head, {"conversation_id": conversation_id})
    return checked_head(Head(*rows[0])) if rows else None


@reads
def conversation_window(session: Session, conversation_id: str, budget: int) -> tuple[Head, list[StoredTurn]] | None:
    values = {"conversation_id": conversation_id, "budget": budget}
    rows = session.fetch(session.statements(ConversationStatements).window, values)
    if not rows:
        return None
    turns = [_turn(conversation_id, row[_HEAD:]) for row in rows if row[_HEAD] is not None]
    return checked_head(Head(*rows[-1][:_HEAD])), turns


@reads
def turns_after(session: Session, conversation_id: str, after: int, limit: int | None) -> list[StoredTurn]:
    statements = session.statements(ConversationStatements)
    values = {"conversation_id": conversation_id, "after": after, "limit": limit}
    rows = session.fetch(statements.turns if limit is None else statements.some_turns, values)
    return [_turn(conversation_id, row) for row in rows]


def _turn(conversation_id: str, row: Row) -> StoredTurn:
    return checked_turn(conversation_id, StoredTurn(*row))


@reads
def find_turn(session: Session, conversation_id: str, idempotency_key: str) -> StoredTurn | None:
    values = {"conversation_id": conversation_id, "idempotency_key": idempotency_key}
    rows = session.fetch(session.statements(ConversationStatements).find, values)
    return _turn(conversation_id, rows[0]) if rows else None


@operation(on_lost_reply=REPEAT)  # by the claim's own id
def claim_summary(
    session: Session, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime
) -> bool:
    statements = session.statements(ConversationStatements)
    values = {
        "conversation_id": conversation_id,
        "new_claim": claim,
        "evicted": evicted,
        "now": session.dialect.instant(now),
        "until": session.dialect.instant(until),
        "beyond": session.dialect.instant(until + (until - now)),
    }
    with session.writing():
        return session.execute(statements.claim, values) == 1


@operation(on_lost_reply=REPEAT)  # by the claim's own id
def release_claim(session: Session, conversation_id: str, claim: str) -> None:
    with session.writing():
        session.execute(
            session.statements(ConversationStatements).release, {"conversation_id": conversation_id, "held": claim}
        )


def fork_unless_forked(session: Session, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
    """:func:`fork_conversation` after a lost answer. Looks last, as :func:`create_unless_created` does."""
    forked = _fork_conversation(session, conversation_id, fork_id, turns, now) or _was_made(session, fork_id, now)
    return forked or _not_forked(session, conversation_id, fork_id, turns)


@operation(on_lost_reply=fork_unless_forked, retryable=False)
def fork_conversation(session: Session, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
    forked = _fork_conversation(session, conversation_id, fork_id, turns, now)
    return forked or _not_forked(session, conversation_id, fork_id, turns)


def _fork_conversation(session: Session, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
    fork = partial(_fork, session, conversation_id, fork_id, turns, now)
    return unless_erased(session, "fork_conversation", [conversation_identity(fork_id)], fork)


def _not_forked(session: Session, conversation_id: str, fork_id: str, turns: int | None) -> bool:
    """``False``; or ``TurnsDroppedError`` if that is why there is no fork."""
    source = conversation_head(session, conversation_id)
    if source is not None and source.lacks_turns_for(turns) and conversation_head(session, fork_id) is None:
        raise TurnsDroppedError(original_name(conversation_id), source.dropped_turns)
    return False


def _fork(
    session: Session, conversation_id: str, fork_id: str, turns: int | None, now: datetime, refusal: Values
) -> bool:
    try:
        with session.transaction():
            return _copy_conversation(session, conversation_id, fork_id, turns, now, refusal)
    except _DeletedMeanwhileError:
        return False


def _copy_conversation(
    session: Session, conversation_id: str, fork_id: str, turns: int | None, now: datetime, refusal: Values
) -> bool:
    statements = session.statements(ConversationStatements)
    values = {"conversation_id": conversation_id, "fork_id": fork_id}
    head = {**values, "limit": turns, "now": session.dialect.instant(now), **refusal}
    if not session.execute(statements.fork_head, head):
        return False
    fork = conversation_head(session, fork_id)
    if fork is None or session.execute(statements.fork_turns, values) != fork.turns - fork.dropped_turns:
        raise _DeletedMeanwhileError
    session.execute(statements.fork_flushes, values)
    if fork.owner is not None:
        refuse_erased(session, "fork_conversation", [owner_identity(fork.owner)])
    return True


class _DeletedMeanwhileError(Exception):
    """The conversation that was being copied, or turns of it; what was copied of it is taken back."""


def delete_conversation_unless_deleted(
    session: Session, conversation_id: str, facts: str | None = None, seen: Head | None = None
) -> bool:
    """:func:`delete_conversation` after a lost answer. If there is one, others may have made it since."""
    if seen is not None:
        return _delete_unless_changed(session, conversation_id, facts, seen)
    if conversation_head(session, conversation_id) is not None:
        raise UndecidedError
    if facts is not None and session.fetch(session.statements(EntryStatements).is_used, {"namespace": facts}):
        raise UndecidedError
    return True


def _delete_unless_changed(session: Session, conversation_id: str, facts: str | None, seen: Head) -> bool:
    """Looks last, as :func:`create_unless_created` does."""
    if delete_conversation(session, conversation_id, facts, seen):
        return True
    there = conversation_head(session, conversation_id)
    if there is None:
        return True
    if there.created_at != seen.created_at:
        raise UndecidedError  # deleted, perhaps by this caller, and made again
    return False


@operation(on_lost_reply=delete_conversation_unless_deleted)
def delete_conversation(
    session: Session, conversation_id: str, facts: str | None = None, seen: Head | None = None
) -> bool:
    try:
        with session.transaction():
            _delete(session, conversation_id, facts, seen)
    except _ChangedMeanwhileError:
        return False
    return True


def _delete(session: Session, conversation_id: str, facts: str | None, seen: Head | None) -> None:
    statements = session.statements(ConversationStatements)
    values = {"conversation_id": conversation_id}
    # The head first: whoever appends at this moment has it locked, so that the turn is seen afterwards.
    if seen is None:
        session.execute(statements.delete_head, values)
    else:
        updated_at = session.dialect.instant(session.dialect.read_instant(seen.updated_at))
        as_seen = {**values, "turns": seen.turns, "updated_at": updated_at}
        if session.execute(statements.delete_head_seen, as_seen) == 0:
            raise _ChangedMeanwhileError
    session.execute(statements.delete_turns, values)
    session.execute(statements.delete_flushes, values)
    if facts is not None:
        session.execute(session.statements(EntryStatements).clear, {"namespace": facts})


class _ChangedMeanwhileError(Exception):
    """Somebody has appended to the conversation since it was seen; it stays as it is."""


def delete_all_unless_deleted(session: Session, namespace: str | None) -> None:
    """:func:`delete_all_conversations` after a lost answer. What is there, others may have made since."""
    statements = session.statements(ConversationStatements)
    if session.fetch(statements.page(), {"limit": 1}):
        raise UndecidedError
    entries = session.statements(EntryStatements)
    if session.fetch(entries.is_used_between, _FACTS_OF_CONVERSATIONS):
        raise UndecidedError
    if namespace is not None and session.fetch(entries.is_used, {"namespace": namespace}):
        raise UndecidedError


@operation(on_lost_reply=delete_all_unless_deleted, name="clear_all")
def delete_all_conversations(session: Session, namespace: str | None) -> None:
    statements, entries = session.statements(ConversationStatements), session.statements(EntryStatements)
    with session.transaction():
        session.execute(statements.delete_heads, {})  # first, as above
        session.execute(statements.delete_headless_turns, {})
        session.execute(statements.delete_headless_flushes, {})
        session.execute(entries.clear_between, _FACTS_OF_CONVERSATIONS)
        if namespace is not None:
            session.execute(entries.clear, {"namespace": namespace})


@reads
def conversation_page(
    session: Session,
    limit: int,
    after: tuple[datetime, str] | None,
    owner: str | None = None,
    order: Order = "created",
) -> Sequence[Head]:
    statements = session.statements(ConversationStatements)
    page = statements.page(order, of_owner=owner is not None, goes_on=after is not None)
    values: dict[str, object] = {"limit": limit, "owner": owner}
    if after is not None:
        values |= {"moment": session.dialect.instant(after[0]), "conversation_id": after[1]}
    return [checked_head(Head(*row)) for row in session.fetch(page, values)]
