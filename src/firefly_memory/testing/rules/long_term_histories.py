"""L15, long-term memory: any calls in any order leave what they leave in dicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any, TypeVar

from firefly_memory.errors import InvalidEntryError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.types import FactVersion, MemoryFact, MemoryUser
from firefly_memory.testing.checks import Memory, Subject, check
from firefly_memory.testing.clock import StoppedClock, stopped
from firefly_memory.testing.rules.long_term_services import all_pages, service_in

_PEOPLE = ["web:ann", "web:bob", "web:cid"]
_KEYS = ["k", "K", "l"]
_VALUES = [1, True, "text", None, [], {"a": 1}]
_PREFERENCE = "user_preference"

_CALLS = ["set", "get"], ["set", "confirm", "contradict", "delete", "meet", "merge", "count", "prefer"]
"""Those that are made often, and the others."""
_SELDOM = 0.25

At = tuple[str, str, str]
Ids = dict[str, str]
K = TypeVar("K")


class _Dicts:
    """What a service is: facts by scope, id and key, their versions, and people."""

    def __init__(self) -> None:
        self.facts: dict[At, MemoryFact] = {}
        self.versions: dict[str, list[FactVersion]] = {}
        self.people: dict[str, MemoryUser] = {}
        self.root: dict[str, str] = {}
        """Whom a merged person stands for."""

    def at(self, scope: str, ids: Ids, key: str) -> At:
        name = "" if scope == "global" else ids[f"{scope}_id"]
        return scope, self.root.get(name, name) if scope == "user" else name, key

    def set(self, new: MemoryFact, at: At, options: dict[str, Any], now: datetime) -> None:
        """``new`` is what the service has returned: a new fact is believed."""
        old = self.facts.get(at)
        if old is None:
            self.facts[at] = new
            self.versions[new.id] = []
            assert (new.times_confirmed, new.access_count, new.created_at, new.valid_from) == (1, 0, now, now)
            return
        if options.get("overwrite", True):
            named = options.keys() & {"fact_type", "confidence"}
            changes: dict[str, Any] = {name: options[name] for name in named}
            if repr(old.value) != repr(options["value"]):
                self._add_version(old.id, old, now)
                changes["user_id"] = at[1] if at[0] == "user" else options.get("user_id")
                changes |= {"valid_from": max(now, old.valid_from), "source_episode_id": None}
            confirmed = old.times_confirmed + 1
            old = replace(old, value=options["value"], times_confirmed=confirmed, updated_at=now, **changes)
        self.facts[at] = old
        assert new == old

    def merge(self, source: str, target: str, now: datetime) -> None:
        one, other = self.people[source], self.people[target]
        for at, fact in list(self.facts.items()):
            if at[:2] == ("user", source):
                del self.facts[at]
                self._move(fact, ("user", target, at[2]), now)
            elif fact.user_id == source:
                self.facts[at] = replace(fact, user_id=target)
        moments = [each.last_conversation_at for each in (one, other) if each.last_conversation_at is not None]
        self.people[target] = replace(
            other,
            total_conversations=one.total_conversations + other.total_conversations,
            last_conversation_at=max(moments, default=None),
            first_seen=min(one.first_seen, other.first_seen),
        )
        for name in [source, *[name for name, root in self.root.items() if root == source]]:
            self.people[name] = replace(self.people[name], merged_into_id=other.id)
            self.root[name] = target

    def _move(self, fact: MemoryFact, to: At, now: datetime) -> None:
        kept = self.facts.get(to)
        if kept is None:
            self.facts[to] = replace(fact, user_id=to[1])
            return
        for version in self.versions.pop(fact.id):
            self.versions[kept.id].append(replace(version, number=len(self.versions[kept.id]) + 1))
        if repr(kept.value) != repr(fact.value):
            self._add_version(kept.id, fact, now)
        moments = [each.last_accessed for each in (kept, fact) if each.last_accessed is not None]
        self.facts[to] = replace(
            kept,
            times_confirmed=kept.times_confirmed + fact.times_confirmed,
            times_contradicted=kept.times_contradicted + fact.times_contradicted,
            access_count=kept.access_count + fact.access_count,
            last_accessed=max(moments, default=None),
        )

    def _add_version(self, fact_id: str, fact: MemoryFact, now: datetime) -> None:
        version = FactVersion(
            number=len(self.versions[fact_id]) + 1,
            value=fact.value,
            confidence=fact.confidence,
            source_episode_id=fact.source_episode_id,
            valid_from=fact.valid_from,
            superseded_at=max(now, fact.valid_from),
        )
        self.versions[fact_id].append(version)

    def person(self, name: str) -> MemoryUser:
        """With their preferences."""
        facts = [fact for at, fact in self.facts.items() if at[:2] == ("user", name)]
        preferences = {fact.key: fact.value for fact in facts if fact.fact_type == _PREFERENCE}
        return replace(self.people[name], preferences_cache=preferences)


class _Player:
    """Makes calls of a service, and the same on dicts."""

    def __init__(self, service: Memory, random: Random, clock: StoppedClock) -> None:
        self._service = service
        self._dicts = _Dicts()
        self._random = random
        self._clock = clock

    async def call(self) -> None:
        """One of them, with arguments at random."""
        choice, (often, seldom) = self._random.choice, _CALLS
        self._clock.advance(seconds=choice([0, 1, 60, -5]))
        ids = {"session_id": choice("st"), "user_id": choice(_PEOPLE), "agent_id": choice("ab")}
        await getattr(self, f"_{choice([*often * 3, *seldom])}")(choice(_KEYS), ids)

    async def _set(self, key: str, ids: Ids) -> None:
        random = self._random
        scope = random.choice(["session", "user", "user", "agent", "global"])
        more = {"confidence": random.random(), "fact_type": random.choice([_PREFERENCE, "x"]), "overwrite": False}
        chosen = {name: value for name, value in more.items() if random.random() < _SELDOM}
        options: dict[str, Any] = {**ids, **chosen, "value": random.choice(_VALUES)}
        if scope != "user" and random.random() > _SELDOM:
            del options["user_id"]
        made = await self._service.set_fact(key, scope=scope, **options)
        self._dicts.set(made, self._dicts.at(scope, ids, key), options, self._clock.moment)

    async def _get(self, key: str, ids: Ids) -> None:
        facts = self._dicts.facts
        places = [self._dicts.at(each, ids, key) for each in ("session", "user", "agent", "global")]
        found = next((each for each in places if each in facts), None)
        value = await self._service.get_fact(key, default="nothing", **ids)
        assert repr(value) == repr("nothing" if found is None else facts[found].value)
        if found is not None:
            times = facts[found].access_count + 1
            facts[found] = replace(facts[found], access_count=times, last_accessed=self._clock.moment)

    async def _confirm(self, _: str, __: Ids) -> None:
        if at := self._one_of(self._dicts.facts):
            fact = self._dicts.facts[at]
            self._dicts.facts[at] = replace(
                fact,
                confidence=fact.confidence + (1.0 - fact.confidence) / 5.0,
                times_confirmed=fact.times_confirmed + 1,
                updated_at=self._clock.moment,
            )
            assert await self._service.confirm_fact(fact.id) == self._dicts.facts[at]

    async def _contradict(self, _: str, __: Ids) -> None:
        if at := self._one_of(self._dicts.facts):
            fact = self._dicts.facts[at]
            self._dicts.facts[at] = replace(
                fact,
                confidence=fact.confidence * 0.8,
                times_contradicted=fact.times_contradicted + 1,
                updated_at=self._clock.moment,
            )
            assert await self._service.contradict_fact(fact.id) == self._dicts.facts[at]

    async def _delete(self, _: str, __: Ids) -> None:
        if at := self._one_of(self._dicts.facts):
            fact = self._dicts.facts.pop(at)
            del self._dicts.versions[fact.id]
            assert await self._service.delete_fact(fact.id)

    async def _meet(self, _: str, ids: Ids) -> None:
        name, people = ids["user_id"], self._dicts.people
        person = await self._service.get_or_create_user(*name.split(":"))
        if name not in people:
            assert person.first_seen == self._clock.moment
            people[name] = replace(person, preferences_cache={})
        assert person == self._dicts.person(self._dicts.root.get(name, name))

    async def _merge(self, _: str, __: Ids) -> None:
        source, target = self._one_of(self._dicts.people), self._one_of(self._dicts.people)
        if source is None or target is None:
            return
        one, other = self._dicts.root.get(source, source), self._dicts.root.get(target, target)
        try:
            merged = await self._service.merge_users(source, target)
        except InvalidEntryError:
            assert source == target or (one == other == source)
        else:
            if one != other:
                self._dicts.merge(one, other, self._clock.moment)
            assert merged == self._dicts.person(other)

    async def _count(self, _: str, ids: Ids) -> None:
        name, people = ids["user_id"], self._dicts.people
        assert await self._service.count_conversation(name) == (name in people)
        if name in people:
            root = self._dicts.root.get(name, name)
            times = people[root].total_conversations + 1
            people[root] = replace(people[root], total_conversations=times, last_conversation_at=self._clock.moment)

    async def _prefer(self, _: str, ids: Ids) -> None:
        name, random = ids["user_id"], self._random
        preferences = {key: random.choice(_VALUES) for key in _KEYS if random.random() > _SELDOM}
        is_known = name in self._dicts.people
        assert await self._service.update_preferences(name, preferences) == is_known
        for key, value in preferences.items() if is_known else ():
            made = await self._service.find_fact(key, "user", user_id=name)
            options = {"value": value, "fact_type": _PREFERENCE}
            self._dicts.set(made, self._dicts.at("user", ids, key), options, self._clock.moment)

    def _one_of(self, there: Mapping[K, Any]) -> K | None:
        return self._random.choice(list(there)) if there else None

    async def compare(self) -> None:
        """What the calls have left."""
        service, dicts = self._service, self._dicts
        for name in _PEOPLE:
            assert await service.get_user(name) == (dicts.person(name) if name in dicts.people else None)
        found = []
        for name, session_id, agent_id in zip(_PEOPLE, "st ", "ab ", strict=True):
            ids = {"user_id": name, "session_id": session_id, "agent_id": agent_id}
            found += await all_pages(service.list_facts, limit=3, **ids)
        assert {each.id: each for each in found} == {each.id: each for each in dicts.facts.values()}
        for fact in dicts.facts.values():
            assert list(await service.history(fact.id)) == dicts.versions[fact.id]


async def play(service: Memory, seed: int, calls: int) -> None:
    """Make random calls, and compare what they leave with what they leave in dicts."""
    with stopped() as clock:
        player = _Player(service, Random(seed), clock)
        for number in range(1, calls + 1):
            await player.call()
            if number % 25 == 0 or number == calls:
                await player.compare()


@check("L15", facet=LONG_TERM_LOG)
async def calls_in_random_order_leave_what_they_leave_in_dicts(subject: Subject) -> None:
    async with service_in(subject) as service:
        await play(service, seed=18, calls=75)
