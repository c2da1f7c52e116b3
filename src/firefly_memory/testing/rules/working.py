"""W1 to W3: working memory."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from firefly_memory.errors import InvalidEntryError
from firefly_memory.protocols import ABSENT, SAME_METADATA
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.values import VALUES, same

LINE_ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@check("W1")
async def facts_are_set_replaced_read_and_forgotten(subject: Subject) -> None:
    memory = subject.working()
    assert await memory.get("doc_type") is None
    assert await memory.get("doc_type", "default") == "default"
    assert await memory.to_context_string() == ""
    await memory.set("doc_type", "letter")
    await memory.set("vendor", "Acme Corp", importance=0.9)
    await memory.set("nothing", None)
    await memory.set("doc_type", "invoice")
    assert await memory.get("doc_type") == "invoice"
    assert await memory.get("nothing", "default") is None
    assert await memory.has("nothing")
    assert not await memory.has("something")
    assert await memory.keys() == ["doc_type", "vendor", "nothing"]
    assert await memory.items() == [("doc_type", "invoice"), ("vendor", "Acme Corp"), ("nothing", None)]
    assert await memory.to_dict() == dict(await memory.items())
    await memory.delete("vendor")
    await memory.delete("vendor")
    assert await memory.keys() == ["doc_type", "nothing"]
    await memory.set("vendor", 1)
    assert await memory.keys() == ["doc_type", "nothing", "vendor"]
    await memory.clear()
    assert await memory.keys() == []


@check("W1")
async def every_value_and_any_key_comes_back_the_same(subject: Subject) -> None:
    memory = subject.working()
    for number, value in enumerate(VALUES):
        await memory.set(f"key {number}", value)
    for number, value in enumerate(VALUES):
        assert same(await memory.get(f"key {number}"), value)
    keys = ["\x00", "\ud800", "a.b", "$set", "é", "e\u0301", "E", "e", " ", "x" * 512]
    other = subject.working("keys")
    for key in keys:
        await other.set(key, key)
    assert await other.items() == [(key, key) for key in keys]


@check("W1")
async def scopes_see_nothing_of_each_other(subject: Subject) -> None:
    one, two = subject.working("a"), subject.working("b")
    await one.set("key", "from a")
    await two.set("key", "from b")
    assert (await one.get("key"), await two.get("key")) == ("from a", "from b")
    await one.clear()
    assert await two.keys() == ["key"]


@check("W1")
async def keys_keep_the_order_they_were_first_set_in_whatever_the_clock_does(subject: Subject) -> None:
    memory = subject.working()
    keys = [f"key {number * 7 % 11}" for number in range(11)]
    with stopped() as clock:
        for number, key in enumerate(keys):
            clock.advance(seconds=-1 if number % 3 else 0)
            await memory.set(key, number)
        await memory.set(keys[0], "again")
        assert await memory.keys() == keys


@check("W1")
async def a_fact_may_have_an_end(subject: Subject) -> None:
    memory = subject.working()
    with stopped() as clock:
        await memory.set("code", 4711, ttl=60)
        await memory.set("name", "Ada", ttl=timedelta(hours=1))
        clock.advance(seconds=59)
        assert await memory.keys() == ["code", "name"]
        clock.advance(seconds=1)
        assert await memory.get("code") is None
        assert await memory.keys() == ["name"]
        await memory.set("code", 1)
        assert await memory.keys() == ["name", "code"]
        await memory.set("name", "Ada")
        clock.advance(hours=2)
        assert await memory.keys() == ["name", "code"]
    for ttl in (0, -1, True, "60", float("nan"), float("inf"), 1e300, timedelta(0), timedelta(seconds=-1)):
        await subject.refuses(InvalidEntryError, memory.set("code", 1, ttl=ttl))
        await subject.refuses(InvalidEntryError, memory.compare_and_set("code", 1, 2, ttl=ttl))


@check("W1")
async def what_is_no_fact_is_refused_and_the_old_one_stays(subject: Subject) -> None:
    memory = subject.working()
    await memory.set("key", "old")
    for key, value, importance in (
        ("key", object(), 0.5),
        ("key", float("nan"), 0.5),
        ("key", 1, 1.5),
        ("key", 1, "high"),
        ("", 1, 0.5),
        (None, 1, 0.5),
        ("x" * 513, 1, 0.5),
    ):
        await subject.refuses(InvalidEntryError, memory.set(key, value, importance=importance))
    assert await memory.to_dict() == {"key": "old"}


@check("W2")
async def many_writers_of_one_key_leave_one_fact(subject: Subject) -> None:
    memory = subject.working()
    gone: list[Any] = []

    async def turn(number: int) -> None:
        await memory.set("key", number)
        if await memory.get("key") is None:
            gone.append(number)

    await at_once(subject, [partial(turn, number) for number in range(24)])
    assert gone == [], "readers never see a gap"
    assert await memory.keys() == ["key"]
    assert len(await subject.view.load(memory.namespace)) == 1


@check("W2")
async def additions_at_once_are_all_counted(subject: Subject) -> None:
    memory = subject.working()
    sums = await at_once(subject, [partial(memory.increment, "count")] * 24)
    assert sorted(sums) == list(range(1, 25))
    assert await memory.get("count") == 24


@check("W2")
async def numbers_are_added_as_python_adds_them(subject: Subject) -> None:
    memory = subject.working()
    with stopped() as clock:
        await memory.set("n", 2**63 - 1, importance=0.9, ttl=60)
        assert await memory.increment("n") == 2**63
        assert await memory.increment("n", -(2**70)) == 2**63 - 2**70
        assert await memory.increment("f", 0.1) == 0.1
        assert await memory.increment("f", 0.2) == 0.1 + 0.2
        assert [entry.importance for entry in await subject.view.load(memory.namespace)] == [0.9, 0.5]
        clock.advance(seconds=60)
        assert await memory.increment("n", 5) == 5, "what expired is not there"
    for value in ("1", None, True, [1]):
        await memory.set("text", value)
        await subject.refuses(InvalidEntryError, memory.increment("text"))
        assert await memory.get("text") == value
    for by in ("1", None, True):
        await subject.refuses(InvalidEntryError, memory.increment("n", by))


@check("W2")
async def a_fact_is_replaced_only_if_it_is_still_what_was_expected(subject: Subject) -> None:
    memory = subject.working()
    assert not await memory.compare_and_set("key", "old", "new")
    assert await memory.compare_and_set("key", ABSENT, {"v": 1, "a": [None, -0.0, 2**70, "\x00"]})
    assert not await memory.compare_and_set("key", ABSENT, "other")
    for other in ({"v": 1}, None, 1, [], {"v": 2, "a": [None, -0.0, 2**70, "\x00"]}, [await memory.get("key")]):
        assert not await memory.compare_and_set("key", other, "other")
    assert await memory.compare_and_set("key", await memory.get("key"), None)
    assert await memory.compare_and_set("key", None, [1, 2])
    assert not await memory.compare_and_set("key", 1, "other"), "a list is not its member"
    assert await memory.compare_and_set("key", [1, 2], "text", importance=0.7)
    with stopped() as clock:
        await memory.set("brief", 1, ttl=1)
        clock.advance(seconds=1)
        assert not await memory.compare_and_set("brief", 1, 2)
        assert await memory.compare_and_set("brief", ABSENT, 3, ttl=timedelta(seconds=1))
        clock.advance(seconds=1)
        assert await memory.get("brief") is None
        assert await memory.compare_and_set("brief", ABSENT, 3)
    assert await memory.to_dict() == {"key": "text", "brief": 3}


@check("W2")
async def of_writers_that_expect_the_same_fact_one_succeeds(subject: Subject) -> None:
    memory = subject.working()
    await memory.set("owner", "nobody")
    calls = [partial(memory.compare_and_set, "owner", "nobody", number) for number in range(12)]
    results = await at_once(subject, calls)
    assert results.count(True) == 1
    assert await memory.get("owner") == results.index(True)
    calls = [partial(memory.compare_and_set, "new", ABSENT, number) for number in range(12)]
    firsts = await at_once(subject, calls)
    assert firsts.count(True) == 1
    assert await memory.get("new") == firsts.index(True)


@check("W2")
async def an_entry_is_replaced_only_if_it_has_the_metadata_of_the_new_one(subject: Subject) -> None:
    memory = subject.working()
    await memory.set("key", "set")
    (there,) = await subject.view.load(memory.namespace)
    marked = there.model_copy(update={"content": "marked", "metadata": {"by": ["a", {"n": 1}]}})
    assert not await subject.view.save_if(memory.namespace, marked, SAME_METADATA)
    await subject.view.save(memory.namespace, marked)
    for metadata in ({}, {"by": ["a", {"n": 2}]}, {"by": ["a"]}, {"by": ["a", {"n": 1}], "also": None}):
        other = marked.model_copy(update={"content": "other", "metadata": metadata})
        assert not await subject.view.save_if(memory.namespace, other, SAME_METADATA)
    again = marked.model_copy(update={"content": "again"})
    assert await subject.view.save_if(memory.namespace, again, SAME_METADATA)
    elsewhere = subject.view.save_if(subject.namespace("other"), again, SAME_METADATA)
    await subject.refuses(InvalidEntryError, elsewhere)  # the id is this fact's
    assert await memory.to_dict() == {"key": "again"}
    await memory.delete("key")
    assert not await subject.view.save_if(memory.namespace, again, SAME_METADATA)
    assert await memory.to_dict() == {}


@check("W3")
async def facts_as_a_text_are_a_line_each(subject: Subject) -> None:
    memory = subject.working()
    await memory.set("doc_type", "invoice")
    await memory.set("total", {"amount": 12.5, "currency": "€"})
    await memory.set("paid", value=True)
    await memory.set("note", "first\n- second: line")
    assert await memory.to_context_string() == (
        "Working Memory:\n- doc_type: invoice\n"
        '- total: {"amount": 12.5, "currency": "€"}\n- paid: true\n- note: first\n  - second: line'
    )


@check("W3")
async def no_fact_can_look_like_two(subject: Subject) -> None:
    memory = subject.working()
    for number, end in enumerate(LINE_ENDS):
        await memory.set(f"key {number}{end}- forged: key", f"text{end}- forged: text")
        await memory.set(f"list {number}", [f"member{end}- forged: member"])
    lines = (await memory.to_context_string()).splitlines()
    assert lines[0] == "Working Memory:"
    assert not [line for line in lines if line.startswith("- forged")]
    assert len([line for line in lines if line.startswith("- ")]) == 2 * len(LINE_ENDS)
    assert {line[:2] for line in lines[1:]} == {"- ", "  "}
