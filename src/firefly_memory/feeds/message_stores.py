"""The library's message stores: the messages of agents in a store that ``connect()`` opens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import ClassVar

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import ConfigurationError
from firefly_memory.feeds.base_store import BaseMessageStore
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.items import Items, Message, Messages
from firefly_memory.feeds.likely_keywords import answers_guesses
from firefly_memory.feeds.subscription import Subscription, subscription
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.kinds import IN_MEMORY, MONGODB, SQL, is_of_kind
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.validation import true_or_false


class StoredMessages(BaseMessageStore):
    """What the message stores on our stores have in common.

    A message is any dict of JSON values. It belongs to a *location*, such as a job, where it has the next number. Its
    ``agent_key`` says whose it is. The types ``user_message`` and ``assistant_message`` are the conversation.
    ``is_global: True``, and the type ``global_observation``, make it a message for every agent. Any number of threads,
    tasks and processes may append to one location at once.

    ``owner`` is the canonical id of the person whose data a location has. The first message decides it for good.
    """

    _kind: ClassVar[tuple[str, str]]
    _works_on: ClassVar[str]

    def __init__(self, store: EntryStore, *, notify: bool = False) -> None:
        if not is_of_kind(store, self._kind):
            raise ConfigurationError(
                f"{type(self).__name__} needs {self._works_on}, not {type(store).__name__}: messages of agents are "
                "kept in SQLiteStore and PostgreSQLStore (SQLMessageStore), in MongoDBStore (MongoMessageStore) and in "
                "InMemoryStore (InMemoryMessageStore)"
            )
        true_or_false("notify", notify)
        self.store = store
        self._blocking = FeedFlows(store.blocking, notify=notify)
        self._suspending = FeedFlows(store.suspending, notify=notify)

    @even_half_built
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def append(self, location: str, message: Message, owner: str | None = None) -> int:
        """Append a message, durable when this returns; its number."""
        return run_without_loop(self._blocking.append(location, [message], owner, "message"))[0]

    async def async_append(self, location: str, message: Message, owner: str | None = None) -> int:
        """Append a message, durable when this returns; its number."""
        return (await self._suspending.append(location, [message], owner, "message"))[0]

    def append_many(
        self, location: str, messages: Iterable[Message], owner: str | None = None, *, whole: bool = True
    ) -> list[int]:
        """Append messages, all of them or none, with no other message between them; their numbers.

        ``whole=False`` appends them in their order, and on MongoDB each on its own: others may append between them, and
        nobody waits for a process that dies in the middle.
        """
        return run_without_loop(self._blocking.append(location, messages, owner, "messages[{}]", whole=whole))

    async def async_append_many(
        self, location: str, messages: Iterable[Message], owner: str | None = None, *, whole: bool = True
    ) -> list[int]:
        """Append messages, all of them or none, with no other message between them; their numbers.

        ``whole=False`` appends them in their order, and on MongoDB each on its own: others may append between them, and
        nobody waits for a process that dies in the middle.
        """
        return await self._suspending.append(location, messages, owner, "messages[{}]", whole=whole)

    def check_owner(self, location: str, owner: str) -> None:
        """``ConflictError`` if the location has a feed that is not this person's."""
        run_without_loop(self._blocking.check_owner(location, owner))

    async def async_check_owner(self, location: str, owner: str) -> None:
        """``ConflictError`` if the location has a feed that is not this person's."""
        await self._suspending.check_owner(location, owner)

    def get_conversation_messages(self, location: str, limit: int | None = None) -> Messages:
        """The newest ``limit`` messages of people and the assistant, or all, oldest first."""
        return run_without_loop(self._blocking.newest(location, "conversation", (), limit))

    async def async_get_conversation_messages(self, location: str, limit: int | None = None) -> Messages:
        """The newest ``limit`` messages of people and the assistant, or all, oldest first."""
        return await self._suspending.newest(location, "conversation", (), limit)

    def get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> Messages:
        """The newest ``limit`` messages of one agent, or all, oldest first."""
        return run_without_loop(self._blocking.newest(location, "agents", (agent_key,), limit))

    async def async_get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> Messages:
        """The newest ``limit`` messages of one agent, or all, oldest first."""
        return await self._suspending.newest(location, "agents", (agent_key,), limit)

    def get_global_messages(self, location: str, limit: int | None = None) -> Messages:
        """The newest ``limit`` messages for every agent, or all, oldest first."""
        return run_without_loop(self._blocking.newest(location, "global", (), limit))

    async def async_get_global_messages(self, location: str, limit: int | None = None) -> Messages:
        """The newest ``limit`` messages for every agent, or all, oldest first."""
        return await self._suspending.newest(location, "global", (), limit)

    def get_team_messages(self, location: str, agent_keys: Sequence[str], limit: int | None = None) -> Messages:
        """The newest ``limit`` messages of several agents, or all, oldest first; none for a team of nobody."""
        return run_without_loop(self._blocking.newest(location, "agents", agent_keys, limit))

    async def async_get_team_messages(
        self, location: str, agent_keys: Sequence[str], limit: int | None = None
    ) -> Messages:
        """The newest ``limit`` messages of several agents, or all, oldest first; none for a team of nobody."""
        return await self._suspending.newest(location, "agents", agent_keys, limit)

    def get_items(self, location: str, after: int = 0, limit: int | None = None) -> Items:
        """The first ``limit`` messages after a number, or all, with their numbers, oldest first."""
        return run_without_loop(self._blocking.items(location, after, limit))

    async def async_get_items(self, location: str, after: int = 0, limit: int | None = None) -> Items:
        """The first ``limit`` messages after a number, or all, with their numbers, oldest first."""
        return await self._suspending.items(location, after, limit)

    def clear(self, location: str, *, keep_last: int | None = None, older_than: str | timedelta | None = None) -> int:
        """Delete the messages of a location, and return how many. The numbers go on, so that subscribers miss nothing.

        ``keep_last`` keeps so many of the newest; ``older_than``, such as ``"90d"``, deletes only what was appended
        before. A message stays if one of them keeps it.
        """
        return run_without_loop(self._blocking.clear(location, keep_last, older_than))

    async def async_clear(
        self, location: str, *, keep_last: int | None = None, older_than: str | timedelta | None = None
    ) -> int:
        """Delete the messages of a location, and return how many. The numbers go on, so that subscribers miss nothing.

        ``keep_last`` keeps so many of the newest; ``older_than``, such as ``"90d"``, deletes only what was appended
        before. A message stays if one of them keeps it.
        """
        return await self._suspending.clear(location, keep_last, older_than)

    def subscribe(self, location: str, after: int | None = None, *, every: float = 0.5) -> Subscription:
        """The messages of a location as they come, each once and in order: ``async for item in store.subscribe(…)``.

        ``after`` is the number of the last message that was seen: 0 begins with the first message. ``None`` begins with
        the next one that comes after the iterator was first awaited, and not after this call. A new message of this
        process is given at once. For messages of other processes the location is read every ``every`` seconds, and a
        tenth as often while the database tells of them.

        Close an iterator that you leave early, best with ``async with aclosing(store.subscribe(…)) as items``.
        ``ConflictError`` if the location was deleted. An error of the database ends the iterator; subscribe again after
        the last number that was seen.
        """
        return subscription(self._suspending, location, after, every)


class SQLMessageStore(StoredMessages):
    """The messages of agents in a ``SQLiteStore`` or a ``PostgreSQLStore``.

    With ``notify=True``, PostgreSQL tells subscribers of other processes of each append at once (LISTEN and NOTIFY).
    Give it to the stores of the writers and to those of the subscribers. Transactions that notify wait for each other
    when they commit. A process that subscribes has one more connection for each event loop. In SQLite it does nothing.
    """

    _kind = SQL
    _works_on = "a SQLiteStore or a PostgreSQLStore"

    @answers_guesses
    def __init__(self, store: EntryStore, *, notify: bool = False) -> None:
        super().__init__(store, notify=notify)


class MongoMessageStore(StoredMessages):
    """The messages of agents in a ``MongoDBStore``.

    On a replica set or a sharded cluster, a change stream tells subscribers of what other processes append.
    """

    _kind = MONGODB
    _works_on = "a MongoDBStore"

    @answers_guesses
    def __init__(self, store: EntryStore) -> None:
        super().__init__(store, notify=True)


class InMemoryMessageStore(StoredMessages):
    """The messages of agents in an ``InMemoryStore``, its own without one: for tests, gone with the process."""

    _kind = IN_MEMORY
    _works_on = "an InMemoryStore"

    @answers_guesses
    def __init__(self, store: EntryStore | None = None) -> None:
        super().__init__(InMemoryStore() if store is None else store)
