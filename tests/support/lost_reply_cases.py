"""What callers do while the answers of their server get lost, and what others do at the same moment."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar

from firefly_memory import ABSENT, ConversationMemory, EntryStore, ErasedError, MemoryEntry, WorkingMemory, clock
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.facets import LogOf
from firefly_memory.identifiers import stored_text
from firefly_memory.protocols import SAME_METADATA
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from firefly_memory.tombstones.log import (
    TOMBSTONES,
    TombstoneLog,
    conversation_identity,
    namespace_identity,
    owner_identity,
)

T = TypeVar("T")

MANY = 80
"""More conversations than a test has."""


class Uses:
    """What a test does with one store, in a namespace, a scope and conversations of its own; all to be awaited."""

    cleanup_expired: Callable[[], Coroutine[Any, Any, int]]

    def __init__(self, store: EntryStore, mode: Mode, name: str) -> None:
        self.name = name
        self.cleanup_expired = store.cleanup_expired
        self.close = store.close
        if mode is Mode.BLOCKING:
            self.cleanup_expired = _awaited(store.cleanup_expired_sync)
            self.close = _awaited(store.close_sync)
        self.store = Memory(store, mode)
        self.facts = Memory(WorkingMemory(store=store, scope_id=name), mode)
        self._view = store.blocking if mode is Mode.BLOCKING else store.suspending
        self.log = self._view.log(CONVERSATION_LOG)
        self.turns = Memory(ConversationMemory(store=store), mode)
        self.summaries = Memory(
            ConversationMemory(store=store, summarize_threshold=1, summarizer=lambda _: "short"), mode
        )

    def log_of(self, of: LogOf[T]) -> T:
        return self._view.log(of)

    @property
    def tombstones(self) -> TombstoneLog:
        return self._view.log(TOMBSTONES)


def _awaited(call: Callable[[], T]) -> Callable[[], Coroutine[Any, Any, T]]:
    async def awaited() -> T:
        return call()

    return awaited


Uncertain = Callable[[Uses], Coroutine[Any, Any, Any]]


Doubts = Literal["never", "if not done", "always"]
"""When a call says that nobody knows whether it was done."""


@dataclass(frozen=True)
class Act:
    """Something that is done while answers get lost."""

    do: Uncertain
    look: Uncertain
    """What is there afterwards."""
    prepare: Uncertain | None = None
    doubts: Doubts = "if not done"

    def __str__(self) -> str:
        return self.do.__name__


def _there(names: str) -> Uncertain:
    """What is there of entries, facts, or turns."""

    async def look(uses: Uses) -> Any:
        if names == "entries":
            return [(entry.entry_id, entry.content) for entry in await uses.store.load(uses.name)]
        if names == "facts":
            return await uses.facts.to_dict()
        found = {each.conversation_id async for each in _conversations(uses)}
        return [
            (
                name.removeprefix(uses.name),
                [(turn.turn_id, turn.user_prompt) for turn in await uses.turns.get_turns(name)],
                await uses.turns.get_summary(name),
            )
            for name in sorted(found)
        ]

    return look


async def _conversations(uses: Uses) -> Any:
    for each in await uses.turns.list_conversations(limit=MANY):
        if each.conversation_id.startswith(uses.name):
            yield each


ENTRIES, FACTS, TURNS = _there("entries"), _there("facts"), _there("turns")


async def two_entries(uses: Uses) -> None:
    for name in ("1", "2"):
        await uses.store.save(uses.name, MemoryEntry(entry_id=f"{uses.name} {name}", content=name))


async def a_fact(uses: Uses) -> None:
    await uses.facts.set("n", 5)


async def two_turns(uses: Uses) -> None:
    for prompt in ("first", "second"):
        await uses.turns.add_turn(uses.name, prompt, "answer")


async def expired_entries(uses: Uses) -> None:
    soon = clock.now() + timedelta(microseconds=1)
    for _ in range(3):
        await uses.store.save(uses.name, MemoryEntry(expires_at=soon))


async def save_new(uses: Uses) -> None:
    await uses.store.save(uses.name, MemoryEntry(entry_id=f"{uses.name} 3", content=[1, "\x00"], metadata={"a": 1.0}))


async def save_over(uses: Uses) -> None:
    await uses.store.save(uses.name, MemoryEntry(entry_id=f"{uses.name} 1", key="k", content={"b": 1, "a": 2}))


async def save_many(uses: Uses) -> None:
    await uses.store.save_many(
        uses.name, [MemoryEntry(entry_id=f"{uses.name} {number}", content=number) for number in range(3)]
    )


async def delete(uses: Uses) -> None:
    await uses.store.delete(uses.name, f"{uses.name} 1")


async def delete_many(uses: Uses) -> Any:
    return await uses.store.delete_many(uses.name, [f"{uses.name} 1", "unknown"])


async def clear(uses: Uses) -> None:
    await uses.store.clear(uses.name)


async def cleanup_expired(uses: Uses) -> Any:
    return await uses.cleanup_expired()


async def set_fact(uses: Uses) -> None:
    await uses.facts.set("n", 6)


async def increment(uses: Uses) -> Any:
    return await uses.facts.increment("n")


async def increment_new(uses: Uses) -> Any:
    return await uses.facts.increment("new")


async def compare_and_set(uses: Uses) -> Any:
    return await uses.facts.compare_and_set("n", 5, "mine")


async def set_if_absent(uses: Uses) -> Any:
    return await uses.facts.compare_and_set("lock", ABSENT, "mine")


async def save_if_same_metadata(uses: Uses) -> Any:
    mine = MemoryEntry(entry_id=f"{uses.name} 1", content="mine")
    return await uses.store.save_if(uses.name, mine, SAME_METADATA)


async def delete_fact(uses: Uses) -> None:
    await uses.facts.delete("n")


async def new_conversation(uses: Uses) -> Any:
    return await uses.turns.new_conversation(f"{uses.name} new") == f"{uses.name} new"


async def add_turn(uses: Uses) -> Any:
    return (await uses.turns.add_turn(uses.name, "third", "answer")).turn_id


async def add_first_turn(uses: Uses) -> Any:
    return (await uses.turns.add_turn(f"{uses.name} first", "first", "answer")).turn_id


async def add_first_turn_of_an_owner(uses: Uses) -> None:
    assert (await uses.turns.add_turn(uses.name, "p", "a", owner="ann")).turn_id == 0
    assert (await uses.turns.get_window(uses.name, owner="ann")).total_turns == 1


async def new_conversation_of_an_owner(uses: Uses) -> None:
    await uses.turns.new_conversation(uses.name, owner="ann")
    assert (await uses.turns.get_window(uses.name, owner="ann")).total_turns == 0


async def add_turn_with_key(uses: Uses) -> Any:
    return (await uses.turns.add_turn(uses.name, "third", "answer", idempotency_key="run")).turn_id


async def add_turn_expected(uses: Uses) -> Any:
    return (await uses.turns.add_turn(uses.name, "third", "answer", expected_turns=2)).turn_id


async def fork(uses: Uses) -> Any:
    return await uses.turns.fork_conversation(uses.name, f"{uses.name} fork") == f"{uses.name} fork"


async def summarize(uses: Uses) -> Any:
    return await uses.summaries.summarize(uses.name)


async def clear_conversation(uses: Uses) -> None:
    await uses.turns.clear(uses.name)


async def delete_as_seen(uses: Uses) -> Any:
    name = stored_text(uses.name)
    (seen,) = [each for each in await uses.log.page(MANY, None, None, "updated") if each.conversation_id == name]
    return await uses.log.delete(name, stored_facts_of(name), seen)


async def clear_all(uses: Uses) -> None:
    await uses.turns.clear_all()


async def refuse(uses: Uses) -> Any:
    """As erasing a person does."""
    await uses.tombstones.add([owner_identity(uses.name), conversation_identity(uses.name)], uses.name, clock.now())
    return await uses.tombstones.are_there([conversation_identity(uses.name)])


async def readmit(uses: Uses) -> Any:
    return await uses.tombstones.remove(uses.name)


async def add_refused_turn(uses: Uses) -> Any:
    try:
        return await uses.turns.add_turn(uses.name, "p", "a")
    except ErasedError:
        return "refused"


async def set_refused_fact(uses: Uses) -> Any:
    try:
        return await uses.facts.set("n", 1)
    except ErasedError:
        return "refused"


async def erased(uses: Uses) -> None:
    scope = namespace_identity(f"working:{uses.name}")
    identities = [owner_identity(uses.name), conversation_identity(uses.name), scope]
    await uses.tombstones.add(identities, uses.name, clock.now())


async def refused(uses: Uses) -> list[bool]:
    identities = owner_identity(uses.name), conversation_identity(uses.name)
    return [await uses.tombstones.are_there([each]) for each in identities]


ERASURES = [
    Act(refuse, refused, doubts="never"),
    Act(readmit, refused, erased, doubts="always"),
    Act(add_refused_turn, TURNS, erased, doubts="never"),
    Act(set_refused_fact, FACTS, erased),
]

ACTS = [
    Act(save_new, ENTRIES, two_entries),
    Act(save_over, ENTRIES, two_entries),
    Act(save_many, ENTRIES, two_entries),
    Act(delete, ENTRIES, two_entries),
    Act(delete_many, ENTRIES, two_entries, doubts="always"),
    Act(clear, ENTRIES, two_entries),
    Act(cleanup_expired, ENTRIES, expired_entries, doubts="always"),
    Act(set_fact, FACTS, a_fact),
    Act(increment, FACTS, a_fact, doubts="always"),
    Act(increment_new, FACTS, doubts="always"),
    Act(compare_and_set, FACTS, a_fact, doubts="always"),
    Act(set_if_absent, FACTS, doubts="always"),
    Act(save_if_same_metadata, ENTRIES, two_entries, doubts="always"),
    Act(delete_fact, FACTS, a_fact),
    Act(new_conversation, TURNS, doubts="never"),
    Act(add_turn, TURNS, two_turns, doubts="never"),
    Act(add_first_turn, TURNS, doubts="never"),
    Act(add_first_turn_of_an_owner, TURNS, doubts="never"),
    Act(new_conversation_of_an_owner, TURNS, doubts="never"),
    Act(add_turn_with_key, TURNS, two_turns, doubts="never"),
    Act(add_turn_expected, TURNS, two_turns, doubts="never"),
    Act(fork, TURNS, two_turns, doubts="never"),
    Act(summarize, TURNS, two_turns, doubts="never"),
    Act(clear_conversation, TURNS, two_turns),
    Act(delete_as_seen, TURNS, two_turns, doubts="never"),
    Act(clear_all, TURNS, two_turns),
    *ERASURES,
]


@dataclass(frozen=True)
class Meeting:
    """An act whose answer is lost, and what somebody else does before that is noticed."""

    do: Uncertain
    other: Uncertain
    kept: Uncertain
    """What must be there in the end: the other's work."""
    expected: Any
    prepare: Uncertain | None = None

    def __str__(self) -> str:
        return f"{self.do.__name__}-{self.other.__name__}"


async def save_the_same_id(uses: Uses) -> None:
    await uses.store.save(uses.name, MemoryEntry(entry_id=f"{uses.name} 1", content="the other's"))


async def delete_the_new_one(uses: Uses) -> None:
    await uses.store.delete(uses.name, f"{uses.name} 3")


async def add_one(uses: Uses) -> None:
    await uses.facts.increment("n")


async def take_the_lock(uses: Uses) -> None:
    assert await uses.facts.compare_and_set("n", ABSENT, "the other's")


async def start_again(uses: Uses) -> None:
    await uses.turns.add_turn(uses.name, "the other's", "answer")


def _fact(key: str) -> Uncertain:
    async def look(uses: Uses) -> Any:
        return await uses.facts.get(key)

    return look


async def the_first_entry(uses: Uses) -> Any:
    return next(entry.content for entry in await uses.store.load(uses.name) if entry.entry_id == f"{uses.name} 1")


async def prompts(uses: Uses) -> Any:
    return [turn.user_prompt for turn in await uses.turns.get_turns(uses.name)]


async def ids(uses: Uses) -> Any:
    return [entry.entry_id.removeprefix(uses.name) for entry in await uses.store.load(uses.name)]


MEETINGS = [
    Meeting(delete, save_the_same_id, the_first_entry, "the other's", two_entries),
    Meeting(clear, save_the_same_id, the_first_entry, "the other's", two_entries),
    Meeting(save_over, save_the_same_id, the_first_entry, "the other's", two_entries),
    Meeting(save_new, delete_the_new_one, ids, [" 1", " 2"], two_entries),
    Meeting(set_fact, add_one, _fact("n"), 7, a_fact),
    Meeting(increment, add_one, _fact("n"), 7, a_fact),
    Meeting(delete_fact, take_the_lock, _fact("n"), "the other's", a_fact),
    Meeting(clear_conversation, start_again, prompts, ["the other's"], two_turns),
    Meeting(delete_as_seen, start_again, prompts, ["the other's"], two_turns),
    Meeting(clear_all, start_again, prompts, ["the other's"], two_turns),
    Meeting(add_turn, start_again, prompts, ["first", "second", "third", "the other's"], two_turns),
]


async def reading(store: EntryStore, *, is_bound: bool) -> None:
    await store.async_save_many("lists", [MemoryEntry(key="k", content=number) for number in range(7)])
    assert await store.async_load_by_key("lists", "k")
    assert len((await store.async_load_readable(["lists", "others"]))["lists"].entries) == 7
    assert len(await store.async_load("lists")) == await store.async_count("lists") == 7
    assert "lists" in await store.async_namespaces(prefix="li")


READINGS = [reading]
