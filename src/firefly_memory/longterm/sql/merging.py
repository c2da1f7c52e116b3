"""Two people become one, in one transaction."""

from __future__ import annotations

from datetime import datetime

from firefly_memory.databases.sql.operation import REPEAT, operation
from firefly_memory.databases.sql.session import Session
from firefly_memory.longterm.places import person_place
from firefly_memory.longterm.rows import FactRow, Merged, UserRow, absorbed, already_one, joined, moved
from firefly_memory.longterm.sql.deleting import delete_with_all
from firefly_memory.longterm.sql.merging_statements import MergedPeopleStatements, MergingStatements
from firefly_memory.longterm.sql.people_statements import GroupChangedError
from firefly_memory.tombstones.sql.refusal import refuse_erased

_AT_ONCE = 200
"""Facts that are moved together."""

_MANY = 2**31 - 1


@operation(on_lost_reply=REPEAT)
def merge_users(session: Session, source: str, target: str, write_id: str, now: datetime) -> Merged:
    """After a lost answer the source stands for the target already, which changes nothing."""
    while True:
        try:
            with session.transaction():
                return _merge(session, source, target, write_id, now)
        except GroupChangedError:
            continue


def _merge(session: Session, source: str, target: str, write_id: str, now: datetime) -> Merged:
    people = session.statements(MergedPeopleStatements)
    first, second = people.root_in(session, source), people.root_in(session, target)
    if first is None:
        return Merged(None, "unknown source")
    if second is None:
        return Merged(None, "unknown target")
    if first.id == second.id:
        return already_one(source, target, second)
    locked = {row.id: row for row in people.lock_group(session, (first.word, second.word))}
    if any(each.id not in locked or locked[each.id].is_merged for each in (first, second)):
        raise GroupChangedError
    from_row, to_row = locked[first.id], locked[second.id]
    _move_facts(session, from_row, to_row, now)
    new_source, new_target = joined(from_row, to_row, write_id, now)
    follow = {"source": from_row.word, "target": to_row.word, "target_id": to_row.id}
    session.execute(people.follow, {**follow, "updated_at": session.dialect.instant(now)})
    for row in (new_source, new_target):  # the source gives up its contacts first
        session.execute(people.replace, {**people.values(row), "this_id": row.id})
    refuse_erased(session, "merge_users", list({*from_row.identities, *to_row.identities}))
    return Merged(new_target)


def _move_facts(session: Session, source: UserRow, target: UserRow, now: datetime) -> None:
    statements = session.statements(MergingStatements)
    both = {"source": source.word, "target": target.word}
    owners = {"old_owner": source.canonical_id, "new_owner": target.canonical_id, "space": source.space}
    locked = session.fetch(statements.locked, {**both, **owners})
    elsewhere = [row[1] for row in locked if row[0] not in (source.word, target.word)]
    place = person_place(target.space, target.canonical_id)
    while rows := [
        statements.row_of(row) for row in session.fetch(statements.some_of_source, {**both, "limit": _AT_ONCE})
    ]:
        keys = session.dialect.texts([row.key for row in rows])
        there = session.fetch(statements.same_keys, {**both, "keys": keys})
        kept = {row.key: row for row in map(statements.row_of, there)}
        for row in rows:
            if row.key in kept:
                _absorb(session, kept[row.key], row, now)
        left = [moved(row, place) for row in rows if row.key not in kept]
        values = [{**statements.values(row), "this_id": row.id} for row in left]
        session.execute_many(statements.replace_words, values)
    session.execute(statements.move_signatures, both)
    if elsewhere:  # those that were written since are not locked in order
        session.execute(statements.give_facts, {**owners, "ids": session.dialect.texts(elsewhere)})
    session.execute(statements.give_versions, owners)


def _absorb(session: Session, target: FactRow, source: FactRow, now: datetime) -> None:
    """The target's fact takes in the source's with the same key."""
    statements = session.statements(MergingStatements)
    values = {"fact_id": source.id, "after": 0, "limit": _MANY}
    versions = [statements.version_of(row) for row in session.fetch(statements.versions_of, values)]
    row, added = absorbed(target, source, [each for each in versions if each.number <= source.versions], now)
    delete_with_all(session, [source.id])
    session.execute(statements.replace, {**statements.values(row), "this_id": row.id})
    session.execute_many(statements.add_version, [statements.version_values(each) for each in added])
