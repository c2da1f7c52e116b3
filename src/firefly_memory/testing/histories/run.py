"""``check_histories``: random histories of a backend, checked for strict serializability."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from firefly_memory.errors import ConfigurationError
from firefly_memory.protocols import MemoryStore
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.testing.checks import Mode
from firefly_memory.testing.histories.checker import Verdict, verdict_on
from firefly_memory.testing.histories.client import CONVERSATIONS, conversation
from firefly_memory.testing.histories.job import Job, complete, view_of, work
from firefly_memory.testing.histories.operation import Kind, Operation, Outcome, by_target
from firefly_memory.testing.histories.processes import Plan, Processes
from firefly_memory.testing.histories.recorder import read_history
from firefly_memory.testing.proxy import Proxy, Weather
from firefly_memory.url_text import scheme_of
from firefly_memory.validation import at_least

_SHOWN = 5
_ENOUGH = 10  # of so many operations of a kind, one must have been done
_PORTS = {"postgresql": 5432, "postgres": 5432, "mongodb": 27017}


@dataclass(frozen=True, kw_only=True)
class HistoryReport:
    """What a run of :func:`check_histories` did, and found to be right."""

    seed: int
    done: int
    """The number of operations that were acknowledged."""
    failed: int
    """The number of operations that ended with an error which says that nothing was written."""
    unknown: int
    """The number of operations of which nobody knows whether they were done."""
    kills: int
    lost_replies: int
    undecided: tuple[str, ...]
    """Facts whose history has too many possible orders to look at all of them."""


def check_histories(
    open_store: Callable[..., MemoryStore],
    url: str | None = None,
    *,
    mode: Mode | str = Mode.BLOCKING,
    processes: int = 3,
    clients: int = 2,
    steps: int = 40,
    kills: int = 0,
    kill: Callable[[], object] | None = None,
    through: Weather | None = None,
    seed: int | None = None,
    timeout: float = 120.0,
    start_method: str = "spawn",
) -> HistoryReport:
    """Let clients append, retry, read and change facts at random, and check that the history is strictly serializable.

    ``open_store()``, or ``open_store(url)`` if there is one, opens a store, each call a new one on the same data. Several
    processes call it, so it must be possible to pickle it: a function of a module, or a ``partial`` of a class. With
    ``processes=0`` the clients are in this process and share one store, for backends without ``Capability.SHARED``.

    Each process has so many ``clients``, which are threads or, in ``Mode.SUSPENDING``, tasks; each of them does so many
    ``steps``. So many ``kills`` happen in a run: of a process, which is killed while its clients work, or by ``kill``,
    which kills what serves the data and brings it back. ``through`` is a :class:`Weather`: the clients reach the server
    of ``url`` by a proxy that cuts connections, holds requests up and loses replies.

    ``start_method`` is that of :mod:`multiprocessing`. Processes that have not ended after ``timeout`` seconds wait for ever.

    ``AssertionError`` says what is wrong, with the operations that show it and the ``seed``; the same seed makes the same
    choices, but not the same timing.
    """
    if through is not None and not processes:
        raise ConfigurationError("through= needs processes: a store of this process would be the last to look as well")
    if not 0 <= kills <= at_least(0, "processes", processes):
        raise ConfigurationError(f"kills must be a number up to processes={processes}, not {kills}")
    plan = Plan(processes=processes, kills=kills, kill=kill, timeout=timeout, start_method=start_method)
    job = Job(
        name="process-0",
        open_store=open_store if url is None else partial(open_store, url),
        mode=Mode(mode),
        run=uuid4().hex[:12],
        seed=random.SystemRandom().randrange(2**32) if seed is None else seed,
        clients=at_least(1, "clients", clients),
        steps=at_least(1, "steps", steps),
        directory=Path(tempfile.mkdtemp(prefix="histories-")),
    )
    try:
        with _proxy(url, through) as proxy:
            reached = url if proxy is None else proxy.url(str(url))
            behind = replace(job, open_store=open_store if reached is None else partial(open_store, reached))
            killed = _work(job, behind, plan)
            report = _report_on(job, killed, 0 if proxy is None else proxy.lost)
    except AssertionError as error:
        raise AssertionError(f"seed={job.seed}: {error}\nThe history is in {job.directory}") from error
    except BaseException:
        shutil.rmtree(job.directory)
        raise
    shutil.rmtree(job.directory)
    return report


def _work(job: Job, behind: Job, plan: Plan) -> int:
    """Let the clients work as ``behind`` says, then look at what is stored. Returns how many kills there were."""
    if not plan.processes:
        complete(job.mode, partial(_with_store, job, _work_here))
        return 0
    complete(job.mode, partial(_with_store, job, _initialize))
    of_run = Processes(behind, plan)
    of_run.work()
    complete(job.mode, partial(_with_store, job, _read_everything))
    return of_run.killed


def _report_on(job: Job, killed: int, lost: int) -> HistoryReport:
    history = read_history(job.directory)
    verdict = verdict_on(history)
    _raise_if_wrong(verdict, history)
    counted = Counter(each.outcome for each in history)
    return HistoryReport(
        seed=job.seed,
        done=counted[Outcome.DONE],
        failed=counted[Outcome.FAILED],
        unknown=counted[Outcome.UNKNOWN],
        kills=killed,
        lost_replies=lost,
        undecided=verdict.undecided,
    )


@contextmanager
def _proxy(url: str | None, weather: Weather | None) -> Iterator[Proxy | None]:
    if weather is None:
        yield None
        return
    parts = urlsplit(url or "")
    try:
        port = parts.port or _PORTS.get(scheme_of(url or ""))
    except ValueError:  # several hosts, each with a port
        port = None
    if port is None or parts.hostname is None:
        raise ConfigurationError("through= needs a url= with one host and a port")
    with Proxy(port, weather, parts.hostname).running() as proxy:
        yield proxy


async def _with_store(job: Job, body: Callable[[Job, EntryStore], Awaitable[None]]) -> None:
    store = adapt(job.open_store())
    await body(job, store)
    await view_of(job, store).close()


async def _initialize(job: Job, store: EntryStore) -> None:
    """Make the schema, which is not what the clients test."""
    await view_of(job, store).initialize()


async def _work_here(job: Job, store: EntryStore) -> None:
    await work(job, store)
    await _read_everything(job, store)


async def _read_everything(job: Job, store: EntryStore) -> None:
    """The end of the history: a read of each conversation and each fact. Then all of it is deleted."""
    client = replace(job, name="last-look").client(0, store)
    targets = by_target(read_history(job.directory))
    talks = [conversation(job.run, number) for number in range(CONVERSATIONS)]
    reads = [await client.read_all_turns(each) for each in talks]
    reads += [await client.get_fact(each) for each in targets.keys() - set(talks)]
    for read in reads:
        assert read.is_done, f"what is stored cannot be read: {read.error}"
    await client.clear()
    client.close()


def _raise_if_wrong(verdict: Verdict, history: Sequence[Operation]) -> None:
    if verdict.violations:
        shown = "\n".join(map(str, verdict.violations[:_SHOWN]))
        raise AssertionError(f"{len(verdict.violations)} violations in {len(history)} operations\n{shown}")
    for kind in Kind:
        of_kind = [each for each in history if each.kind is kind]
        if len(of_kind) >= _ENOUGH and not any(each.is_done for each in of_kind):
            raise AssertionError(
                f"each of {len(of_kind)} operations {kind} failed, so nothing was checked: {of_kind[0]}"
            )
