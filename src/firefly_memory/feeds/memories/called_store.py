"""How memories call a message store: ours, or one of the user's, whose methods may be plain or coroutine functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from firefly_memory.errors import ConfigurationError, DatabaseStoreError, NotSupportedError
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.feeds.memories.message_copies import copied_message
from firefly_memory.feeds.memories.store_threads import in_thread_of
from firefly_memory.feeds.message_stores import StoredMessages

Kind = Literal["conversation", "agent", "global", "team"]


class CalledStore:
    """A message store, as memories call it."""

    def __init__(self, store: Any) -> None:
        if not callable(getattr(store, "get_agent_messages", None)):
            found = "None" if store is None else type(store).__name__
            raise ConfigurationError(
                f"message_store must be a message store, not {found}: SQLMessageStore(store), "
                "MongoMessageStore(store), InMemoryMessageStore(store), or one of your own, derived from "
                "BaseMessageStore"
            )
        self.store = store

    @property
    def writable(self) -> bool:
        """Whether it has ``append(location, message)``."""
        return callable(getattr(self.store, "append", None))

    async def append(self, location: str, messages: Sequence[Message], owner: str | None) -> None:
        """Append messages that are the store's from now on. ``owner`` is passed on if ``append`` takes it."""
        store = self.store
        if isinstance(store, StoredMessages):
            if len(messages) == 1:
                await store.async_append(location, messages[0], owner)
            else:
                await store.async_append_many(location, messages, owner, whole=False)
            return
        append = self._method("append", "messages cannot be added")
        more = {} if owner is None or not _takes_owner(append) else {"owner": owner}
        for message in messages:
            result = await self._called(partial(append, location, message, **more), append)
            if inspect.isawaitable(result):
                await result

    async def check_owner(self, location: str, owner: str) -> None:
        """``ConflictError`` if one of our stores has a feed there that is not this person's. Stores of users do not say
        whose messages they have."""
        if isinstance(self.store, StoredMessages):
            await self.store.async_check_owner(location, owner)

    async def newest(self, kind: Kind, limit: int | None, *arguments: Any) -> Messages:
        """The newest ``limit`` messages of a kind, or all, as dicts of the caller's own. A method without a limit is
        asked for all."""
        name = f"get_{kind}_messages"
        given = arguments if limit is None else (*arguments, limit)
        if isinstance(self.store, StoredMessages):
            messages: Messages = await getattr(self.store, f"async_{name}")(*given)
            return messages
        method = self._method(name, "derive it from BaseMessageStore")
        if limit is not None and not _takes(method, *given):
            return (await self.newest(kind, None, *arguments))[-limit:]
        result = await self._called(lambda: self._messages(name, method(*given)), method)
        found: Messages = self._messages(name, await result) if inspect.isawaitable(result) else result
        return found

    def _method(self, name: str, otherwise: str) -> Callable[..., Any]:
        method: Any = getattr(self.store, name, None)
        if not callable(method):
            raise NotSupportedError(f"the message store {type(self.store).__name__} has no {name}(): {otherwise}")
        return method  # type: ignore[no-any-return]

    async def _called(self, call: Callable[[], Any], method: Callable[..., Any]) -> Any:
        """What a method returns. A method that is no coroutine function may block."""
        if inspect.iscoroutinefunction(method) or inspect.iscoroutinefunction(type(method).__call__):
            return call()
        return await in_thread_of(self.store, call)

    def _messages(self, name: str, result: Any) -> Any:
        """Copies of the messages that a method returned, or the awaitable that it returned. Reading them may block."""
        if inspect.isawaitable(result):
            return result
        if isinstance(result, (str, bytes, Mapping)) or not isinstance(result, Iterable):
            raise self._wrong(name, f"returned {_a(result)}")
        return [self._message(name, place, row) for place, row in enumerate(result)]

    def _message(self, name: str, place: int, row: Any) -> Message:
        if not isinstance(row, Mapping):
            raise self._wrong(name, f"returned {_a(row)} at place {place}")
        return copied_message(row, f"{name}()[{place}]")

    def _wrong(self, name: str, problem: str) -> DatabaseStoreError:
        wanted = "it must return the messages, each a dict, in a list or another iterable"
        return DatabaseStoreError(name, f"the message store {type(self.store).__name__} {problem}; {wanted}")


def _takes(method: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a method can be called with these arguments, as far as Python knows its signature."""
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a function that is not written in Python
        return True
    return True


def _takes_owner(append: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(append).parameters.values()
    except (TypeError, ValueError):  # a function that is not written in Python
        return False
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(
        each.kind is inspect.Parameter.VAR_KEYWORD or (each.name == "owner" and each.kind in by_name)
        for each in parameters
    )


def _a(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
