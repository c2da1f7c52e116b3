"""L10 and L11, long-term memory: what is seen, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from firefly_memory.errors import InvalidEntryError, UnknownRecordError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.rules.knowledge_chunks import NAMES
from firefly_memory.testing.rules.long_term_services import Service, all_pages, service_in

_IDS: dict[str, Any] = {"session_id": "s", "user_id": "telegram:1", "agent_id": "a"}


async def _everything(service: Service) -> list[Any]:
    """What a space has, as far as these ids see it."""
    facts = await all_pages(service.list_facts, **_IDS)
    return [
        facts,
        [list(await service.history(each.id)) for each in facts],
        await all_pages(service.list_users),
        await service.get_user_context("telegram:1"),
        list(await service.get_user_facts("telegram:1")),
        [hit.id for hit in await service.search_facts("", limit=100, **_IDS)],
    ]


@check("L10", facet=LONG_TERM_LOG)
async def a_space_sees_and_changes_only_itself(subject: Subject) -> None:
    async with (
        service_in(subject, "a_") as one,
        service_in(subject, "A%") as other,
        service_in(subject, "\x00\ud800") as third,
    ):
        services = {"one": one, "other": other, "third": third}
        for name, service in services.items():
            for person in ("telegram:1", "email:b"):
                await service.get_or_create_user(*person.split(":"), name)
            for scope in ("session", "user", "agent", "global"):
                for value in ("old", name):
                    await service.set_fact("k", value, scope=scope, **_IDS)
            await service.set_fact("k", name, scope="user", user_id="email:b")
        before = {name: await _everything(service) for name, service in services.items()}
        for name, (facts, histories, users, *_) in before.items():
            assert {each.value for each in facts} == {name}
            assert (len(facts), [len(each) for each in histories]) == (4, [1] * 4)
            assert {each.display_name for each in users} == {name}
        theirs = [each.id for each in before["other"][0]]
        for call in (one.confirm_fact, one.contradict_fact, one.history):
            await subject.refuses(UnknownRecordError, call(theirs[0]))
        assert (await one.delete_fact(theirs[0]), await one.delete_facts(theirs), await one.read_fact(theirs[0])) == (
            False,
            0,
            None,
        )
        await subject.refuses(InvalidEntryError, one.list_users(after=5))
        assert {name: await _everything(service) for name, service in services.items()} == before
        await one.merge_users("telegram:1", "email:b")
        await one.update_preferences("telegram:1", {"k": "preferred", "new": 1})
        await one.set_fact("k", "said again", scope="agent", agent_id="a")
        await one.count_conversation("telegram:1")
        await one.get_fact("k", **_IDS)
        assert await one.delete_facts([each.id for each in await one.list_facts()]) == 1
        for name in ("other", "third"):
            assert await _everything(services[name]) == before[name]
        assert await one.get_fact("k", user_id="telegram:1", as_of=datetime.now(UTC)) == "preferred"
        assert await other.get_fact("k", user_id="telegram:1", as_of=datetime.now(UTC)) == "other"


@check("L10", facet=LONG_TERM_LOG)
async def keys_and_ids_that_look_alike_are_different(subject: Subject) -> None:
    async with service_in(subject) as service:
        await service.get_or_create_user("web", "ann")
        assert await service.update_preferences("web:ann", {name: f"of {name!a}" for name in NAMES})
        found = {each.key: each.value for each in await service.get_user_facts("web:ann")}
        assert found == {name: f"of {name!a}" for name in NAMES}
        for number, name in enumerate(NAMES):
            scope = ("session", "user", "agent")[number % 3]
            await service.set_fact("k", name, scope=scope, **{f"{scope}_id": name})
        for number, name in enumerate(NAMES):
            scope = ("session", "user", "agent")[number % 3]
            assert await service.get_fact("k", **{f"{scope}_id": name}) == name, ascii(name)
        assert await service.get_fact("k", session_id=NAMES[1], user_id=NAMES[2], agent_id=NAMES[0]) is None


_BAD_FACTS: dict[str, tuple[dict[str, Any], str]] = {
    "a value that JSON lacks": ({"value": {"in": [1, object()]}}, "value['in'][1]"),
    "a value that is no number": ({"value": [float("nan")]}, "value[0]"),
    "an empty key": ({"key": ""}, "key"),
    "a key of 10 kB": ({"key": "k" * 10_000}, "10000 characters"),
    "a confidence above 1": ({"confidence": 1.0000000000000002}, "confidence"),
    "a confidence below 0": ({"confidence": -5e-324}, "confidence"),
    "a confidence that is no number": ({"confidence": float("nan")}, "confidence"),
    "a confidence that is text": ({"confidence": "1"}, "confidence"),
    "a confidence that is true": ({"confidence": True}, "confidence"),
    "an unknown scope": ({"scope": "everybody"}, "scope"),
    "a scope without its id": ({"scope": "agent"}, "agent_id"),
}


@check("L11", facet=LONG_TERM_LOG)
async def what_is_refused_changes_nothing(subject: Subject) -> None:
    async with service_in(subject) as service:
        await service.get_or_create_user("telegram", "1")
        await service.set_fact("k", 1)
        await service.set_fact("k", 1, scope="user", **_IDS)
        before = await _everything(service)
        for what, (options, says) in _BAD_FACTS.items():
            given = {"key": "k", "value": 2, **options}
            error = await subject.refuses(InvalidEntryError, service.set_fact(**given))
            assert says in str(error), (what, str(error))
        for bad in ({"k": 2, "other": object()}, {"k": 2, "": 1}, {"k": 2, 5: 3}):
            await subject.refuses(InvalidEntryError, service.update_preferences("telegram:1", bad))
        for channel, name, shown in (
            ("", "1", None),
            ("a:b", "1", None),
            ("a", "", None),
            ("a", "1", 5),
            ("a", "1" * 511, None),
        ):
            await subject.refuses(InvalidEntryError, service.get_or_create_user(channel, name, shown))
        await subject.refuses(InvalidEntryError, service.delete_facts([before[0][0].id, 5]))
        await subject.refuses(UnknownRecordError, service.merge_users("telegram:1", "telegram:2"))
        assert await _everything(service) == before
