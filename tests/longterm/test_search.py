"""The search over facts: filters, places, pages, and that nothing in a query is syntax."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from firefly_memory import ConfigurationError, InvalidEntryError
from firefly_memory.search import searching
from firefly_memory.search.hits import MODES
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.knowledge_stores import Letters
from tests.support.long_term_stores import Make

SOME = pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("memory", Mode.BLOCKING),
        ("sqlite", Mode.SUSPENDING),
        ("asyncpg", Mode.SUSPENDING),
        ("psycopg", Mode.BLOCKING),
        ("mongodb", Mode.BLOCKING),
        ("mongodb", Mode.SUSPENDING),
    ],
)
"""Each kind of store and each mode: the flows of both are the same."""

RANKED = [mode for mode in MODES if mode != "fuzzy"]


async def keys(service: Memory, query: str, mode: str = "fuzzy", limit: int = 100, **options: Any) -> list[str]:
    return [hit.fact.key for hit in await service.search_facts(query, limit=limit, mode=mode, **options)]


@SOME
async def test_common_words_find_what_passes_where_all_facts_with_rare_ones_are_left_out(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a place where the common words have more facts than a search asks the database for."""
    monkeypatch.setattr(searching, "POSTINGS", 2)
    service = make()
    await service.set_fact("doubtful", "the boat of the zebra", confidence=0.2)
    for number in range(4):
        await service.set_fact(f"sure_{number}", "a boat with an engine")
    assert await keys(service, "boat of the zebra", "text", min_confidence=None) == ["doubtful"]
    assert await keys(service, "boat of the zebra", "text") == [f"sure_{number}" for number in range(4)]


@SOME
async def test_filters_leave_out_facts_before_the_limit_does(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a place with more facts than a search looks at: those that pass are few, and not the best."""
    monkeypatch.setattr(searching, "CANDIDATES", 2)
    monkeypatch.setattr(searching, "NEAREST", 2)
    service = make(embedder=Letters())
    await service.set_fact("boat", "boat of a doubtful kind", confidence=0.2)
    for number in range(4):
        await service.set_fact(f"boat boat {number}", "boat", confidence=0.4)
        await service.set_fact(f"the boat {number}", "boat", fact_type="correction")
    await service.set_fact("sure", "one boat among many other things", confidence=0.9)
    await service.set_fact("type", "one boat among many other things", fact_type="our own % type", confidence=0.6)
    for mode in MODES:
        assert await keys(service, "boat", mode, 1, fact_types=["world_knowledge"]) == ["sure"], mode
        assert await keys(service, "boat", mode, 1, fact_types=["our own % type", "\ud800"]) == ["type"], mode
        assert await keys(service, "boat", mode, 1, fact_types=["relationship"]) == [], mode
        assert await keys(service, "boat", mode, 1, fact_types=[]) == [], mode
        among = ["world_knowledge", "our own % type"]
        assert set(await keys(service, "boat", mode, 2, fact_types=among)) == {"sure", "type"}, mode
        assert await keys(service, "boat", mode, 9, fact_types=among, min_confidence=0.6000001) == ["sure"], mode
        assert set(await keys(service, "boat", mode, 2, fact_types=among, min_confidence=0.6)) == {"sure", "type"}, mode
        every = await keys(service, "boat", mode, 2, min_confidence=0.0)
        assert every == await keys(service, "boat", mode, 2, min_confidence=None), mode
        assert len(every) == 2


@SOME
async def test_no_filter_finds_what_another_place_or_space_has(make: Make) -> None:
    service, other = make(embedder=Letters()), make(embedder=Letters(), space=uuid4().hex)
    ids = {"session_id": "s", "user_id": "u", "agent_id": "a"}
    for each in (service, other):
        for scope in ("session", "user", "agent", "global"):
            mine = {f"{scope}_id": ids[f"{scope}_id"]} if scope != "global" else {}
            await each.set_fact("boat", f"{scope} boat of {each.space}", scope=scope, **mine)
            if mine:
                await each.set_fact("boat", "another boat", scope=scope, **{f"{scope}_id": "another"})
    for mode in MODES:
        for names in ((), ("user_id",), ("session_id", "agent_id"), ("session_id", "user_id", "agent_id")):
            found = await service.search_facts(
                "boat", mode=mode, fact_types=["world_knowledge"], **{name: ids[name] for name in names}
            )
            values = {hit.fact.value for hit in found}
            seen = ["global", *(name.removesuffix("_id") for name in names)]
            assert values == {f"{scope} boat of {service.space}" for scope in seen}, (mode, names)
        for name in ids:
            found = await service.search_facts("boat", mode=mode, **{name: "unknown"})
            assert [hit.fact.scope for hit in found] == ["global"], mode


HOSTILE = [
    "%", "_", "100%", "a_b", "\\", "\\%", "'", '"', "''; --", "') OR 1=1 --", "*", "boat*", '"boat"', "NEAR(a b)", "a AND b", "-a", "(", "[a-z]",
    ".*", "^a$", "$where", "$$ROOT", "{}", "{'$ne': 1}", "null", ":pattern", "%(pattern)s", "$1", "?", "|", "&", "!", "\x00", "a\x00b", "\ud800",
    "\u202eabc\u202c", "שלום", "مرحبا بك", "上海", "我在上海", "😀", "👩‍👩‍👧", "ﬁsh", "İstanbul", "Straße", "cafe\u0301", "\u0345", "\x1e", "\u2028", "+00:00",
]  # fmt: skip


@SOME
async def test_nothing_in_a_query_is_syntax(make: Make) -> None:
    service = make(embedder=Letters())
    for text in HOSTILE:
        await service.set_fact(f"key of {text}", f"value: {text}!", fact_type=f"type {text}")
    await service.set_fact("plain", "words")
    every = {f"key of {text}" for text in HOSTILE}
    for text in HOSTILE:
        found = set(await keys(service, f"value: {text}!"))
        assert f"key of {text}" in found, ascii(text)
        assert "plain" not in found
        if text.strip(" -_\x1e\u2028") and text != "\u0345":
            assert found != every, ascii(text)
        assert await keys(service, "key of", fact_types=[f"type {text}"]) == [f"key of {text}"], ascii(text)
        for mode in ("text", "hybrid"):
            hits = await service.search_facts(text, mode=mode, fact_types=[f"type {text}", "'"])
            assert {hit.fact.key for hit in hits} <= {f"key of {text}"}, ascii(text)
    assert await keys(service, "boat%") == await keys(service, "w%ds") == await keys(service, "w.rds") == []


@pytest.mark.thorough
@SOME
async def test_texts_of_a_megabyte_are_values_and_queries(make: Make) -> None:
    service = make(embedder=None)
    words = " ".join(f"word{number}" for number in range(120_000))
    assert len(words) > 1_000_000
    await service.set_fact("long", f"{words} at last")
    await service.set_fact("of one word", "x" * 1_000_000)
    await service.set_fact("short", "word7")
    assert await keys(service, "at last") == ["long"]
    assert await keys(service, "word7 last") == ["long"]
    assert await keys(service, "x" * 1_000_000) == await keys(service, "xx") == ["of one word"]
    assert await keys(service, "x" * 1_000_001) == []
    assert await keys(service, words) == ["long"]
    assert await keys(service, f"{words} word1") == []
    assert await keys(service, " ".join("x" * 50_000)) == ["of one word"]
    assert set(await keys(service, "word7", "text")) == {"short", "long"}
    for mode in ("text", "best"):
        assert set(await keys(service, "word7 " * 100_000, mode)) == {"short", "long"}


@SOME
async def test_pages_go_on_while_facts_change(make: Make) -> None:
    service = make()
    facts = [await service.set_fact(f"boat {number}", 1, confidence=number / 10) for number in (9, 8, 7, 6, 5)]
    first = await service.search_facts("boat", limit=2)
    assert [hit.fact.key for hit in first] == ["boat 9", "boat 8"]
    assert await service.delete_fact(facts[1].id), "that of the cursor"
    await service.set_fact("boat above", 1, confidence=0.95)
    await service.set_fact("boat below", 1, confidence=0.65)
    await service.contradict_fact(facts[2].id)  # 0.7 becomes 0.56
    second = await service.search_facts("boat", limit=2, after=first.next)
    assert [hit.fact.key for hit in second] == ["boat below", "boat 6"]
    third = await service.search_facts("boat", limit=2, after=second.next)
    assert ([hit.fact.key for hit in third], third.next) == (["boat 7", "boat 5"], None)
    assert (await service.search_facts("boat", limit=2, after=first.next)).items == second.items
    assert [hit.ranks for hit in second] == [{"fuzzy": 1}, {"fuzzy": 2}]


@SOME
async def test_a_ranked_search_is_one_list_of_at_most_a_hundred(make: Make) -> None:
    service = make(embedder=Letters())
    for number in range(101):
        await service.set_fact(f"boat {number}", number)
    for mode in RANKED:
        hits = await service.search_facts("boat", limit=100, mode=mode)
        assert (len(hits), hits.next) == (100, None), mode
        with pytest.raises(InvalidEntryError, match=f"limit: must be at most 100 with mode='{mode}'"):
            await service.search_facts("boat", limit=101, mode=mode)
        with pytest.raises(InvalidEntryError, match=f"after: goes with mode='fuzzy'; mode='{mode}' gives one list"):
            await service.search_facts("boat", mode=mode, after="1.0/2024-05-06T00:00:00+00:00/x")
    assert len(await service.search_facts("boat", limit=101)) == 101


@SOME
async def test_an_explanation_says_how_a_hit_came_about(make: Make) -> None:
    service = make(embedder=Letters())
    await service.set_fact("user_boat", "a boot", confidence=0.75)
    await service.set_fact("other", "zzz")
    (hit,) = await service.search_facts("A-boot", explain=True)
    assert (hit.score, hit.ranks, hit.text) == (0.75, {"fuzzy": 1}, "user_boat: a boot")
    assert hit.explanation.scores == {"fuzzy": 0.75}
    (hit,) = await service.search_facts("boats of users", mode="text", explain=True)
    assert (hit.ranks, set(hit.explanation.text.words)) == ({"text": 1}, {"boat", "user"})
    assert hit.explanation.semantic is None
    (hit, *_) = await service.search_facts("boat user boot a", mode="semantic", explain=True)
    assert (hit.fact.key, hit.ranks) == ("user_boat", {"semantic": 1})
    assert hit.explanation.semantic.cosine > 0.9
    (hit, *_) = await service.search_facts("boat user boot a", mode="hybrid", explain=True)
    assert (hit.fact.key, hit.ranks) == ("user_boat", {"text": 1, "semantic": 1})
    assert hit.explanation.scores.keys() == {"text", "semantic"}
    for mode in MODES:
        assert [hit.explanation for hit in await service.search_facts("boot", mode=mode, limit=1)] == [None]
    with pytest.raises(ConfigurationError, match="explain"):
        await service.search_facts("boat", explain="yes")


@SOME
async def test_a_fact_is_found_by_what_it_says_now(make: Make) -> None:
    service = make(embedder=Letters())
    fact = await service.set_fact("vehicle", "boat boat boat", confidence=0.6)
    await service.set_fact("vehicle", "zug", confidence=0.7)
    for mode in MODES:
        assert await keys(service, "boat", mode) == (["vehicle"] if mode not in ("text", "fuzzy") else []), mode
        (hit,) = await service.search_facts("zug", mode=mode, min_confidence=0.65, explain=True)
        assert (hit.id, hit.fact.value) == (fact.id, "zug")
    (hit,) = await service.search_facts("zug", mode="semantic", explain=True)
    assert hit.explanation.semantic.cosine == pytest.approx(0.5, abs=0.2), "the vector is that of the new value"
    await service.contradict_fact(fact.id)
    for mode in MODES:
        assert await keys(service, "zug", mode, min_confidence=0.65) == [], mode
        assert await keys(service, "zug", mode) == ["vehicle"], mode
    await service.confirm_fact(fact.id)
    await service.confirm_fact(fact.id)
    await service.set_fact("vehicle", "zug", fact_type="correction")
    for mode in MODES:
        assert await keys(service, "zug", mode, min_confidence=0.65, fact_types=["correction"]) == ["vehicle"], mode
        assert await keys(service, "zug", mode, fact_types=["world_knowledge"]) == [], mode
    assert await service.delete_fact(fact.id)
    for mode in MODES:
        assert await keys(service, "zug", mode) == []


@SOME
async def test_a_merged_person_is_searched_by_each_of_their_ids(make: Make) -> None:
    service = make(embedder=Letters())
    ann, mail, third = [(await service.get_or_create_user("web", name)).canonical_id for name in ("ann", "mail", "c")]
    await service.set_fact("boat", "blue", scope="user", user_id=ann)
    await service.set_fact("boat", "red", scope="user", user_id=mail)
    await service.set_fact("home", "boat house", scope="user", user_id=mail)
    await service.set_fact("dream", "a bigger boat", scope="user", user_id=third)
    await service.set_fact("boat", "a stranger's", scope="user", user_id="web:stranger")
    await service.merge_users(mail, ann)
    await service.merge_users(ann, third)
    for mode in MODES:
        found = [
            {(hit.fact.key, hit.fact.value) for hit in await service.search_facts("boat", mode=mode, user_id=name)}
            for name in (ann, mail, third)
        ]
        assert found == [{("boat", "blue"), ("home", "boat house"), ("dream", "a bigger boat")}] * 3, mode
        assert await keys(service, "boat", mode) == []
