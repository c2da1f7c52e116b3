"""``recall`` and ``remember``: their settings, and wrong arguments, for which no backend makes a difference."""

from __future__ import annotations

import asyncio
import inspect
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    InMemoryStore,
    InvalidEntryError,
)
from firefly_memory.longterm import (
    FACT_TYPES,
    MemoryService,
    async_memory_read,
    async_memory_write,
    memory_read,
    memory_write,
)
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.knowledge_stores import Broken, of_function
from tests.support.long_term_tools import ANN, keys_of, reading, writing


@pytest.fixture(params=Mode)
def simple(request: pytest.FixtureRequest) -> Memory:
    return Memory(MemoryService(embedder=None), request.param)


async def test_a_type_is_that_of_the_call_or_else_for_new_facts_that_of_the_tool(simple: Memory) -> None:
    remember = writing(simple, fact_type="self_knowledge")

    async def type_after(key: str, *arguments: str) -> str:
        await remember(key, "v", *arguments)
        return str((await simple.find_fact(key, "global")).fact_type)

    assert await type_after("a") == "self_knowledge"
    assert await type_after("b", "correction") == "correction"
    assert await type_after("b") == "correction", "nobody has named another one"
    assert await type_after("b", "relationship") == "relationship"
    await writing(simple)("c", "v")
    assert (await simple.find_fact("c", "global")).fact_type == "world_knowledge"


async def test_no_more_facts_are_found_than_the_limit(simple: Memory) -> None:
    remember = writing(simple)
    for number in range(12):
        await remember(f"k{number}", "x")
    for found in (reading(simple)(), reading(simple)("k"), reading(simple)(query="k")):
        assert len(await keys_of(found)) == 10
    assert await keys_of(reading(simple, limit=1)()) == ["k11"]
    assert len(await keys_of(reading(simple, limit=2**40)())) == 12


async def test_only_a_lookup_by_key_counts_as_an_access(simple: Memory) -> None:
    recall = reading(simple)
    await writing(simple)("color", "blue")
    for call in (recall(), recall(query="color"), recall("colo")):
        await call
    assert (await simple.find_fact("color", "global")).access_count == 0
    await recall("color")
    assert (await simple.find_fact("color", "global")).access_count == 1


async def test_procedures_and_episodes_are_types_without_anything_in_them_yet(simple: Memory) -> None:
    await writing(simple)("color", "blue")
    assert await keys_of(reading(simple, memory_type="all")(query="blue")) == ["color"]
    for kind in ("procedures", "episodes"):
        recall = reading(simple, memory_type=kind)
        assert await recall(query="blue") == "No memories found for query: blue"
        assert await recall("color") == "color = blue", "a key is that of a fact"
        assert await keys_of(recall()) == ["color"]


async def test_a_key_and_a_query_are_tried_one_after_the_other(simple: Memory) -> None:
    recall, remember = reading(simple), writing(simple)
    await remember("color", "blue")
    await remember("sky", "grey")
    assert await recall("color", "grey") == "color = blue"
    assert await keys_of(recall("colo", "grey")) == ["color"]
    assert await keys_of(recall("paint", "grey")) == ["sky"]
    assert await recall("paint", "black") == "No memories found for query: black"


@pytest.mark.parametrize("nothing", ["", "  ", "\n", None])
async def test_arguments_that_say_nothing_are_as_good_as_none(nothing: Any, simple: Memory) -> None:
    recall, remember = reading(simple), writing(simple)
    assert await remember(nothing, "blue") == "Error: key is required"
    assert await remember("color", nothing) == "Error: value is required"
    assert await recall(nothing, nothing) == "Memory is empty — no facts stored."
    assert await remember("color", "blue", nothing) == "Remembered: color = blue (created)"
    assert await recall(nothing, "blue") == '[{"key": "color", "value": "blue", "confidence": 1.0}]'


class Nowhere(tzinfo):
    """A time zone that fails with an error that is not the library's."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        raise ArithmeticError("miscounted")

    dst = utcoffset

    def tzname(self, _: datetime | None) -> str:
        return "nowhere"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("k" * 10_000, "v"), "key: is 10000 characters long; at most 512 are allowed"),
        ((5, "v"), "key: must be text, not int"),
        (("k", float("nan")), "value: nan is not a JSON value; store None or text instead"),
        (("k", "v", "t" * 513), "fact_type: is 513 characters long; at most 512 are allowed"),
        (("k", datetime(2026, 1, 1, tzinfo=Nowhere())), "it failed"),
    ],
    ids=["long key", "number", "NaN", "long type", "not ours"],
)
async def test_what_cannot_be_stored_is_an_answer_and_no_error(
    arguments: tuple[Any, ...], problem: str, simple: Memory
) -> None:
    assert await writing(simple)(*arguments) == f"Error writing memory: {problem}"
    assert await reading(simple)() == "Memory is empty — no facts stored."


async def test_what_cannot_be_asked_is_an_answer_and_no_error(simple: Memory, caplog: pytest.LogCaptureFixture) -> None:
    recall = reading(simple)
    assert await recall("k" * 10_000) == "Error reading memory: key: is 10000 characters long; at most 512 are allowed"
    assert await recall({"key": "k"}) == "Error reading memory: key: must be text, not dict"
    assert (await recall(query=5)).startswith("Error reading memory: ")
    assert caplog.records == [], "what a model does wrong is no trouble of the application"


async def test_a_store_that_fails_is_an_answer_and_a_message_in_the_log(
    simple: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    recall, remember = reading(simple), writing(simple)
    simple.inner.store.close_sync()
    for doing, call in (("reading", recall()), ("reading", recall("k")), ("writing", remember("k", "secret"))):
        answer = await call
        assert answer.startswith(f"Error {doing} memory: ")
        assert answer.endswith(": it cannot be reached now"), "a model learns nothing of the server"
    assert [(each.levelname, each.name) for each in caplog.records] == [("ERROR", "firefly_memory.longterm")] * 3
    assert [each.getMessage().partition(" could not")[0] for each in caplog.records] == [
        "the tool recall", "the tool recall", "the tool remember",
    ]  # fmt: skip
    assert "secret" not in caplog.text


async def test_a_tool_reads_and_writes_nothing_of_an_erased_person(
    simple: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    recall = reading(simple, user=ANN)
    own, for_all = (writing(simple, user=ANN, scope=scope) for scope in ("user", "global"))
    await own("color", "blue")
    await for_all("vat", 19)
    await simple.forget_user(ANN)
    assert await recall() == "Memory is empty — no facts stored."
    for remember in (own, for_all):
        assert await remember("color", "blue") == "Error writing memory: it does not accept this"
    assert await recall() == "Memory is empty — no facts stored."
    assert caplog.records == []


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
async def test_a_cancelled_run_and_an_interrupted_program_end(error: type[BaseException]) -> None:
    broken = Broken()
    broken.error = error()
    service = MemoryService(embedder=of_function(broken))
    with pytest.raises(error):
        memory_write(service)("k", "v")
    with pytest.raises(error):
        await async_memory_write(service)("k", "v")


async def test_a_tool_shows_and_stores_no_more_than_a_model_can_read(simple: Memory) -> None:
    text = "word " * 3_999 + "end"
    remember, recall = writing(simple), reading(simple)
    assert await remember("long", text) == f"Remembered: long = {text} (created)"
    assert await recall("long") == f"long = {text}"
    assert f'"value": "{text[:2_000]}… (19,998 characters)"' in await recall()
    answer = await remember("longer", "word " * 100_000)
    assert answer == "Error writing memory: value: is 500,000 characters long; at most 20,000 are allowed"
    await simple.set_fact("longer", "word " * 100_000)
    assert await recall("longer") == f"longer = {'word ' * 4_000}… (500,000 characters)"


async def test_writers_of_one_key_at_once_make_one_fact(simple: Memory) -> None:
    remember = writing(simple)
    answers = await asyncio.gather(*(remember("color", str(number)) for number in range(20)))
    assert sorted(each.rpartition(" ")[2] for each in answers) == ["(created)", *["(updated)"] * 19]
    assert (await simple.find_fact("color", "global")).times_confirmed == 20


# How they are made


MAKERS = pytest.mark.parametrize(
    "maker", [memory_read, async_memory_read, memory_write, async_memory_write], ids=lambda each: each.__name__
)


@MAKERS
def test_a_tool_has_a_name_and_a_description_for_a_model(maker: Any) -> None:
    service = MemoryService()
    tool = maker(service)
    assert inspect.iscoroutinefunction(tool) is maker.__name__.startswith("async_")
    assert tool.__name__ == ("recall" if "read" in maker.__name__ else "remember")
    doc = inspect.getdoc(tool) or ""
    assert all(f"{name}: " in doc for name in inspect.signature(tool).parameters)
    if "write" in maker.__name__:
        assert all(each in doc for each in FACT_TYPES)
        assert "Everybody sees it." in doc
        assert "is replaced" in doc
        assert "stays as it is" in (maker(service, overwrite=False).__doc__ or "")
        assert "person of this conversation" in (maker(service, user=ANN, scope="user").__doc__ or "")


@MAKERS
def test_a_wrong_setting_is_an_error_when_the_tool_is_made(maker: Any) -> None:
    service = MemoryService()
    with pytest.raises(ConfigurationError, match=r"needs a MemoryService, not InMemoryStore: MemoryService\(store\)"):
        maker(InMemoryStore())
    for settings in ({"agent": ""}, {"agent": None}, {"user": ""}, {"user": 5}, {"agent": "a" * 513}):
        with pytest.raises(InvalidEntryError):
            maker(service, **settings)


@pytest.mark.parametrize("maker", [memory_read, async_memory_read])
def test_a_wrong_setting_of_recall_is_an_error(maker: Any) -> None:
    service = MemoryService()
    with pytest.raises(ConfigurationError, match="memory_type must be 'facts', 'procedures', 'episodes' or 'all'"):
        maker(service, memory_type="fact")
    for limit in (0, -1, True, 1.5, "10"):
        with pytest.raises(ConfigurationError, match="limit must be a whole number from 1 up"):
            maker(service, limit=limit)
    for confidence in (-0.1, 1.1, float("nan"), "0.5", True):
        with pytest.raises(InvalidEntryError, match="min_confidence"):
            maker(service, min_confidence=confidence)


@pytest.mark.parametrize("maker", [memory_write, async_memory_write])
def test_a_scope_without_its_id_is_an_error_when_the_tool_is_made(maker: Any) -> None:
    service = MemoryService()
    with pytest.raises(ConfigurationError, match=r"scope='user' needs the user_id of a person: user="):
        maker(service, scope="user")
    with pytest.raises(ConfigurationError, match=r"scope='agent' needs the name of an agent: agent="):
        maker(service, scope="agent", user=ANN)
    scope: Any
    for scope in ("session", "everybody", None, []):
        with pytest.raises(ConfigurationError, match="scope must be 'user', 'agent' or 'global', not"):
            maker(service, scope=scope, user=ANN)
    with pytest.raises(ConfigurationError, match="overwrite must be True or False"):
        maker(service, overwrite="no")
    with pytest.raises(InvalidEntryError, match="fact_type"):
        maker(service, fact_type="")
