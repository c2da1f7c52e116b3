"""Archives that were bent: an import ends in a typed error or is right, and what is of others stays as it was."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from firefly_memory import ConversationMemory, EntryStore, InMemoryStore, MemoryEntry, SQLiteStore
from firefly_memory.archive import async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.errors import FireflyMemoryError
from firefly_memory.testing import Mode
from tests.fuzzing.limits import bounded
from tests.fuzzing.mutations import bent, bent_bytes
from tests.fuzzing.sample_data import fill
from tests.fuzzing.stored_data import behind
from tests.support.backends import Place
from tests.support.facet_samples import archived, is_in

BACKENDS = ["memory", "file", "sqlite", "asyncpg", "psycopg", "mongodb"]

OWN = "of somebody else"

Body = Callable[[st.DataObject], None]

Opened = Callable[[], EntryStore]


@contextmanager
def bodies(place: Place, backends: Collection[str] | None = None) -> Iterator[dict[str, Body]]:
    with ExitStack() as places:
        yield {kind: places.enter_context(_body(kind, place)) for kind in backends or BACKENDS}


@contextmanager
def _body(kind: str, place: Place) -> Iterator[Body]:
    if kind == "memory":
        yield _in_memory
        return
    with behind(kind, place, f"fuzz_{kind}_{uuid4().hex[:8]}") as there:
        with there.store() as store:
            _with_own(store)
        there.keep()

        def body(data: st.DataObject) -> None:
            there.restore()
            _example(data, there.store)

        yield body


class _Open(InMemoryStore):
    """What it holds is there for whoever opens it next."""

    def close_sync(self) -> None:
        """Stay open."""

    async def close(self) -> None:
        """Stay open."""


def _in_memory(data: st.DataObject) -> None:
    store = _with_own(_Open())
    _example(data, lambda: store)


def _with_own(store: EntryStore) -> EntryStore:
    store.save(OWN, MemoryEntry(entry_id=OWN, key=OWN, content=OWN))
    ConversationMemory(store=store).add_turn(OWN, OWN, OWN)
    return store


def _seen(store: EntryStore) -> Any:
    return store.load(OWN), ConversationMemory(store=store).get_turns(OWN)


def _example(data: st.DataObject, there: Opened) -> None:
    with there() as store:
        kept = frozenset(facet.name for facet in archived() if is_in(store.blocking, facet))
        before = _seen(store)
    text = data.draw(bent_archives(kept))
    mode = data.draw(st.sampled_from(list(Mode)))
    with bounded():
        try:
            if mode is Mode.BLOCKING:
                with there() as store:
                    import_jsonl(store, _lines(text))
            else:
                asyncio.run(_imported(there, text))
            taken = True
        except FireflyMemoryError:
            taken = False
        with there() as store:
            if taken:
                _is_whole(store)
            assert _seen(store) == before, "the import has changed what was not in the archive"
            export_jsonl(store, io.StringIO())  # whatever was taken can be read


async def _imported(there: Opened, text: bytes) -> None:
    async with there() as store:
        await async_import_jsonl(store, _lines(text))


def _lines(archive: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(archive), encoding="utf-8")


def _is_whole(store: EntryStore) -> None:
    """What was taken goes out and into another store, which then has the same."""
    out = io.StringIO()
    export_jsonl(store, out)
    copy = SQLiteStore(":memory:")
    with copy:
        import_jsonl(copy, io.StringIO(out.getvalue()))
        again = io.StringIO()
        export_jsonl(copy, again)
    one, other = (sorted(each.getvalue().splitlines()[1:]) for each in (out, again))
    assert one == other, f"its copy is another one: {set(one) ^ set(other)}"


@cache
def _honest(facets: frozenset[str]) -> tuple[bytes, ...]:
    with SQLiteStore(":memory:") as store:
        fill(store, facets)
        file = io.StringIO()
        export_jsonl(store, file)
    return tuple(file.getvalue().encode().splitlines(keepends=True))


@st.composite
def bent_archives(draw: Any, facets: frozenset[str]) -> bytes:
    lines = list(_honest(facets))
    for _ in range(draw(st.integers(1, 2))):
        number = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["value", "value", "value", "remove", "double", "move", "bytes"])):
            case "value":
                try:
                    lines[number] = json.dumps(bent(draw, json.loads(lines[number]))).encode() + b"\n"
                except ValueError:  # an integer with more digits than Python writes or reads
                    lines[number] = b"9" * 5000 + b"\n"
            case "remove":
                del lines[number]
            case "double":
                lines.insert(draw(st.integers(0, len(lines))), lines[number])
            case "move":
                lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(number))
            case _:
                return bent_bytes(draw, b"".join(lines))
        if not lines:
            break
    return b"".join(lines)
