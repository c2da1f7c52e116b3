"""Facts and people while the answers of the server get lost."""

from __future__ import annotations

from typing import Any

from firefly_memory import EntryStore
from firefly_memory.cursors import Moment
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FactPosition, FactRow, Filters, UserRow
from tests.support.long_term_logs import ENGLISH, at, fact, person, word_of, written
from tests.support.lost_reply_cases import Act, Meeting, Uses
from tests.support.mongodb_chunks import vector


def _fact(uses: Uses, key: str, value: Any, second: int, **options: Any) -> FactRow:
    return fact(key, value, space=uses.name, second=second, **options)


def _word(uses: Uses, name: str) -> str:
    return word_of(f"chat:{name}", uses.name)


def _everybody(uses: Uses) -> Lookup:
    return Lookup(None, None, None, _fact(uses, "k", "", 0).scope)


def _shown(row: FactRow | None) -> Any:
    return row and (row.key, row.value, row.confidence, row.times_confirmed, row.times_contradicted, row.versions)


async def _set(uses: Uses, *rows: FactRow) -> Any:
    writes = [written(row, vector(1)) for row in rows]
    return [(each.outcome, _shown(each.row)) for each in await uses.log_of(LONG_TERM_LOG).facts.set(writes, ENGLISH)]


async def _mine(uses: Uses) -> FactRow:
    row = await uses.log_of(LONG_TERM_LOG).facts.find(_everybody(uses), "k")
    assert row is not None
    return row


async def facts(uses: Uses) -> Any:
    """The facts with what they said before, and the people."""
    log = uses.log_of(LONG_TERM_LOG)
    words = [_everybody(uses).words[0], _word(uses, "Ann"), _word(uses, "Bob")]
    rows = sorted(await log.facts.list(words, Filters(), 99, None), key=lambda row: row.key)
    said = [(row.key, each.number, each.value) for row in rows for each in await log.facts.versions(row.id, 9, 0)]
    people = await log.people.list(uses.name, 99, None)
    named = [(each.canonical_id, each.total_conversations, each.is_merged) for each in people]
    return [*[(_shown(row), row.access_count) for row in rows], *said, *sorted(named)]


async def a_global_fact(uses: Uses) -> None:
    await _set(uses, _fact(uses, "k", "old", 1))


async def two_people(uses: Uses) -> None:
    for number, name in enumerate(("Ann", "Bob")):
        await uses.log_of(LONG_TERM_LOG).people.meet(person(name, space=uses.name))
        mine: dict[str, Any] = {"scope": "user", "scope_id": f"chat:{name}"}
        await _set(uses, _fact(uses, "k", name, 1, **mine), _fact(uses, f"k{number}", name, 1, **mine))


async def set_new_fact(uses: Uses) -> Any:
    return await _set(uses, _fact(uses, "k", "new", 2))


async def set_changed_fact(uses: Uses) -> Any:
    return await _set(uses, _fact(uses, "k", "new", 2))


async def set_same_fact(uses: Uses) -> Any:
    return await _set(uses, _fact(uses, "k", "old", 2))


async def set_several_facts(uses: Uses) -> Any:
    return await _set(uses, _fact(uses, "k", "new", 2), _fact(uses, "other", "new", 2))


async def get_fact(uses: Uses) -> Any:
    row = await uses.log_of(LONG_TERM_LOG).facts.get(_everybody(uses), "k", at(3))
    return _shown(row), row and row.access_count


async def confirm_fact(uses: Uses) -> Any:
    row = await _mine(uses)
    return _shown(await uses.log_of(LONG_TERM_LOG).facts.confirm(uses.name, row.id, f"{uses.name} 1", at(3)))


async def contradict_fact(uses: Uses) -> Any:
    row = await _mine(uses)
    return _shown(await uses.log_of(LONG_TERM_LOG).facts.contradict(uses.name, row.id, f"{uses.name} 1", at(3)))


async def restore_fact(uses: Uses) -> Any:
    return await uses.log_of(LONG_TERM_LOG).facts.restore(_fact(uses, "k", "new", 2), [], ENGLISH)


async def delete_fact(uses: Uses) -> Any:
    return await uses.log_of(LONG_TERM_LOG).facts.delete([(await _mine(uses)).id])


async def meet_person(uses: Uses) -> Any:
    met = await uses.log_of(LONG_TERM_LOG).people.meet(person("Ann", space=uses.name, name="Ann"))
    return met.row.display_name, met.is_new


async def restore_person(uses: Uses) -> Any:
    return await uses.log_of(LONG_TERM_LOG).people.restore(person("Ann", space=uses.name))


async def count_conversation(uses: Uses) -> Any:
    row = await uses.log_of(LONG_TERM_LOG).people.count_conversation(_word(uses, "Ann"), f"{uses.name} 2", at(3))
    return row and row.total_conversations


async def merge_people(uses: Uses) -> Any:
    people = uses.log_of(LONG_TERM_LOG).people
    merged = await people.merge(_word(uses, "Ann"), _word(uses, "Bob"), f"{uses.name} 3", at(3))
    return _name(merged.row), merged.refusal


async def delete_person(uses: Uses) -> Any:
    people = uses.log_of(LONG_TERM_LOG).people
    row = await people.find(_word(uses, "Ann"))
    return row and await people.delete([row.id])


def _name(row: UserRow | None) -> str | None:
    return None if row is None else row.canonical_id


async def set_by_another(uses: Uses) -> None:
    await _set(uses, _fact(uses, "k", "the other's", 9))


async def confirmed_by_another(uses: Uses) -> None:
    await uses.log_of(LONG_TERM_LOG).facts.confirm(uses.name, (await _mine(uses)).id, f"{uses.name} 9", at(9))


async def counted_by_another(uses: Uses) -> None:
    await uses.log_of(LONG_TERM_LOG).people.count_conversation(_word(uses, "Ann"), f"{uses.name} 9", at(9))


async def reading(store: EntryStore, *, is_bound: bool) -> None:
    log, space = store.suspending.log(LONG_TERM_LOG), "read"
    here = fact("k", "blue", space=space)
    lookup = Lookup(here.scope, word_of("chat:Ann", space), None, here.scope)
    await log.facts.set([written(here, vector(1))], ENGLISH)
    await log.facts.set([written(fact("k", "red", space=space, second=1), vector(2))], ENGLISH)
    for name in ("Ann", "Bob", "Cleo"):
        await log.people.meet(person(name, space=space, name=name))
    filters = Filters(("b",), ("world_knowledge",), 0.5)
    position = FactPosition(1.0, at(9), "")
    for words in ([here.scope], [here.scope, *lookup.words]):
        for given in (Filters(), filters):
            for after in (None, position):
                await log.facts.list(words, given, 9, after)
    (row,) = await log.facts.list([here.scope], Filters(), 9, None)
    assert await log.facts.get(lookup, "k", at(5)) is not None
    assert await log.facts.find(lookup, "k") is not None
    assert await log.facts.as_of(lookup, "k", at(0)) is not None
    assert await log.facts.read([row.id])
    assert await log.facts.page(9, "")
    await log.facts.of_owner("chat:Ann", 9, "")
    assert await log.facts.versions(row.id, 9, 0)
    assert await log.facts.page_of_versions(9, ("", 0))
    await log.facts.versions_of_owner("chat:Ann", 9, ("", 0))
    assert await log.facts.count()
    assert await log.facts.count_versions()
    await log.facts.without_vector("e", 9, "")
    await log.facts.add_vectors({row.id: vector(2, "f")})
    await log.facts.rewrite([row])
    await log.facts.delete_versions([(row.id, 1)])
    await log.people.merge(word_of("chat:Ann", space), word_of("chat:Bob", space), "merge", at(6))
    await log.people.count_conversation(word_of("chat:Ann", space), "count", at(7))
    assert await log.people.find(lookup.words[1]) is not None
    assert await log.people.root(lookup.words[1]) is not None
    people = await log.people.list(space, 9, None)
    await log.people.list(space, 9, Moment(people[0].first_seen, people[0].id))
    assert await log.people.page(9, "")
    assert await log.people.read([people[0].id])
    assert len(await log.people.same_people(["chat:Ann"])) >= 2
    assert await log.people.count()
    await log.people.delete([people[-1].id])
    assert await log.facts.damage() == []
    await log.facts.mend()


READINGS = [reading]

ACTS = [
    Act(set_new_fact, facts, doubts="never"),
    Act(set_changed_fact, facts, a_global_fact, doubts="never"),
    Act(set_same_fact, facts, a_global_fact, doubts="never"),
    Act(set_several_facts, facts, a_global_fact, doubts="never"),
    Act(get_fact, facts, a_global_fact, doubts="never"),
    Act(confirm_fact, facts, a_global_fact, doubts="never"),
    Act(contradict_fact, facts, a_global_fact, doubts="never"),
    Act(restore_fact, facts, doubts="never"),
    Act(delete_fact, facts, a_global_fact, doubts="always"),
    Act(meet_person, facts, doubts="never"),
    Act(restore_person, facts, doubts="never"),
    Act(count_conversation, facts, two_people, doubts="never"),
    Act(merge_people, facts, two_people, doubts="never"),
    Act(delete_person, facts, two_people, doubts="always"),
]

_OLD_NEW_OTHER = [
    (("k", '"the other\'s"', 1.0, 3, 0, 2), 0),
    ("k", 1, '"old"'),
    ("k", 2, '"new"'),
]
_CONFIRMED = [(("k", '"old"', 1.0, 3, 0, 0), 0)]

MEETINGS = [
    Meeting(set_changed_fact, set_by_another, facts, _OLD_NEW_OTHER, a_global_fact),
    Meeting(confirm_fact, confirmed_by_another, facts, _CONFIRMED, a_global_fact),
]
