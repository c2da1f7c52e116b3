"""Writes that callers of one event loop make together, in one transaction. Where a database has one writer at a time,
they would only wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.sql.operation import REPEAT, REPORT, operation
from firefly_memory.databases.sql.session import Session
from firefly_memory.errors import ConflictError
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FactRow, FactWrite, PersonMovedError, Written
from firefly_memory.longterm.sql import operations
from firefly_memory.longterm.sql.statements import FactStatements
from firefly_memory.search.index_language import IndexLanguage

_Set = tuple[Sequence[FactWrite], IndexLanguage | None]
_Get = tuple[Lookup, str, datetime]

# Nothing is looked for after a lost answer: a group that fails is taken apart, and each write looks for itself.


@operation(on_lost_reply=REPORT)
def set_group(session: Session, given: Sequence[_Set]) -> list[list[Written]]:
    """Store one fact of each caller, all for an index of one language. An error of one of them is an error of all:
    nothing is stored then, and each is tried by itself."""
    writes = [each for (each,), _ in given]
    try:
        written = session.statements(FactStatements).write(session, writes, given[0][1])
    except PersonMovedError as moved:
        raise ConflictError("set_facts: one of the people stands for another one by now") from moved
    return [[each] for each in written]


@operation(on_lost_reply=REPORT)
def get_group(session: Session, given: Sequence[_Get]) -> list[FactRow | None]:
    """Count the accesses of several callers, in their order."""
    with session.transaction():
        return [operations.get_fact(session, *each) for each in given]


_set_looked_for = operation(name="set_facts", on_lost_reply=REPEAT)(operations.set_unless_set)
_get_looked_for = operation(name="get_fact", on_lost_reply=REPEAT)(operations.get_unless_counted)

_SETS = Grouping(
    key=lambda writes, _: f"{writes[0].row.scope} {writes[0].row.key}",
    size=lambda writes, _: len(writes[0].row.value),
    several=set_group,
    after_cancellation=_set_looked_for,
    after_lost_reply=_set_looked_for,
    may_join=lambda writes, language: len(writes) == 1 and language is not None,
    target=lambda _, language: language,
)
_GETS = Grouping(
    key=lambda lookup, key, now: f"{now.timestamp()} {lookup} {key}",
    size=lambda *_: 1,
    several=get_group,
    after_cancellation=_get_looked_for,
    after_lost_reply=_get_looked_for,
)

set_facts = operation(name="set_facts", on_lost_reply=operations.set_unless_set, grouping=_SETS)(
    operations.set_facts.work
)
get_fact = operation(name="get_fact", on_lost_reply=operations.get_unless_counted, grouping=_GETS)(
    operations.get_fact.work
)
