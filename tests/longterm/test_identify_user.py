"""``identify_user``: who speaks, by the payload of a trigger or of a connected node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from firefly_memory import ConfigurationError, DatabaseStoreError, ErasedError, InMemoryStore
from firefly_memory.longterm import MemoryService, async_identify_user, identify_user
from firefly_memory.longterm.identify import Speaker, speaker_in
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.long_term_stores import IN_EACH

NOBODY: dict[str, Any] = {"user_id": None, "is_new": True, "facts": [], "history": []}


def identifying(service: Memory) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    """The function of ``identify_user``, to be awaited."""
    if service._mode is Mode.SUSPENDING:
        return async_identify_user(service.inner)
    blocking = identify_user(service.inner)

    async def call(state: Any) -> dict[str, Any]:
        return blocking(state)

    return call


def from_telegram(number: Any = 12345, **names: Any) -> dict[str, Any]:
    return {"message": {"from": {"id": number, **names}, "text": "hello"}}


@pytest.fixture(params=Mode)
def simple(request: pytest.FixtureRequest) -> Memory:
    return Memory(MemoryService(embedder=None), request.param)


# Who it is


@IN_EACH
async def test_a_person_is_met_counted_and_told_with_what_is_known(service: Memory) -> None:
    identify = identifying(service)
    state = {"trigger": from_telegram(first_name="Ada", last_name="Lovelace"), "node_outputs": {}, "execution_id": "1"}
    first = await identify(state)
    assert first["user_id"] == "telegram:12345"
    assert first["is_new_user"] is True
    context = first["user_context"]
    assert context == await service.get_user_context("telegram:12345") | {"is_new": True}
    assert (context["display_name"], context["total_conversations"]) == ("Ada Lovelace", 1)
    assert first["_state_patch"] == {
        "user_context": {
            **context, "canonical_id": "telegram:12345", "display_name": "Ada Lovelace", "channel": "telegram",
        }
    }  # fmt: skip

    await service.set_fact("color", "blue", scope="user", user_id="telegram:12345", fact_type="user_preference")
    await service.set_fact("vat", 19)
    second = await identify({**state, "execution_id": "2"})
    assert second["is_new_user"] is False
    context = second["user_context"]
    assert context == await service.get_user_context("telegram:12345")
    assert (context["is_new"], context["total_conversations"]) == (False, 2)
    assert context["facts"] == [{"key": "color", "value": "blue", "type": "user_preference"}]
    assert context["preferences"] == {"color": "blue"}
    assert second["_state_patch"]["user_context"]["preferences"] == {"color": "blue"}
    assert json.loads(json.dumps(second)) == second, "a graph can store its state"


@IN_EACH
async def test_without_an_identity_it_is_nobody_and_nothing_is_stored(service: Memory) -> None:
    identify = identifying(service)
    for trigger, channel in (({}, None), (from_telegram(None), "telegram"), ({"source": "chat"}, "chat")):
        assert await identify({"trigger": trigger}) == {
            "user_id": None,
            "user_context": NOBODY,
            "is_new_user": True,
            "_state_patch": {
                "user_context": {**NOBODY, "canonical_id": None, "display_name": None, "channel": channel}
            },
        }
    assert list(await service.list_users()) == []


@IN_EACH
async def test_somebody_who_was_merged_is_the_other_person(service: Memory) -> None:
    identify = identifying(service)
    for trigger in (from_telegram(first_name="Ada"), {"webhook_id": "w", "email": "ada@example.com"}):
        await identify({"trigger": trigger})
    await service.set_fact("color", "blue", scope="user", user_id="telegram:12345")
    await service.merge_users("telegram:12345", "webhook:ada@example.com")
    found = await identify({"trigger": from_telegram()})
    assert (found["user_id"], found["is_new_user"]) == ("webhook:ada@example.com", False)
    assert found["user_context"]["total_conversations"] == 3
    assert found["user_context"]["facts"] == [{"key": "color", "value": "blue", "type": "world_knowledge"}]
    told = found["_state_patch"]["user_context"]
    assert (told["canonical_id"], told["display_name"], told["channel"]) == (found["user_id"], "Ada", "telegram")


@IN_EACH
async def test_an_execution_that_is_repeated_is_counted_once(service: Memory) -> None:
    identify = identifying(service)
    state = {"trigger": from_telegram(), "execution_id": "e-1"}
    first = await identify(state)
    assert await identify(state) == first, "it is new both times"
    second = await identify({**state, "execution_id": "e-2"})
    assert await identify({**state, "execution_id": "e-2"}) == second
    assert (second["is_new_user"], second["user_context"]["total_conversations"]) == (False, 2)
    unnamed: Any
    for unnamed in (None, "", [], True):
        await identify({**state, "execution_id": unnamed})
    assert (await identify({"trigger": from_telegram()}))["user_context"]["total_conversations"] == 7
    other = await identify({"trigger": from_telegram(7), "execution_id": "e-2"})
    assert other["user_context"]["total_conversations"] == 1, "others are in the same execution"


@IN_EACH
async def test_somebody_who_comes_twice_at_once_is_one_person_and_new_once(service: Memory) -> None:
    identify = identifying(service)
    found = await asyncio.gather(
        *(identify({"trigger": from_telegram(), "execution_id": number}) for number in range(10))
    )
    assert {each["user_id"] for each in found} == {"telegram:12345"}
    assert [each["is_new_user"] for each in found].count(True) == 1
    (person,) = await service.list_users()
    assert person.total_conversations == 10


async def test_somebody_whom_the_application_has_made_is_not_new(simple: Memory) -> None:
    await simple.get_or_create_user("telegram", "12345", "Ada")
    found = await identifying(simple)({"trigger": from_telegram(first_name="Eve"), "execution_id": "1"})
    assert (found["is_new_user"], found["user_context"]["display_name"]) == (False, "Ada")
    assert found["user_context"]["total_conversations"] == 1


# Payloads

UUID_7 = UUID(int=7)


@pytest.mark.parametrize(
    ("trigger", "speaker"),
    [
        (from_telegram(first_name="Ada"), ("telegram", "12345", "Ada")),
        (from_telegram("12345", last_name=" Lovelace "), ("telegram", "12345", "Lovelace")),
        (from_telegram() | {"source": "chat", "user_id": "u"}, ("telegram", "12345", None)),
        (from_telegram(-1), ("telegram", "-1", None)),
        ({"webhook_id": "w", "user_id": "u", "email": "e", "user_name": "Eve"}, ("webhook", "u", "Eve")),
        ({"webhook_id": "w", "email": "ada@example.com"}, ("webhook", "ada@example.com", None)),
        ({"webhook_id": None, "user_id": 5, "channel": "sms"}, ("webhook", "5", None)),
        ({"webhook_id": "w", "user_id": " ", "email": "e"}, ("webhook", "e", None)),
        ({"source": "chat", "user_id": "u", "channel": "sms"}, ("chat", "u", None)),
        ({"source": "manual", "user_id": UUID_7}, ("manual", str(UUID_7), None)),
        ({"source": "cron", "user_id": "u"}, (None, "u", None)),
        ({"channel": "slack", "user_id": "u:1", "user_name": "Eve"}, ("slack", "u:1", "Eve")),
        ({"channel": "slack", "user_id": "u", "message": "hello"}, ("slack", "u", None)),
        ({"channel": "slack", "user_id": "u", "message": {"from": {"name": "x"}}}, ("slack", "u", None)),
        ({"channel": "slack", "email": "e"}, ("slack", None, None)),
        ({"user_id": "u"}, (None, "u", None)),
    ],
)
def test_a_payload_says_who_speaks(trigger: dict[str, Any], speaker: tuple[Any, ...]) -> None:
    assert speaker_in({"trigger": trigger}) == Speaker(*speaker)


@pytest.mark.parametrize(
    ("outputs", "speaker"),
    [
        ({"a": {"trigger_input": {"source": "chat", "user_id": "u"}}}, ("chat", "u")),
        ({"a": {"channel": "sms", "trigger_input": {"user_id": "u"}}}, ("sms", "u")),
        ({"a": {"channel": "sms"}}, ("sms", "12345")),
        ({"a": {"text": "x"}, "b": {"channel": "sms"}, "c": {"channel": "fax"}}, ("sms", "12345")),
        ({"a": {"trigger_input": {}}, "b": {"trigger_input": from_telegram(7)}}, ("telegram", "7")),
        ({"a": {"trigger_input": {"text": "hello"}}}, (None, None)),
        ({"a": {"trigger_input": "text", "channel": ""}}, ("telegram", "12345")),
        ({"a": {"trigger_input": [1], "channel": ["sms"]}, "b": None, "c": 5}, ("telegram", "12345")),
        ([{"channel": "sms"}], ("telegram", "12345")),
        (None, ("telegram", "12345")),
    ],
)
def test_a_connected_node_wins_over_the_trigger(outputs: Any, speaker: tuple[Any, Any]) -> None:
    assert speaker_in({"trigger": from_telegram(), "node_outputs": outputs})[:2] == speaker


DEEP: Any = []
for _ in range(50_000):
    DEEP = [DEEP]

JUNK = [
    None, True, False, 0, 1.5, float("nan"), "", "   ", "text", b"bytes", [], [1, 2], {}, {"id": []}, {"from": {}},
    object(), DEEP, 10**5_000, "x" * 1_000_000, {"": {"": {}}},
]  # fmt: skip


@pytest.mark.parametrize(
    "junk", JUNK, ids=lambda junk: repr(junk)[:10] if junk is not DEEP and junk != 10**5_000 else ""
)
async def test_junk_is_nobody_in_whatever_place(junk: Any, simple: Memory) -> None:
    identify = identifying(simple)
    whole = [junk, {"trigger": junk}, {"node_outputs": junk}, {"trigger": {"message": junk}}]
    parts = [
        from_telegram(junk),
        {"message": {"from": junk}},
        {"webhook_id": junk, "user_id": junk, "email": junk},
        {"source": junk, "user_id": "u"},
        {"channel": junk, "user_id": "u"},
        {"channel": "sms:1", "user_id": "u"},
    ]
    connected = [{"node_outputs": {"node": {"trigger_input": junk, "channel": junk}}}]
    for state in (*whole, *({"trigger": part, "execution_id": junk} for part in parts), *connected):
        found = await identify(state)
        if found["user_id"] is not None:  # some junk is an id
            assert type(junk) in (int, str)
            continue
        assert found["user_context"] == NOBODY
    assert {each.canonical_id for each in await simple.list_users()} <= {
        "telegram:0", "webhook:0", "telegram:text", "webhook:text", "text:u",
    }  # fmt: skip


async def test_an_id_that_cannot_be_stored_is_nobody_and_a_long_name_is_cut(simple: Memory) -> None:
    identify = identifying(simple)
    for trigger in (
        {"channel": "a:b", "user_id": "u"},
        {"channel": "sms", "user_id": "u" * 513},
        {"channel": "s" * 600, "user_id": "u"},
        from_telegram("9" * 400),
    ):
        assert (await identify({"trigger": trigger}))["user_id"] is None
    assert list(await simple.list_users()) == []
    found = await identify({"trigger": from_telegram(first_name="A" * 600, last_name=["x"])})
    assert found["user_context"]["display_name"] == "A" * 512


async def test_people_whose_ids_look_alike_stay_apart(simple: Memory) -> None:
    identify = identifying(simple)
    ids = ["1", "01", " 1", "1:2", "ä", "a\u0308", "\0", "\ud800", "%", "A", "a"]
    found = [(await identify({"trigger": {"channel": "sms", "user_id": each}}))["user_id"] for each in ids]
    assert found == [f"sms:{each}" for each in ids]
    assert len(await simple.list_users()) == len(ids)


async def test_an_error_of_the_store_is_raised(simple: Memory) -> None:
    identify = identifying(simple)
    simple.inner.store.close_sync()
    with pytest.raises(DatabaseStoreError):
        await identify({"trigger": from_telegram()})
    assert (await identify({"trigger": {}}))["user_id"] is None, "nobody needs no store"


async def test_somebody_who_was_erased_is_refused(simple: Memory) -> None:
    identify = identifying(simple)
    await identify({"trigger": from_telegram()})
    await simple.forget_user("telegram:12345")
    with pytest.raises(ErasedError):
        await identify({"trigger": from_telegram()})
    assert list(await simple.list_users()) == []


@pytest.mark.parametrize("make", [identify_user, async_identify_user])
def test_it_is_made_for_a_service(make: Any) -> None:
    with pytest.raises(ConfigurationError, match="needs a MemoryService, not InMemoryStore"):
        make(InMemoryStore())
