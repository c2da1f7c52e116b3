"""A server does its work, and its answer is lost. What a call returns then is what it would have returned, or the error
says that nobody knows; and nothing is done twice, or over what others have done meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from firefly_memory import (
    ConversationMemory,
    DatabaseConnectionError,
    EntryStore,
    MemoryEntry,
    MongoDBStore,
    OutcomeUnknownError,
    PostgreSQLStore,
    StoreTimeoutError,
    WorkingMemory,
    adapt,
)
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.sql import flushing
from firefly_memory.databases.sql.operation import Operation, operation
from firefly_memory.facets import FACETS
from firefly_memory.testing import Mode, checks
from firefly_memory.testing.checks import Check
from firefly_memory.testing.proxy import CALM, Proxy, Weather
from tests.support.backends import BY_NAME, Place
from tests.support.lost_cases import ACTS, MEETINGS
from tests.support.lost_reply_cases import MANY, Act, Meeting, Uses
from tests.support.store_worker import start, together

pytestmark = pytest.mark.thorough

T = TypeVar("T")

NAME = "lost_replies"
AT_ONCE = 5
"""Losses that wait for their time-outs together."""
KINDS = [
    ("asyncpg", Mode.SUSPENDING),
    ("psycopg", Mode.SUSPENDING),
    ("psycopg", Mode.BLOCKING),
    ("mongodb", Mode.SUSPENDING),
]


@dataclass
class Server:
    """A server, as it is and behind a proxy."""

    kind: str
    mode: Mode
    url: str
    proxy: Proxy

    def open(self, url: str, timeout: float = 30) -> EntryStore:
        if self.kind == "mongodb":
            return MongoDBStore(url, database=NAME, timeout=timeout)
        url = url.replace("postgresql://", f"postgresql+{self.kind}://")
        return PostgreSQLStore(url, schema_name=NAME, pool_size=1, pool_min_size=0, timeout=timeout)

    def open_behind_proxy(self, timeout: float = 30) -> EntryStore:
        return self.open(self.proxy.url(self.url), timeout)


def _proxy_of(url: str, weather: Weather = CALM) -> AbstractContextManager[Proxy]:
    port = urlsplit(url).port
    assert port is not None
    return Proxy(port, weather).running()


@pytest.fixture(params=KINDS, ids="-".join)
def server(request: pytest.FixtureRequest, place: Place) -> Iterator[Server]:
    kind, mode = request.param
    url = place.mongodb() if kind == "mongodb" else place.postgresql()
    with _proxy_of(url) as proxy:
        yield Server(kind, mode, url, proxy)


class Run:
    """Coroutines over stores of one mode."""

    def __init__(self, mode: Mode) -> None:
        self._runner = asyncio.Runner() if mode is Mode.SUSPENDING else None

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        return run_without_loop(work) if self._runner is None else self._runner.run(work)

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()


@pytest.mark.parametrize("act", ACTS, ids=str)
def test_after_any_lost_reply_the_result_is_right_or_outcome_unknown(act: Act, server: Server) -> None:
    mode, run = server.mode, Run(server.mode)
    with server.open(server.url) as direct:

        def prepared(store: EntryStore) -> Uses:
            name = uuid4().hex
            if act.prepare is not None:
                run_without_loop(act.prepare(Uses(direct, Mode.BLOCKING, name)))
            return Uses(store, mode, name)

        def there(uses: Uses) -> Any:
            found = run_without_loop(act.look(Uses(direct, Mode.BLOCKING, uses.name)))
            return [str(each).replace(uses.name, "") for each in (found.items() if isinstance(found, dict) else found)]

        undisturbed = prepared(direct)
        before = there(undisturbed)
        result = run_without_loop(act.do(Uses(direct, Mode.BLOCKING, undisturbed.name)))
        after = there(undisturbed)

        for answers in range(MANY):
            store = server.open_behind_proxy()
            uses = prepared(store)
            run(uses.store.count("warm"))
            server.proxy.lose_reply(answers)
            try:
                assert run(act.do(uses)) == result, answers
            except OutcomeUnknownError:
                assert act.doubts != "never"
                assert there(uses) in ((before, after) if act.doubts == "always" else (before,))
            else:
                assert there(uses) == after
            finally:
                server.proxy.calm_down()
                run(uses.close())
            if not server.proxy.lost:
                break
        assert 0 < answers < MANY - 1
    run.close()


@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_a_retry_does_not_undo_changes_of_others(meeting: Meeting, server: Server) -> None:
    mode, run = server.mode, Run(server.mode)
    with server.open(server.url) as direct:

        def answers_of(lose: int | None, then: Callable[[Uses], object]) -> tuple[int, Uses]:
            """Do it behind the proxy, which loses one answer; returns how many the server gave."""
            mine = Uses(direct, Mode.BLOCKING, uuid4().hex)
            if meeting.prepare is not None:
                run_without_loop(meeting.prepare(mine))
            uses = Uses(server.open_behind_proxy(), mode, mine.name)
            run(uses.store.count("warm"))
            server.proxy.lose_reply(lose, lambda: then(mine))
            with suppress(OutcomeUnknownError):
                run(meeting.do(uses))
            answers = server.proxy.calm_down()
            run(uses.close())
            return answers, mine

        answers_of(None, lambda _: None)  # also deletes what other tests have left, which takes more answers
        answers, _ = answers_of(None, lambda _: None)
        met: list[Any] = []

        def meet(mine: Uses) -> None:
            run_without_loop(meeting.other(mine))
            met.append(run_without_loop(meeting.kept(mine)))

        _, mine = answers_of(answers - 1, meet)
        assert met == [meeting.expected]
        assert run_without_loop(meeting.kept(mine)) == meeting.expected
    run.close()


@pytest.mark.parametrize("server", [each for each in KINDS if each[1] is Mode.SUSPENDING], indirect=True, ids="-".join)
@pytest.mark.parametrize("what", ["entries", "turns"])
def test_after_a_lost_reply_and_a_lost_server_the_outcome_is_unknown(what: str, server: Server) -> None:
    """Writes of several tasks go together; their answer is lost, and the store cannot look what became of them. Each loss
    waits for the time-out, so several are tried at once, each behind a proxy of its own."""
    with server.open(server.url) as direct:
        direct.count("there")

        async def lost_after(answers: int, proxy: Proxy) -> int:
            name = uuid4().hex
            async with server.open(proxy.url(server.url), timeout=5) as store:
                uses = Uses(store, Mode.SUSPENDING, name)
                await uses.store.count("warm")
                proxy.lose_reply(answers, proxy.close)
                if what == "entries":
                    calls = [uses.store.save(name, MemoryEntry(entry_id=f"{name} {n}")) for n in range(4)]
                else:
                    calls = [uses.turns.add_turn(name, str(n), "answer") for n in range(4)]
                results = await asyncio.gather(*calls, return_exceptions=True)
                proxy.calm_down()
            if what == "entries":
                there = {entry.entry_id.removeprefix(f"{name} ") for entry in direct.load(name)}
            else:
                there = {turn.user_prompt for turn in ConversationMemory(store=direct).get_turns(name)}
            for number, result in enumerate(results):
                if not isinstance(result, BaseException):
                    assert str(number) in there
                elif not isinstance(result, OutcomeUnknownError):
                    assert isinstance(result, DatabaseConnectionError | StoreTimeoutError)
                    assert str(number) not in there
            return proxy.lost

        async def all_of(proxies: dict[int, Proxy]) -> list[int]:
            return await asyncio.gather(*[lost_after(answers, proxy) for answers, proxy in proxies.items()])

        tried, lost = 0, [1]
        while all(lost):
            with ExitStack() as running:
                numbers = range(tried, tried + AT_ONCE)
                lost = asyncio.run(all_of({n: running.enter_context(_proxy_of(server.url)) for n in numbers}))
            tried += AT_ONCE
        assert tried - lost.count(0) >= 2


@pytest.mark.parametrize("server", [("psycopg", Mode.BLOCKING)], indirect=True, ids="-".join)
def test_deleting_an_absent_entry_never_reports_a_deletion(server: Server) -> None:
    with server.open_behind_proxy() as store:
        store.count("warm")
        history = store.blocking.log(AGENT_HISTORY_LOG)
        assert history is not None
        lost, answers = 1, 0
        while lost:
            server.proxy.lose_reply(answers)
            assert not run_without_loop(history.delete("nobody", "revision"))
            server.proxy.calm_down()
            lost, answers = server.proxy.lost, answers + 1
        assert answers > 2


RETRIES = [each for each in checks() if each.rule == "C2"]


@pytest.mark.parametrize("check", RETRIES, ids=str)
def test_the_rules_on_retries_hold_whichever_reply_is_lost(check: Check, server: Server) -> None:
    lost, answers = 0, 0
    while not answers or lost:
        server.proxy.lose_reply(answers)
        try:
            check.run(server.open_behind_proxy, server.mode)
        except DatabaseConnectionError as error:
            if error.operation != "initialize":
                raise
        server.proxy.calm_down()
        lost = server.proxy.lost
        answers += 3
    assert answers > 10


WRITERS, EACH = 4, 25
WEATHER = Weather(lost_reply=0.03, cut=0.02, stall=0.02, seed=9)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("postgresql-psycopg", Mode.BLOCKING),
        ("postgresql-asyncpg", Mode.SUSPENDING),
        ("mongodb", Mode.SUSPENDING),
    ],
)
def test_processes_on_breaking_connections_get_right_results(name: str, mode: Mode, place: Place) -> None:
    backend, scope = BY_NAME[name], uuid4().hex
    url = place.mongodb() if name == "mongodb" else place.postgresql()
    with _proxy_of(url, WEATHER) as proxy, adapt(backend.open(place)) as store:
        store.count("there")
        behind = dataclasses.replace(place, postgresql=lambda: proxy.url(url), mongodb=lambda: proxy.url(url))
        work = ("work_in_bad_weather", scope)
        printed = together([start(backend, behind, *work, f"p{n}", EACH, mode) for n in range(WRITERS)])
        assert proxy.lost > 10
        results = {f"p{n}": json.loads(lines) for n, lines in enumerate(printed)}
        facts, turns = WorkingMemory(store=store, scope_id=scope), ConversationMemory(store=store)

        sums = [result for each in results.values() for result in each["increments"]]
        done = [result for result in sums if isinstance(result, int)]
        assert len(set(done)) == len(done), "two increments never give the same number"
        assert len(done) <= facts.get("count") <= len(done) + sums.count("unknown")

        for number in range(EACH):
            holder = facts.get(f"lock {number}")
            for process, each in results.items():
                is_mine = holder == f"{process} {number}"
                assert each["locks"][number] in ((True, "unknown") if is_mine else (False, "unknown", "not done"))

        for kind, conversation in (("turns", scope), ("keyed", f"{scope} keyed")):
            stored = turns.get_turns(conversation)
            assert [turn.turn_id for turn in stored] == list(range(len(stored)))
            assert max(Counter(turn.user_prompt for turn in stored).values()) == 1
            numbers = {turn.user_prompt: turn.turn_id for turn in stored}
            for process, each in results.items():
                for number, result in enumerate(each[kind]):
                    turn_id = numbers.get(f"{process} {number}")
                    assert turn_id == (result if isinstance(result, int) else None) or result == "unknown"
            turns.clear(conversation)
        facts.clear()


def test_an_operation_must_declare_on_lost_reply() -> None:
    decorate: Any = operation
    with pytest.raises(TypeError, match="on_lost_reply"):
        decorate(name="forgetful")
    of_facets = [import_module(f"{package}.operations") for package in sql_packages()]
    for module in (*of_facets, flushing):
        for name, each in _functions_of(module):
            assert isinstance(each, Operation) or "_unless_" in name or name == "not_the_owner", name


def sql_packages() -> list[str]:
    """Of every facet of the library."""
    return [name.replace(".facet:FACET", ".sql") for name in FACETS]


def _functions_of(module: ModuleType) -> list[tuple[str, Any]]:
    return [
        (name, each)
        for name, each in vars(module).items()
        if not name.startswith("_")
        and callable(each)
        and not isinstance(each, type)
        and getattr(each, "__module__", "") == module.__name__
    ]
