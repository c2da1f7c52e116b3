"""Owners of conversations in archives and copies."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from firefly_memory import ConflictError, ConversationMemory, InMemoryStore, SQLiteStore
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.copying import copy_store


def filled() -> InMemoryStore:
    store = InMemoryStore()
    memory = ConversationMemory(store=store)
    memory.add_turn("of ann", "p", "a", owner="ann \x00é")
    memory.new_conversation("empty", owner="ann \x00é")
    memory.add_turn("of nobody", "p", "a")
    return store


def archive(store: InMemoryStore) -> str:
    lines = io.StringIO()
    export_jsonl(store, lines)
    return lines.getvalue()


def owners(store: Any) -> dict[str, str | None]:
    return {each.conversation_id: each.owner for each in ConversationMemory(store=store).list_conversations()}


OWNERS = {"of ann": "ann \x00é", "empty": "ann \x00é", "of nobody": None}


def test_archives_and_copies_have_the_owners() -> None:
    with filled() as source, SQLiteStore(":memory:") as imported, SQLiteStore(":memory:") as copied:
        for _ in range(2):  # the second time changes nothing
            import_jsonl(imported, io.StringIO(archive(source)))
            assert copy_store(source, copied).equal
        assert owners(imported) == owners(copied) == OWNERS


def test_an_archive_of_an_earlier_version_has_no_owners() -> None:
    lines = []
    for line in archive(filled()).splitlines():
        item = json.loads(line)
        item.get("conversation", {}).pop("owner", None)
        lines.append(json.dumps(item) + "\n")
    with InMemoryStore() as target:
        import_jsonl(target, io.StringIO("".join(lines)))
        assert owners(target) == dict.fromkeys(OWNERS)


def test_an_untrusted_archive_says_not_whose_conversations_they_are() -> None:
    with InMemoryStore() as target:
        for _ in range(2):
            import_jsonl(target, io.StringIO(archive(filled())), untrusted=True)
        assert owners(target) == dict.fromkeys(OWNERS)


@pytest.mark.parametrize("owner", [None, "bob"])
@pytest.mark.parametrize("name", ["of ann", "empty"])
def test_a_conversation_of_another_owner_gets_no_turn(name: str, owner: str | None) -> None:
    with filled() as source, InMemoryStore() as target:
        ConversationMemory(store=target).new_conversation(name, owner=owner)
        with pytest.raises(ConflictError):
            import_jsonl(target, io.StringIO(archive(source)))
        for merge in (False, True):
            with pytest.raises(ConflictError):
                copy_store(source, target, merge=merge)
        assert owners(target)[name] == owner
        assert ConversationMemory(store=target).get_turns(name) == []


def test_an_untrusted_archive_adds_nothing_to_the_conversation_of_a_person() -> None:
    with filled() as source, InMemoryStore() as target:
        memory = ConversationMemory(store=target)
        memory.new_conversation("of ann", owner="ann \x00é")
        with pytest.raises(ConflictError):
            import_jsonl(target, io.StringIO(archive(source)), untrusted=True)
        assert memory.get_turns("of ann") == []
