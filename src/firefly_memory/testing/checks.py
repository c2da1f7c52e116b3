"""What a conformance check is, and how one is run on a store of either mode."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar
from uuid import uuid4

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import NotSupportedError
from firefly_memory.facets import LogOf, all_facets, load, log_if_there
from firefly_memory.identifiers import stored_text
from firefly_memory.protocols import Capability, MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.tokens.estimator import TokenEstimator

E = TypeVar("E", bound=Exception)


class Mode(StrEnum):
    """Which form of each operation a check calls."""

    BLOCKING = "blocking"
    SUSPENDING = "suspending"


class Memory:
    """Something with both modes, in one of them: every method is to be awaited."""

    def __init__(self, inner: Any, mode: Mode) -> None:
        self.inner = inner
        self._mode = mode

    def __getattr__(self, name: str) -> Any:
        if not hasattr(type(self.inner), f"async_{name}"):
            return getattr(self.inner, name)
        if self._mode is Mode.SUSPENDING:
            return getattr(self.inner, f"async_{name}")

        async def call(*arguments: Any, **options: Any) -> Any:
            return getattr(self.inner, name)(*arguments, **options)

        return call


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(TokenEstimator):
    """Each word is a token, so that a check has the same numbers with tiktoken's vocabularies and without."""

    def estimate(self, text: str) -> int:
        return len(text.split())


def _nothing(_: logging.LogRecord) -> bool:
    return False


@dataclass
class Subject:
    """The store under test, and what a check needs besides it."""

    store: EntryStore
    mode: Mode
    _open: Callable[[], EntryStore]
    _run: str = field(default_factory=lambda: uuid4().hex[:12])
    _others: list[EntryStore] = field(default_factory=list)
    _used: list[str] = field(default_factory=list)
    _conversations: list[str] = field(default_factory=list)

    @property
    def view(self) -> StoreView:
        """The operations of the store in this run's mode."""
        return self._view_of(self.store)

    def namespace(self, name: str = "check") -> str:
        """A namespace of this run's own, so that a store in use can be tested as well; emptied at the end."""
        namespace = f"{name}:{self._run}"
        self._used.append(namespace)
        return namespace

    def exactly(self, namespace: str) -> str:
        """``namespace`` as it is, emptied at the end."""
        self._used.append(namespace)
        return namespace

    def another(self) -> StoreView:
        """A second store opened on the same data."""
        return self._view_of(self.another_store())

    def another_store(self) -> EntryStore:
        """The same, for what is built on stores."""
        other = self._open()
        self._others.append(other)
        return other

    def memory(self, kind: Callable[..., Any], **options: Any) -> Memory:
        """A memory on the store, with the methods of this run's mode, all to be awaited."""
        if kind is ConversationMemory:
            options.setdefault("estimator", Words())
        return Memory(kind(store=self.store, **options), self.mode)

    def working(self, name: str = "scope") -> Memory:
        """The working memory of a scope of this run's own."""
        from firefly_memory.working import WorkingMemory

        memory = self.memory(WorkingMemory, scope_id=f"{name}:{self._run}")
        self.exactly(memory.namespace)
        return memory

    def conversation(self, name: str = "check") -> str:
        """The id of a conversation of this run's own, deleted at the end."""
        return self.forget(f"{name}:{self._run}")

    def forget(self, conversation_id: str) -> str:
        """Delete this conversation as well at the end."""
        self._conversations.append(conversation_id)
        return conversation_id

    async def ids_of_conversations(self, memory: Memory) -> list[str]:
        """All of the store's; the one operation that is a property in one mode."""
        if self.mode is Mode.BLOCKING:
            ids: list[str] = memory.inner.conversation_ids
            return ids
        return await memory.conversation_ids()  # type: ignore[no-any-return]

    async def refuses(self, error: type[E], call: Awaitable[Any]) -> E:
        """The error that ``call`` must end with."""
        try:
            result = await call
        except error as refused:
            return refused
        raise AssertionError(f"should have raised {error.__name__}, and returned {result!r}")

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keeps the library's log out of the way of a test that provokes trouble."""
        logger = logging.getLogger("firefly_memory")
        logger.addFilter(_nothing)
        try:
            yield
        finally:
            logger.removeFilter(_nothing)

    async def saved(self, namespace: str, *contents: Any, **fields: Any) -> list[MemoryEntry]:
        """Save one new entry for each of ``contents``, and return the entries."""
        entries = [MemoryEntry(content=content, **fields) for content in contents]
        for entry in entries:
            await self.view.save(namespace, entry)
        return entries

    async def contents(self, namespace: str) -> list[Any]:
        """The contents of the live entries of a namespace, oldest first."""
        return [entry.content for entry in await self.view.load(namespace)]

    async def _finish(self) -> None:
        for namespace in dict.fromkeys(self._used):
            with suppress(Exception):  # a check may have closed the store, or failed because of it
                await self.view.clear(namespace)
        for conversation in dict.fromkeys(self._conversations):
            with suppress(Exception):
                await self.view.log(CONVERSATION_LOG).delete(stored_text(conversation))
        for store in (*self._others, self.store):
            await self._view_of(store).close()

    def _view_of(self, store: EntryStore) -> StoreView:
        return store.blocking if self.mode is Mode.BLOCKING else store.suspending


Body = Callable[[Subject], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Check:
    """One thing that a rule says, as a coroutine over a :class:`Subject`. Its ``str`` is rule and sentence."""

    rule: str
    body: Body
    needs: frozenset[Capability] = frozenset()
    facet: LogOf[Any] | None = None
    """The facet that it is about. A store without the facet passes if it says so."""

    def __str__(self) -> str:
        return f"{self.rule}-{self.body.__name__}"

    def run(self, open_store: Callable[[], MemoryStore], mode: Mode | str = Mode.BLOCKING) -> None:
        """Run on a store that ``open_store`` opens: each call a new one on the same data."""

        def open_adapted() -> EntryStore:
            return adapt(open_store())

        async def body() -> None:
            subject = Subject(open_adapted(), Mode(mode), open_adapted)
            try:
                if self.facet is None or log_if_there(subject.view, self.facet) is not None:
                    await self.body(subject)
            finally:
                await subject._finish()  # noqa: SLF001 - the runner is the other half of the subject

        if mode == Mode.BLOCKING:
            run_without_loop(body())
        else:
            asyncio.run(body())


_checks: list[Check] = []


def check(rule: str, *needs: Capability, facet: LogOf[Any] | None = None) -> Callable[[Body], Body]:
    """Register a coroutine as a check of ``rule``, for stores that promise what it ``needs``."""

    def register(body: Body) -> Body:
        _checks.append(Check(rule, body, frozenset(needs), facet))
        return body

    return register


def refusal(rule: str, without: Capability, call: Callable[[StoreView], Awaitable[Any]], name: str) -> None:
    """Register that stores ``without`` a capability refuse a call instead of doing half of it."""

    async def refuses(subject: Subject) -> None:
        try:
            await call(subject.view)
        except NotSupportedError:
            return
        raise AssertionError("should have raised NotSupportedError")

    refuses.__name__ = name
    _refusals.append((without, Check(rule, refuses)))


_refusals: list[tuple[Capability, Check]] = []


def checks(capabilities: Collection[Capability] = tuple(Capability)) -> list[Check]:
    """The checks for a store with these ``capabilities``: what it promises, and that it refuses what it does not."""
    for facet in all_facets():
        load(facet.packaging, "rules")  # registers them
    promised = frozenset(capabilities)
    names = {facet.name for facet in all_facets()}
    kept = [each for each in _checks if each.needs <= promised and (each.facet is None or each.facet.facet in names)]
    refused = [each for without, each in _refusals if without not in promised]
    return sorted(kept + refused, key=lambda each: (each.rule[0] != "R", each.rule[0], int(each.rule[1:]), str(each)))
