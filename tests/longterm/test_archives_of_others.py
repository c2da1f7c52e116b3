"""Archives of others, which may be wrong in each line, or made to harm."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from firefly_memory import CorruptDataError, EntryStore, ErasedError, InMemoryStore
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.erasure import erase
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.moving import Item
from firefly_memory.transfer.counts import Counts
from tests.support.stored_facts import START

ANN, ALSO = "web:ann \x00☃", "mail:ann"


@pytest.fixture
def target() -> Iterator[EntryStore]:
    with InMemoryStore() as store:
        yield store


def archive(*items: tuple[str, Item]) -> list[str]:
    header = {"format": "firefly-memory-archive/1", "created_at": START.isoformat(), "raw_messages": True}
    plurals = {"user": "users", "fact": "facts", "fact-version": "fact_versions"}
    numbers = {plurals[name]: sum(kind == name for kind, _ in items) for name in plurals}
    return [json.dumps(line) for line in (header, *({kind: item} for kind, item in items), {"end": numbers})]


AT = START.isoformat()

FACT: Item = {
    "id": "f", "space": "default", "scope": "user", "scope_id": ANN, "owner": ANN, "key": "k", "value": {"~str": "\\u0000"},
    "fact_type": "t", "confidence": 1, "times_confirmed": 1, "times_contradicted": 0, "source_episode_id": None,
    "versions": 2, "access_count": 0, "last_accessed": None, "valid_from": AT, "created_at": AT, "updated_at": AT,
    "language": "english",
}  # fmt: skip
VERSION: Item = {
    "fact_id": "f", "space": "default", "number": 1, "owner": None, "value": 1, "confidence": 0.5, "source_episode_id": "e",
    "valid_from": AT, "superseded_at": AT,
}  # fmt: skip
USER: Item = {
    "id": "u", "space": "default", "canonical_id": ANN, "telegram_id": None, "email": "x", "display_name": None,
    "total_conversations": 0, "last_conversation_at": None, "merged_into": None, "merged_into_id": None, "first_seen": AT,
    "updated_at": AT,
}  # fmt: skip

NAMES: list[Any] = [None, 7, "", "x" * 513, ["a"]]
INSTANTS: list[Any] = [7, "", "2026-05-06", "2026-05-06T00:00:00", "0001-01-01T00:00:00+23:00"]
NUMBERS: list[Any] = [None, -1, 1.0, "1", True, 2**53 + 1]
CONFIDENCES: list[Any] = [None, -0.1, 1.1, "1", True, 10**400]

WRONG: dict[str, dict[str, list[Any]]] = {
    "user": {
        **dict.fromkeys(("id", "canonical_id"), NAMES),
        "space": [*NAMES, "x" * 129],
        **{each: [7, "", "x" * 321] for each in ("telegram_id", "email")},
        "display_name": [7, "", "x" * 513],
        "total_conversations": NUMBERS,
        "last_conversation_at": INSTANTS,
        "merged_into": [7, "", "x" * 513, "web:nobody", ANN],
        **{each: [None, *INSTANTS] for each in ("first_seen", "updated_at")},
    },
    "fact": {
        **dict.fromkeys(("id", "key", "fact_type"), NAMES),
        "space": [*NAMES, "x" * 129],
        "scope": [None, "all", ["user"], "global"],
        "scope_id": [None, 7, "", "web:bob"],
        "owner": [None, 7, "", "web:bob"],
        "value": [{"~str": 7}, {"~nonsense": 1}, {"~int": "z"}, "x" * 4_000_001],
        "confidence": CONFIDENCES,
        **dict.fromkeys(("times_confirmed", "times_contradicted", "versions", "access_count"), NUMBERS),
        "source_episode_id": [7, ""],
        "last_accessed": INSTANTS,
        **{each: [None, *INSTANTS] for each in ("valid_from", "created_at", "updated_at")},
        "language": [None, "klingon", 7],
    },
    "fact-version": {
        "fact_id": [None, 7, "", "another"],
        "number": [*NUMBERS, 0, 3],
        "owner": [7, ""],
        "value": [{"~str": 7}, "x" * 4_000_001],
        "confidence": CONFIDENCES,
        "source_episode_id": [7, ""],
        **{each: [None, *INSTANTS] for each in ("valid_from", "superseded_at")},
    },
}
ITEMS = {"user": USER, "fact": FACT, "fact-version": VERSION}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, fields in WRONG.items() for name in fields])
def test_a_damaged_field_is_refused_by_its_line(kind: str, name: str) -> None:
    line = 2 + [*ITEMS].index(kind)
    lacking = {key: value for key, value in ITEMS[kind].items() if key != name}
    for damaged in (lacking, *({**ITEMS[kind], name: value} for value in WRONG[kind][name])):
        with InMemoryStore() as store:
            with pytest.raises(CorruptDataError, match=f"line {line} of the archive") as caught:
                import_jsonl(store, archive(*({**ITEMS, kind: damaged}.items())))
            assert len(str(caught.value)) < 1_000


def test_the_items_of_the_tests_of_damage_are_right(target: EntryStore) -> None:
    assert import_jsonl(target, archive(*ITEMS.items())) == Counts(users=1, facts=1, fact_versions=1)
    fact = MemoryService(target, embedder=None).find_fact("k", "user", user_id=ANN)
    assert fact is not None
    assert (fact.value, fact.confidence) == ("\x00", 1.0)


@pytest.mark.parametrize(
    "items",
    [
        [("fact-version", VERSION)],
        [("fact", FACT), ("fact-version", VERSION), ("fact-version", VERSION)],
        [("fact", FACT), ("user", USER), ("fact-version", VERSION)],
        [("fact", FACT), ("fact", {**FACT, "id": "g", "key": "g"}), ("fact-version", VERSION)],
    ],
)
def test_versions_that_come_where_they_should_not_are_refused(
    items: list[tuple[str, Item]], target: EntryStore
) -> None:
    with pytest.raises(CorruptDataError, match=f"line {len(items) + 1} of the archive"):
        import_jsonl(target, archive(*items))


def test_a_person_whose_other_record_is_missing_is_told_from_one_who_is_deleted(target: EntryStore) -> None:
    memory = MemoryService(target, embedder=None)
    for person in (ANN, ALSO):
        memory.get_or_create_user(*person.split(":"))
    memory.merge_users(ALSO, ANN)
    kept_rows = target.blocking.log(LONG_TERM_LOG).people._kept  # type: ignore[attr-defined]
    kept_rows.remove_person(kept_rows.people[memory.get_user(ANN).id])  # type: ignore[union-attr]
    with pytest.raises(CorruptDataError, match="the person for whom it stands is missing"):
        export_jsonl(target, io.StringIO())


def test_a_forged_owner_of_a_persons_fact_is_refused(target: EntryStore) -> None:
    """By it, facts could be stored of a person who was erased."""
    erase(target, ANN)
    with pytest.raises(ErasedError):
        import_jsonl(target, archive(("fact", FACT)))
    with pytest.raises(CorruptDataError, match="owner: of a fact in the scope 'user' is the user"):
        import_jsonl(target, archive(("fact", {**FACT, "owner": "web:bob"})))
