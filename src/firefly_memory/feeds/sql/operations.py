"""What is done with feeds in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.sql.errors import is_duplicate
from firefly_memory.databases.sql.operation import REPEAT, REPORT, UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.errors import CorruptDataError, ErasedError
from firefly_memory.feeds.log import (
    Feed,
    Sizes,
    StoredMessage,
    Which,
    checked_feed,
    checked_message,
    feed_identity,
    identities_of,
)
from firefly_memory.feeds.sql.statements import Append, FeedStatements
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.log import owner_identity
from firefly_memory.tombstones.sql.refusal import refusal_of_several, unless_erased

_ATTEMPTS = 1000  # each that fails is another writer's success


def _append_messages(session: Session, append: Append, expected: int | None = None) -> int | None:
    write = partial(session.statements(FeedStatements).write_messages, session, append, expected)
    try:
        return unless_erased(session, "append_messages", identities_of(append.location, append.owner), write)
    except Exception as exc:
        if not is_duplicate(exc):
            raise
        problem = "there are messages after the one that it says is the newest"
        raise CorruptDataError("append_messages", f"feed {original_name(append.location)!r}", problem) from exc


def append_unless_appended(session: Session, append: Append) -> int | None:
    """:func:`append_messages` after a lost answer. The first attempt may still be under way, so the second one is made
    on the condition that no message has come since it was looked for."""
    statements = session.statements(FeedStatements)
    looked_for = {"location": append.location, "append_id": append.append_id}
    for _ in range(_ATTEMPTS):
        feed = read_feed(session, append.location)
        found = session.fetch(statements.appended, looked_for)
        if found:
            return int(found[0][0])
        if feed is not None and append.owner not in (None, feed.owner):
            return None
        last = _append_messages(session, append, 0 if feed is None else feed.newest)
        if last is not None:
            return last
    raise UndecidedError


_Arguments = tuple[Append]
"""Of :func:`append_messages`."""


def append_group_unless_appended(session: Session, given: Sequence[_Arguments]) -> list[int | ErasedError | None]:
    """:func:`append_group` after a lost answer."""
    return [_alone(append_unless_appended, session, append) for (append,) in given]


@operation(on_lost_reply=append_group_unless_appended, retryable=False)
def append_group(session: Session, given: Sequence[_Arguments]) -> list[int | ErasedError | None]:
    """Append messages of different callers, all for the same owner. Durable when it returns.

    ``ErasedError`` if one of them is refused: nothing is written then, and each is tried by itself. Not here: an
    operation may be begun again, and so it must not have written anything before its one transaction.
    """
    appends = [append for (append,) in given]
    statements = session.statements(FeedStatements)
    owner = appends[0].owner
    whose = [] if owner is None else [owner_identity(owner)]
    refusal = refusal_of_several(session, [*whose, *[feed_identity(each.location) for each in appends]])
    written = statements.write_several(session, appends, refusal)
    if not written:
        raise ErasedError("append_messages")
    return [*written]


def _alone(way: Callable[..., int | None], session: Session, append: Append) -> int | ErasedError | None:
    try:
        return way(session, append)
    except ErasedError as error:
        return error


_looked_for = operation(name="append_messages", on_lost_reply=REPEAT, retryable=False)(append_unless_appended)

_APPENDS = Grouping(
    key=lambda append: append.append_id,
    size=lambda append: sum(each.size for each in append.messages),
    several=append_group,
    after_cancellation=_looked_for,
    after_lost_reply=_looked_for,
    target=lambda append: (append.owner, append.notify),
)


@operation(on_lost_reply=append_unless_appended, retryable=False, grouping=_APPENDS)
def append_messages(session: Session, append: Append) -> int | None:
    return _append_messages(session, append)


def begin_unless_begun(session: Session, feed: Feed) -> bool:
    """:func:`begin_feed` after a lost answer. Looks last: the first attempt may still be under way when the second one
    begins."""
    if begin_feed(session, feed):
        return True
    there = read_feed(session, feed.location)
    if there is None:
        raise UndecidedError  # deleted meanwhile
    instant = session.dialect.read_instant
    begun = there._replace(created_at=instant(there.created_at), updated_at=instant(there.updated_at))
    return begun == feed._replace(newest=feed.dropped)


@operation(on_lost_reply=begin_unless_begun)
def begin_feed(session: Session, feed: Feed) -> bool:
    instant = session.dialect.instant
    values = feed._replace(created_at=instant(feed.created_at), updated_at=instant(feed.updated_at))._asdict()

    def begin(refusal: Values) -> bool:
        with session.writing():
            return session.execute(session.statements(FeedStatements).begin, {**values, **refusal}) == 1

    return unless_erased(session, "begin_feed", identities_of(feed.location, feed.owner), begin)


@reads
def read_newest(
    session: Session, location: str, which: Which, agent_keys: Sequence[str], limit: int | None
) -> list[StoredMessage]:
    statements = session.statements(FeedStatements)
    values: dict[str, object] = {"location": location, "limit": limit}
    if which == "conversation":
        statement = statements.conversation if limit is None else statements.newest_of_conversation
    elif which == "global":
        statement = statements.globals if limit is None else statements.newest_of_globals
    elif limit is not None and len(agent_keys) == 1:
        statement = statements.newest_of_agent
        values["agent_key"] = agent_keys[0]
    else:
        statement = statements.agents if limit is None else statements.newest_of_agents
        values["agent_keys"] = session.dialect.texts(agent_keys)
    found = _messages(location, session.fetch(statement, values))
    return found if limit is None else found[::-1]


@reads
def read_after(session: Session, location: str, number: int, limit: int | None) -> list[StoredMessage]:
    statements = session.statements(FeedStatements)
    values = {"location": location, "after": number, "limit": limit}
    return _messages(location, session.fetch(statements.all_after if limit is None else statements.some_after, values))


def _messages(location: str, rows: Sequence[Sequence[object]]) -> list[StoredMessage]:
    return [checked_message(location, StoredMessage(*row)) for row in rows]  # type: ignore[arg-type]


@reads
def read_feed(session: Session, location: str) -> Feed | None:
    rows = session.fetch(session.statements(FeedStatements).feed, {"location": location})
    return checked_feed(Feed(*rows[0])) if rows else None


@operation(on_lost_reply=REPORT)
def drop_messages(session: Session, location: str, number: int) -> int:
    statements = session.statements(FeedStatements)
    values = {"location": location, "number": number}
    with session.transaction():
        # The head first: an append or a drop that is under way has it locked.
        if session.execute(statements.drop, values) == 0:
            return 0
        return session.execute(statements.delete_dropped, values)


@reads
def read_first_since(session: Session, location: str, before: datetime) -> int | None:
    values = {"location": location, "before": session.dialect.instant(before)}
    rows = session.fetch(session.statements(FeedStatements).first_since, values)
    return rows[0][0] if rows else None


@operation(on_lost_reply=REPORT)
def delete_feed(session: Session, location: str, newest: int | None = None) -> int | None:
    statements = session.statements(FeedStatements)
    with session.transaction():
        # The head first: an append that is under way has it locked, so its messages are deleted as well.
        if session.execute(statements.delete_head, {"location": location, "seen": newest}) == 0:
            return None
        return session.execute(statements.delete_messages, {"location": location})


@reads
def read_page(session: Session, limit: int, after: str) -> list[Feed]:
    return _feeds(session.fetch(session.statements(FeedStatements).page, {"limit": limit, "after": after}))


@reads
def read_of_owner(session: Session, owner: str, limit: int, after: str) -> list[Feed]:
    values = {"owner": owner, "limit": limit, "after": after}
    return _feeds(session.fetch(session.statements(FeedStatements).of_owner, values))


def _feeds(rows: Sequence[Sequence[object]]) -> list[Feed]:
    return [checked_feed(Feed(*row)) for row in rows]  # type: ignore[arg-type]


@reads
def read_sizes(session: Session) -> Sizes:
    return Sizes(*map(int, session.fetch(session.statements(FeedStatements).sizes, {})[0]))
