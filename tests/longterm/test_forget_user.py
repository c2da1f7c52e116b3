"""``forget_user()``, on every kind of store, in both modes. What an erasure does is in ``test_people.py``."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConflictError, ConversationMemory, EntryStore, ErasedError, InvalidEntryError, SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.erasure import async_find_text, async_readmit
from firefly_memory.longterm import MemoryService
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.backends import Place
from tests.support.stored_facts import KINDS, kept, opened

IDS = ["web:Ann", "mail:Ann"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    async with opened(request.param, place, new_sqlite_file, "users_to_forget") as store:
        yield store
        for each in IDS:
            await async_readmit(store, each)


@pytest.fixture(params=Mode)
def mode(request: pytest.FixtureRequest) -> Mode:
    mode: Mode = request.param
    return mode


def service_in(store: EntryStore, mode: Mode, space: str) -> Memory:
    return Memory(MemoryService(store, space=space, embedder=None), mode)


async def ann_in(service: Memory) -> None:
    for each in IDS:
        await service.get_or_create_user(*each.split(":"), "Ann")
        await service.set_fact("colour", f"of {each}", scope="user", user_id=each)
    await service.merge_users(IDS[1], IDS[0])


async def test_a_person_is_forgotten_with_all_that_others_have_of_them(store: EntryStore, mode: Mode) -> None:
    service = service_in(store, mode, "here")
    await ann_in(service)
    await ConversationMemory(store=store).async_add_turn("chat", "I am Ann", "Hello Ann", owner=IDS[1])
    seen: list[int] = []
    counted = await service.forget_user(IDS[0], dry_run=True)
    receipt = await service.forget_user(IDS[1], progress=lambda rows: seen.append(sum(rows.values())))
    rows = {"conversations": 1, "turns": 1, "facts": 1, "fact-versions": 1, "users": 2}
    assert counted.rows == receipt.rows == rows
    assert (counted.is_dry_run, receipt.is_dry_run) == (True, False)
    assert (seen[-1], receipt.further_ids) == (6, 1)
    assert await async_find_text(store, "Ann") == {}
    for each in IDS:
        with pytest.raises(ErasedError):
            await service.get_or_create_user(*each.split(":"))


async def test_somebody_who_is_not_known_is_erased_by_the_id_alone(store: EntryStore, mode: Mode) -> None:
    service = service_in(store, mode, "here")
    assert (await service.forget_user(IDS[0])).rows == {}
    assert await async_readmit(store, IDS[0])
    await ConversationMemory(store=store).async_add_turn("chat", "I am Ann", "Hello Ann", owner=IDS[0])
    receipt = await service.forget_user(IDS[0])
    assert (receipt.rows, receipt.further_ids) == ({"conversations": 1, "turns": 1}, 0)
    with pytest.raises(InvalidEntryError, match="user_id: must not be empty"):
        await service.forget_user("")


async def _said_before(memory: Memory) -> None:
    for value, user_id in enumerate((IDS[0], "web:Bob")):
        await memory.set_fact("k", value, scope="global", user_id=user_id)


ELSEWHERE: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "a person": lambda memory: memory.get_or_create_user("web", "Ann"),
    "a merged person": lambda memory: memory.get_or_create_user("mail", "Ann"),
    "a fact": lambda memory: memory.set_fact("k", 1, scope="user", user_id=IDS[1]),
    "a global fact": lambda memory: memory.set_fact("k", 1, scope="global", user_id=IDS[0]),
    "what a fact was before": _said_before,
}
"""What another space has of Ann."""


async def test_what_another_space_has_of_a_person_is_not_deleted_unasked(store: EntryStore, mode: Mode) -> None:
    for what, write in ELSEWHERE.items():
        here, elsewhere = (service_in(store, mode, space) for space in ("here", "the secret tenant"))
        await ann_in(here)
        await write(elsewhere)
        before = await kept(store)
        for dry_run in (True, False):
            with pytest.raises(ConflictError, match=r"nothing was deleted: .* all_spaces=True") as refused:
                await here.forget_user(IDS[0], dry_run=dry_run)
            assert "secret" not in str(refused.value)
        assert await kept(store) == before, what
        await here.set_fact("colour", "still written", scope="user", user_id=IDS[0])
        receipt = await here.forget_user(IDS[0], all_spaces=True)
        assert receipt.rows["facts"] > 0, what
        facts, versions, people = await kept(store)
        assert (versions, people) == ([], []), what
        assert [row.owner for row in facts] == (["web:Bob"] if what == "what a fact was before" else []), what
        for each in IDS:
            await async_readmit(store, each)


async def test_other_people_of_another_space_hold_nothing_up(store: EntryStore, mode: Mode) -> None:
    here, elsewhere = service_in(store, mode, "here"), service_in(store, mode, "there")
    await ann_in(here)
    await elsewhere.get_or_create_user("web", "Bob")
    await elsewhere.set_fact("k", 1, scope="user", user_id="web:Bob")
    await elsewhere.set_fact("k", 1)
    assert (await here.forget_user(IDS[0])).rows["users"] == 2
    assert len(await elsewhere.list_users()) == len(await elsewhere.get_user_facts("web:Bob")) == 1


def test_the_command_says_how_many_ids_are_erased(
    place: Place, new_sqlite_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shutil.copy(new_sqlite_file, place.directory / "memory.db")
    url = f"sqlite:///{path}"
    with SQLiteStore(path) as store:
        memory = MemoryService(store, embedder=None)
        for each in (*IDS, "telegram:Ann"):
            memory.get_or_create_user(*each.split(":"))
        for each in (IDS[1], "telegram:Ann"):
            memory.merge_users(each, IDS[0])
    forget = ["forget", IDS[1], "--url", url]
    assert main([*forget, "--dry-run"]) == Exit.DONE
    assert capsys.readouterr().out.splitlines()[:2] == [
        "would delete 3 rows of users",
        "further ids of this person that would be erased as well: 2",
    ]
    assert main(forget) == Exit.USAGE
    assert "this would delete 3 rows of this person, of 3 ids. Pass --yes" in capsys.readouterr().err
    assert main([*forget, "--yes", "--json"]) == Exit.DONE
    said = capsys.readouterr().out
    assert json.loads(said)["further_ids"] == 2
    assert "Ann" not in said
    assert main(["forget", "web:nobody", "--url", url, "--yes"]) == Exit.DONE
    assert "further" not in capsys.readouterr().out
