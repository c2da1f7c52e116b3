"""What is done with people in SQL, each operation one plain function over a session of either mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firefly_memory.cursors import Moment
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.operation import REPEAT, REPORT, UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.longterm.log import Met
from firefly_memory.longterm.person_form import damaged_user
from firefly_memory.longterm.rows import UserRow
from firefly_memory.longterm.sql.deleting import delete_with_all
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.longterm.sql.people_statements import GroupChangedError, PeopleStatements
from firefly_memory.longterm.sql.pruning import idle_people
from firefly_memory.tombstones.sql.refusal import unless_erased

_ATTEMPTS = 100  # each that fails is another writer's success


@operation(on_lost_reply=REPEAT)
def get_or_create_user(session: Session, row: UserRow) -> Met:
    """After a lost answer the id tells who made the person."""
    people = session.statements(PeopleStatements)
    for _ in range(_ATTEMPTS):
        root = people.root_in(session, row.word)
        if root is None:
            _make(session, row)
            continue
        if root.word != row.word or root.display_name or not row.display_name:
            return Met(root, is_new=root.id == row.id)
        named = _name(session, row)
        if named is not None:
            return Met(named, is_new=False)
    raise damaged_user(row.canonical_id, LookupError("the person stands for somebody who is not there"))


def _make(session: Session, row: UserRow) -> None:
    """Unless somebody else has made the person meanwhile. A contact that another person has is left out."""

    def make(refusal: Values) -> bool:
        people = session.statements(PeopleStatements)
        for each in (row, row._replace(telegram_id=None, email=None)):
            with session.writing():
                if session.execute(people.insert, {**people.values(each), **refusal}):
                    return True
        return False

    unless_erased(session, "get_or_create_user", row.identities, make)


def _name(session: Session, row: UserRow) -> UserRow | None:
    """``None`` if the person has a name, or stands for somebody else, by now."""

    def name(refusal: Values) -> UserRow | None:
        people = session.statements(PeopleStatements)
        with session.writing():
            rows = session.fetch(people.add_name, {**people.values(row), **refusal})
        return people.row_of(rows[0]) if rows else None

    return unless_erased(session, "get_or_create_user", row.identities, name)


def restore_unless_restored(session: Session, row: UserRow) -> bool:
    """:func:`restore_user` after a lost answer. Looks last, as the first attempt may still be under way."""
    return restore_user(session, row) or row in read_users(session, [row.id])


@operation(on_lost_reply=restore_unless_restored)
def restore_user(session: Session, row: UserRow) -> bool:
    def restore(refusal: Values) -> bool:
        people = session.statements(PeopleStatements)
        with session.writing():
            return session.execute(people.insert, {**people.values(row), **refusal}) == 1

    return unless_erased(session, "restore_user", row.identities, restore)


@reads
def find_user(session: Session, word: str) -> UserRow | None:
    found = _people(session, session.statements(PeopleStatements).with_word, {"word": word})
    return found[0] if found else None


@reads
def find_root(session: Session, word: str) -> UserRow | None:
    return session.statements(PeopleStatements).root_in(session, word)


def count_unless_counted(session: Session, word: str, write_id: str, now: datetime) -> UserRow | None:
    """:func:`count_conversation` after a lost answer. If somebody else has written the person since, nobody knows."""
    root = find_root(session, word)
    if root is not None and root.written_by != write_id and root.updated_at > now:
        raise UndecidedError
    return count_conversation(session, word, write_id, now)


@operation(on_lost_reply=count_unless_counted)
def count_conversation(session: Session, word: str, write_id: str, now: datetime) -> UserRow | None:
    people, moment = session.statements(PeopleStatements), session.dialect.instant(now)
    values = {"word": word, "written_by": write_id, "last_conversation_at": moment, "updated_at": moment}
    while True:
        with session.writing():
            rows = session.fetch(people.count_conversation, values)
        if rows:
            return people.row_of(rows[0])
        root = people.root_in(session, word)
        if root is None or root.written_by == write_id:
            return root


@reads
def list_users(session: Session, space: str, limit: int, after: Moment | None) -> list[UserRow]:
    people, values = session.statements(PeopleStatements), {"space": space, "limit": limit}
    if after is None:
        return _people(session, people.in_order, values)
    return _people(
        session, people.in_order_after, {**values, "at": session.dialect.instant(after.at), "after": after.name}
    )


@reads
def read_page_of_users(session: Session, limit: int, after: str) -> list[UserRow]:
    return _people(session, session.statements(PeopleStatements).page, {"limit": limit, "after": after})


@reads
def read_users(session: Session, ids: Sequence[str]) -> list[UserRow]:
    return _people(session, session.statements(PeopleStatements).these, {"ids": session.dialect.texts(ids)})


@reads
def read_same_people(session: Session, canonical_ids: Sequence[str]) -> list[UserRow]:
    values = {"ids": session.dialect.texts(canonical_ids)}
    return _people(session, session.statements(PeopleStatements).same_people, values)


def _people(session: Session, statement: Statement, values: Values) -> list[UserRow]:
    people = session.statements(PeopleStatements)
    return [people.row_of(row) for row in session.fetch(statement, values)]


@reads
def count_users(session: Session) -> int:
    return int(session.fetch(session.statements(PeopleStatements).count, {})[0][0])


@operation(on_lost_reply=REPORT)
def delete_users(session: Session, ids: Sequence[str], idle_since: datetime | None = None) -> int:
    while True:
        try:
            with session.transaction():
                return _delete(session, ids, idle_since)
        except GroupChangedError:
            continue


def _delete(session: Session, ids: Sequence[str], idle_since: datetime | None) -> int:
    people, texts = session.statements(PeopleStatements), session.dialect.texts
    named: Sequence[UserRow] = read_users(session, ids)
    if idle_since is not None:
        named = idle_people(session, named, idle_since)
    rows = people.lock_group(session, [row.word for row in named])
    words = texts([row.word for row in rows])
    facts = session.fetch(session.statements(ListStatements).ids, {"words": words})
    delete_with_all(session, [row[0] for row in facts])
    session.execute(people.delete, {"ids": texts([row.id for row in rows])})
    return len({row.id for row in named} & {row.id for row in rows})
