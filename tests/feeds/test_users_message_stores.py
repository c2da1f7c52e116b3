"""The memories of agents on message stores of users: plain, asynchronous, blocking, odd and broken ones."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest

from firefly_memory.errors import ConfigurationError, DatabaseStoreError, InvalidEntryError, NotSupportedError
from firefly_memory.feeds.memories import HierarchicalMessageStoreMemory, MessageStoreMemory
from firefly_memory.feeds.message_stores import InMemoryMessageStore as OurInMemoryMessageStore
from tests.support.forked_child import in_child
from tests.support.users_message_stores import BlockingMessageStore, InMemoryMessageStore, RecordingStore

Message = dict[str, Any]


async def contents(memory: MessageStoreMemory) -> list[Any]:
    return [message["content"] for message in await memory.get_history()]


async def test_without_a_budget_no_limit_is_passed(location: str) -> None:
    store = RecordingStore()
    await HierarchicalMessageStoreMemory(store, location, "one", ["two"]).get_history()
    await MessageStoreMemory(store, location, "one").get_history()
    assert [(kind, limit) for kind, limit, _ in store.reads] == [
        *(("agent", None), ("team", None), ("global", None)),
        *(("conversation", None), ("agent", None), ("global", None)),
    ]


def test_only_a_missing_message_store_is_refused() -> None:
    nothing: Any = None
    for make in (MessageStoreMemory, HierarchicalMessageStoreMemory):
        with pytest.raises(ConfigurationError, match="message_store must be a message store"):
            make(nothing, "job", "one")

    class Empty(InMemoryMessageStore):
        def __len__(self) -> int:
            return 0

    assert MessageStoreMemory(Empty(), "job", "one").writable


class ReadOnlyStore:
    """Has what is read of it, and nothing else."""

    def __init__(self, messages: Any = ()) -> None:
        self.messages = messages

    def get_conversation_messages(self, location: str) -> Any:
        return ()

    def get_agent_messages(self, location: str, agent_key: str) -> Any:
        return self.messages

    def get_global_messages(self, location: str) -> Any:
        return ()


async def test_a_store_without_append_can_be_read_only() -> None:
    store: Any = ReadOnlyStore([{"content": 1}])
    memory = MessageStoreMemory(store, "job", "one")
    assert not memory.writable
    with pytest.raises(NotSupportedError, match="the message store ReadOnlyStore can only be read"):
        await memory.add({"content": 2})
    with pytest.raises(NotSupportedError, match="the message store ReadOnlyStore can only be read"):
        await memory.add_many([{"content": 2}])
    assert await contents(memory) == [1]
    assert MessageStoreMemory(OurInMemoryMessageStore(), "job", "one").writable


async def test_a_store_without_a_method_is_named() -> None:
    store: Any = ReadOnlyStore()
    memory = HierarchicalMessageStoreMemory(store, "job", "one", ["two"])
    with pytest.raises(NotSupportedError, match=r"the message store ReadOnlyStore has no get_team_messages\(\)"):
        await memory.get_history()


def _generated(messages: list[Message]) -> Iterator[Message]:
    yield from messages


@pytest.mark.parametrize("made", [list, tuple, iter, _generated, lambda messages: {1: messages[0]}.values()])
async def test_a_store_may_return_any_iterable_of_dicts(made: Callable[[list[Message]], Any]) -> None:
    store: Any = ReadOnlyStore(made([{"content": 1}]))
    assert await contents(MessageStoreMemory(store, "job", "one")) == [1]


async def test_rows_that_are_mappings_are_given_as_dicts() -> None:
    store: Any = ReadOnlyStore([MappingProxyType({"content": 1})])
    (message,) = await MessageStoreMemory(store, "job", "one").get_history()
    assert type(message) is dict


async def _wait_for(messages: Any) -> Any:
    return messages


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "returned None"),
        ("text", "returned an object of type str"),
        (b"bytes", "returned an object of type bytes"),
        ({"content": 1}, "returned an object of type dict"),
        (5, "returned an object of type int"),
        ([{"content": 1}, ("row", 2)], "returned an object of type tuple at place 1"),
        ([None], "returned None at place 0"),
    ],
)
async def test_what_are_no_messages_is_an_error_that_names_the_method(
    returned: Any, problem: str, is_async: bool
) -> None:
    store: Any = ReadOnlyStore()
    store.get_agent_messages = partial(_async_answer, returned) if is_async else lambda *_: returned
    with pytest.raises(DatabaseStoreError, match="get_agent_messages failed: .*ReadOnlyStore " + problem):
        await MessageStoreMemory(store, "job", "one").get_history()


async def _async_answer(returned: Any, location: str, agent_key: str) -> Any:
    return returned


async def test_a_plain_method_may_return_an_awaitable() -> None:
    store: Any = ReadOnlyStore()
    store.get_agent_messages = lambda *_: _wait_for([{"content": 1}])
    appended: list[Message] = []

    async def append(message: Message) -> None:
        appended.append(message)

    store.append = lambda _, message: append(message)
    memory = MessageStoreMemory(store, "job", "one")
    await memory.add({"content": 2})
    assert await contents(memory) == [1]
    assert appended == [{"content": 2, "agent_key": "one"}]


async def test_an_object_with_an_async_call_is_awaited_in_the_loop() -> None:
    class Append:
        async def __call__(self, location: str, message: Message) -> None:
            self.loop = asyncio.get_running_loop()

    store: Any = ReadOnlyStore()
    store.append = append = Append()
    await MessageStoreMemory(store, "job", "one").add({})
    assert append.loop is asyncio.get_running_loop()


async def test_the_owner_is_passed_to_an_append_that_takes_it() -> None:
    given: list[Any] = []
    store: Any = ReadOnlyStore()
    memory = MessageStoreMemory(store, "job", "one", owner="Ada")
    appends: list[Callable[..., Any]] = [
        lambda _location, _message: given.append(None),
        lambda _location, _message, owner=None: given.append(owner),
        lambda _location, _message, **more: given.append(more),
        lambda _location, _message, owner="nobody", /: given.append(owner),
    ]
    for store.append in appends:
        await memory.add({})
    store.append = appends[1]
    await MessageStoreMemory(store, "job", "one").add({})
    assert given == [None, "Ada", {"owner": "Ada"}, "nobody", None]


async def test_an_append_without_a_signature_is_not_passed_the_owner() -> None:
    class Append:
        __signature__ = 5

        def __call__(self, location: str, message: Message, owner: str = "nobody") -> None:
            given.append(owner)

    given: list[str] = []
    store: Any = ReadOnlyStore()
    store.append = Append()
    await MessageStoreMemory(store, "job", "one", owner="Ada").add({"content": 1})
    assert given == ["nobody"]


class Failing(InMemoryMessageStore):
    def get_global_messages(self, location: str, limit: int | None = None) -> Any:
        def rows() -> Iterator[Message]:
            yield {"content": "half"}
            raise self.error

        return rows()

    def append(self, location: str, message: Message) -> None:
        raise self.error

    error: BaseException = OSError("the disk is gone")


@pytest.mark.parametrize("max_tokens", [None, 100])
async def test_an_error_in_the_middle_is_the_caller_s(max_tokens: int | None) -> None:
    memory = MessageStoreMemory(Failing(), "job", "one", max_tokens=max_tokens)
    with pytest.raises(OSError, match="the disk is gone") as caught:
        await memory.get_history()
    assert caught.value is Failing.error
    with pytest.raises(OSError, match="the disk is gone"):
        await memory.add({})


async def test_a_method_that_raises_stop_iteration_ends() -> None:
    store = Failing()
    store.error = StopIteration()
    with pytest.raises(RuntimeError):
        await MessageStoreMemory(store, "job", "one").add({})


async def test_a_message_that_contains_itself_is_refused() -> None:
    message: Message = {"content": []}
    message["content"].append(message)
    store: Any = ReadOnlyStore([{}, message])
    with pytest.raises(InvalidEntryError, match=r"get_agent_messages\(\)\[1\]: is nested deeper"):
        await MessageStoreMemory(store, "job", "one").get_history()


# Event loops, threads, processes.


async def test_a_store_that_blocks_does_not_block_the_event_loop() -> None:
    store = BlockingMessageStore()
    memory = MessageStoreMemory(store, "job", "one")
    adding = asyncio.create_task(memory.add({"type": "user_message", "content": 1}))
    reading = asyncio.create_task(memory.get_history())
    await store.called.wait()
    store.may_go_on.set()
    await adding
    assert await reading == [{"type": "user_message", "content": 1, "agent_key": "one"}]


async def test_reading_rows_that_block_does_not_block_the_event_loop() -> None:
    store: Any = BlockingMessageStore()

    def rows(location: str, agent_key: str) -> Iterator[Message]:
        store._block("rows")
        yield {"content": 1}

    store.get_agent_messages = rows
    store.get_conversation_messages = lambda _: []
    reading = asyncio.create_task(MessageStoreMemory(store, "job", "one").get_history())
    await store.called.wait()
    store.may_go_on.set()
    assert await reading == [{"content": 1}]


async def test_a_store_of_a_user_is_called_by_one_thread() -> None:
    threads = set()

    class Noting(InMemoryMessageStore):
        def _get_location(self, location: str) -> Any:
            threads.add(threading.get_ident())
            return super()._get_location(location)

    store = Noting()
    memories = [MessageStoreMemory(store, "job", str(number)) for number in range(20)]
    await asyncio.gather(*(memory.add({}) for memory in memories), *(memory.get_history() for memory in memories))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_the_thread_of_a_store_ends_with_the_store() -> None:
    threads = []

    class Noting(InMemoryMessageStore):
        def append(self, location: str, message: Message) -> None:
            threads.append(threading.current_thread())

    await MessageStoreMemory(Noting(), "job", "one").add({})
    gc.collect()
    (thread,) = threads
    await asyncio.to_thread(thread.join, 30)
    assert not thread.is_alive()


async def test_cancelled_calls_end_and_those_that_wait_are_never_made() -> None:
    store = BlockingMessageStore()
    memory = MessageStoreMemory(store, "job", "one")
    first, second = asyncio.create_task(memory.add({"content": 1})), asyncio.create_task(memory.add({"content": 2}))
    await store.called.wait()
    first.cancel()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert not first.done()  # its thread is at work
    store.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert store.calls == ["append"]
    assert await contents(memory) == [1]


async def test_a_store_without_weak_references_is_called_and_kept() -> None:
    gone = []

    class Slotted:
        __slots__ = ("appended",)

        def append(self, location: str, message: Message) -> None:
            self.appended = message

        def get_agent_messages(self, location: str, agent_key: str) -> list[Message]:
            return [self.appended]

        def __del__(self) -> None:
            gone.append(self.appended)

    store: Any = Slotted()
    await MessageStoreMemory(store, "job", "one").add({})
    assert store.appended == {"agent_key": "one"}
    del store
    gc.collect()
    assert gone == []  # another store with its id would get its thread


def test_a_forked_child_calls_the_store_in_a_thread_of_its_own() -> None:
    store = InMemoryMessageStore()
    memory = MessageStoreMemory(store, "job", "one")
    asyncio.run(memory.add({"content": "parent"}))

    def child() -> None:
        asyncio.run(memory.add({"content": "child"}))
        assert asyncio.run(contents(memory)) == ["parent", "child"]

    assert in_child(child) == 0
    assert asyncio.run(contents(memory)) == ["parent"]
