"""Stored rows, documents and files that were bent: whatever is done then ends in a typed error or is right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.testing import Mode
from tests.fuzzing.limits import bounded, typed
from tests.fuzzing.operations import reading, writing
from tests.fuzzing.sample_data import fill
from tests.fuzzing.stored_data import Behind, behind
from tests.support.backends import Place

BACKENDS = ["file", "sqlite", "asyncpg", "psycopg", "mongodb"]

Body = Callable[[st.DataObject], None]


@contextmanager
def bodies(place: Place, backends: Collection[str] | None = None) -> Iterator[dict[str, Body]]:
    with ExitStack() as places:
        yield {
            kind: _body(places.enter_context(behind(kind, place, f"fuzz_{kind}_{uuid4().hex[:8]}")))
            for kind in backends or BACKENDS
        }


def _body(place: Behind) -> Body:
    with place.store() as store:
        fill(store)
    place.keep()

    def body(data: st.DataObject) -> None:
        place.restore()
        place.bend(data.draw)
        mode = data.draw(st.sampled_from(list(Mode)))
        with bounded():
            if mode is Mode.BLOCKING:
                run_without_loop(_use(place, mode, data))
            else:
                asyncio.run(_use(place, mode, data))
            before = place.state()
            run_without_loop(_described("doctor", partial(_examined, place)))
            assert place.state() == before, "doctor has changed something"

    return body


async def _examined(place: Behind) -> None:
    place.examined()


async def _use(place: Behind, mode: Mode, data: st.DataObject) -> None:
    store = place.store()
    view = store.blocking if mode is Mode.BLOCKING else store.suspending
    try:
        before = place.state()
        for name, read in reading(store, mode).items():
            await _described(name, read)
        assert place.state() == before, "reading has changed something"
        writes = writing(store, mode)
        for name in data.draw(st.permutations(sorted(writes)))[:3]:
            before = place.state()
            refused = await _described(name, writes[name])
            if refused is not None:
                assert place.state() == before, f"{name} was refused, and has changed something: {refused!r}"
        for name, read in reading(store, mode).items():
            await _described(name, read)
        await typed(view.cleanup_expired)
    finally:
        await view.close()


async def _described(name: str, operation: Any) -> Any:
    try:
        return await typed(operation)
    except BaseException as error:
        error.add_note(f"in {name}")
        raise
