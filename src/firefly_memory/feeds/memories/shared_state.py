"""``SharedStateStore``: the messages that the agents of one process share."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from firefly_memory import clock
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import InvalidEntryError
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.feeds.memories.base_memory import checked_keys, checked_name
from firefly_memory.feeds.memories.message_copies import copied_message, copied_value
from firefly_memory.feeds.message_form import is_global
from firefly_memory.reprs import even_half_built
from firefly_memory.validation import at_least, checked_mapping

Role = Literal["user", "assistant"]
_ROLES = ("user", "assistant")

TURNS: Hashable = ("turns",)
"""The kind of what was said with a role."""
FOR_ALL: Hashable = ("for all",)
"""The kind of the messages for every agent."""
SHARED: Hashable = ("shared",)
"""The kind of what agents added that is not private."""


def of_agent(agent_key: str) -> Hashable:
    """The kind of what one agent added."""
    return ("agent", agent_key)


class Note(NamedTuple):
    """A message in the state. Nobody changes it."""

    number: int
    """Its place in the order of arrival in its namespace."""
    agent_key: str | None
    message: Message
    kinds: Sequence[Hashable]


class _Namespace:
    """The notes of one namespace. Not safe for threads: the caller holds the lock."""

    def __init__(self) -> None:
        self._last = 0
        self._notes: deque[Note] = deque()
        self._of_kind: dict[Hashable, deque[Note]] = {}

    def append(self, agent_key: str | None, message: Message, kinds: Sequence[Hashable], most: int | None) -> None:
        self._last += 1
        note = Note(self._last, agent_key, message, kinds)
        self._notes.append(note)
        for kind in kinds:
            self._of_kind.setdefault(kind, deque()).append(note)
        if most is not None and len(self._notes) > most:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        for kind in self._notes.popleft().kinds:
            notes = self._of_kind[kind]
            notes.popleft()
            if not notes:
                del self._of_kind[kind]

    def newest(self, kinds: Iterable[Hashable], limit: int | None) -> list[Note]:
        found = [islice(reversed(self._of_kind[kind]), limit) for kind in kinds if kind in self._of_kind]
        newest_first = merge(*found, key=attrgetter("number"), reverse=True)
        return [*islice(newest_first, limit)][::-1]


class NotesByNamespace:
    """The notes of all namespaces of a state, for its memories."""

    def __init__(self, max_messages: int | None) -> None:
        self.max_messages = max_messages
        self._namespaces: dict[str, _Namespace] = {}
        self._lock = ForkSafeLock()

    def append(self, namespace: str, agent_key: str | None, message: Message, kinds: Sequence[Hashable]) -> None:
        with self._lock:
            notes = self._namespaces.setdefault(namespace, _Namespace())
            notes.append(agent_key, message, kinds, self.max_messages)

    def newest(self, namespace: str, kinds: Iterable[Hashable], limit: int | None = None) -> list[Note]:
        """The newest ``limit`` notes that have one of some kinds that exclude each other, or all, oldest first."""
        with self._lock:
            notes = self._namespaces.get(namespace)
            return [] if notes is None else notes.newest(kinds, limit)

    def namespaces(self) -> list[str]:
        with self._lock:
            return list(self._namespaces)

    def clear(self, namespace: str | None) -> None:
        with self._lock:
            if namespace is None:
                self._namespaces.clear()
            else:
                self._namespaces.pop(namespace, None)


class SharedStateStore:
    """Messages in the memory of this process, by namespace: those of each agent, those for all agents, and turns.

    Messages are listed in the order of their arrival in the namespace. A namespace is made by its first message, and
    not by reading. ``max_messages`` bounds the messages of each namespace, of all kinds together: the oldest go. Any
    number of tasks, event loops and threads may use one state at once. Memories share the state of the process, unless
    they are given another one with ``state=``.
    """

    def __init__(self, max_messages: int | None = None) -> None:
        most = None if max_messages is None else at_least(1, "max_messages", max_messages)
        self.notes: NotesByNamespace = NotesByNamespace(most)

    @even_half_built
    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_messages={self.notes.max_messages})"

    async def append_agent_msg(self, namespace: str, agent_key: str, msg: Message, *, private: bool = False) -> None:
        """Append a message of an agent.

        A ``private`` one is listed by :meth:`list_agent_msgs` and :meth:`list_team_msgs`, and not among what all agents
        of the namespace share. ``is_global: True``, and the type ``global_observation``, make it one for all agents.
        """
        key = checked_name("agent_key", agent_key)
        kinds = [of_agent(key)] if private else [of_agent(key), SHARED]
        message = _checked(msg)
        if is_global(message):
            kinds.append(FOR_ALL)
        self.notes.append(_namespace(namespace), key, message, kinds)

    async def append_global_update(self, namespace: str, msg: Message) -> None:
        """Append a message for all agents."""
        self.notes.append(_namespace(namespace), None, _checked(msg), [FOR_ALL])

    async def append_conversation_turn(self, namespace: str, role: Role, content: Any) -> None:
        """Append what the user or the assistant says, with the time of now."""
        if role not in _ROLES:
            raise InvalidEntryError("role", f"must be 'user' or 'assistant', not {role!r}")
        turn = {"role": role, "content": copied_value(content, "content"), "timestamp": clock.now().isoformat()}
        self.notes.append(_namespace(namespace), None, turn, [TURNS])

    async def list_agent_msgs(self, namespace: str, agent_key: str) -> Messages:
        """The messages of an agent."""
        return self._messages(namespace, [of_agent(checked_name("agent_key", agent_key))])

    async def list_global_updates(self, namespace: str) -> Messages:
        """The messages for all agents."""
        return self._messages(namespace, [FOR_ALL])

    async def list_conversation(self, namespace: str) -> Messages:
        """The turns, each as ``{"role": …, "content": …, "timestamp": …}``."""
        return self._messages(namespace, [TURNS])

    async def list_team_msgs(self, namespace: str, agent_keys: Iterable[str]) -> Messages:
        """The messages of several agents."""
        return self._messages(namespace, map(of_agent, checked_keys("agent_keys", agent_keys)))

    async def list_namespaces(self) -> list[str]:
        """The namespaces that have messages, in the order in which they began."""
        return self.notes.namespaces()

    async def clear(self, namespace: str | None = None) -> None:
        """Forget the messages of a namespace, or of all."""
        self.notes.clear(None if namespace is None else _namespace(namespace))

    def _messages(self, namespace: str, kinds: Iterable[Hashable]) -> Messages:
        return [copied_message(note.message) for note in self.notes.newest(_namespace(namespace), kinds)]


def _namespace(namespace: str) -> str:
    return checked_name("namespace", namespace)


def _checked(msg: Message) -> Message:
    return copied_message(checked_mapping("message", msg))


STATE_OF_THE_PROCESS = SharedStateStore()
"""The state of memories that are given none."""
