"""Chunks as people look at them: listed, shown, counted and deleted, in both modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import FileStore, InMemoryStore, InvalidEntryError, NotSupportedError, service
from firefly_memory.facets import registered
from firefly_memory.knowledge.facet import FACET
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from firefly_memory.knowledge.looking import CHUNK_ROWS, ChunkReader
from firefly_memory.looking import Query
from firefly_memory.service import Row
from firefly_memory.testing import Mode
from tests.knowledge import START, Chunks, row

KIND = "chunks"
ROWS = sorted(
    [
        row("She moved to Lyon.", who="Anna", at=date(2023, 5, 8), owner="ann", source={"file": "letters.txt"}),
        row(
            "She moved to Paris.", who="Ben", at=datetime(2024, 1, 2, 3, tzinfo=UTC), owner="ann", group="g", position=7
        ),
        row("The \0 ferry is late.", space="tenant", collection="ferries", day=1, owner="b\0b"),
        row("The ferry is here.", collection="ferries", day=2, source=["page", 4]),
        row("Nothing.", owner="ann", space="tenant"),
    ],
    key=lambda each: each.id,
)


@pytest.fixture(autouse=True)
def _knowledge() -> Iterator[None]:
    with registered([FACET]):
        yield


@pytest.fixture
async def store() -> InMemoryStore:
    store = InMemoryStore()
    await Chunks(store).add(*ROWS)
    return store


class Look:
    """The functions of the service for one store, in one mode."""

    def __init__(self, store: InMemoryStore, mode: Mode) -> None:
        self._store = store
        self._mode = mode

    async def __call__(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self._mode is Mode.BLOCKING:
            return getattr(service, name)(self._store, *arguments, **options)
        return await getattr(service, f"async_{name}")(self._store, *arguments, **options)

    async def rows(self, where: Mapping[str, Any] | None = None, limit: int = 50) -> list[Row]:
        """All rows, page by page."""
        found: list[Row] = []
        after: str | None = None
        while True:
            page = await self("list", KIND, where=where, limit=limit, after=after)
            found += page
            after = page.next
            if after is None:
                return found


@pytest.fixture(params=Mode)
def look(request: pytest.FixtureRequest, store: InMemoryStore) -> Look:
    return Look(store, request.param)


def ids(rows: list[Row]) -> list[str]:
    return [each["id"] for each in rows]


def ids_where(text: str) -> list[str]:
    return [each.id for each in ROWS if text in each.text]


async def test_a_row_has_what_was_added(look: Look) -> None:
    (lyon,) = ids_where("Lyon")
    assert await look("get", KIND, lyon) == {
        "id": lyon,
        "collection": "notes",
        "space": "",
        "who": "Anna",
        "said_at": "2023-05-08",
        "text": "She moved to Lyon.",
        "group": None,
        "position": 0,
        "owner": "ann",
        "source": {"file": "letters.txt"},
        "created_at": START.isoformat(),
    }
    (paris,) = await look.rows({"who": "Ben"})
    assert (paris["said_at"], paris["group"], paris["position"]) == ("2024-01-02T03:00:00+00:00", "g", 7)
    (late,) = await look.rows({"text~": "late"})
    assert (late["text"], late["owner"], late["space"]) == ("The \0 ferry is late.", "b\0b", "tenant")


@pytest.mark.parametrize("limit", [1, 2, 5, 50])
async def test_chunks_are_listed_by_their_ids_page_by_page(look: Look, limit: int) -> None:
    assert ids(await look.rows(limit=limit)) == [each.id for each in ROWS]
    assert ids(await look.rows({"owner": "ann"}, limit)) == [each.id for each in ROWS if each.owner == "ann"]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({"collection": "ferries"}, "ferry"),
        ({"collection": "ferries", "space": ""}, "here"),
        ({"space": "tenant", "owner": "ann"}, "Nothing"),
        ({"said_at~": "2023-05"}, "Lyon"),
        ({"text~": "LYON"}, "Lyon"),
        ({"source~": "letters"}, "Lyon"),
        ({"owner": None}, "here"),
        ({"owner": "b\0b"}, "late"),
        ({"group": "g", "position>=": 7, "position<": 8}, "Paris"),
        ({"created_at>=": "2026-05-07T07:08:09.101112+00:00"}, "ferry"),
        ({"created_at<": "2026-05-07T00:00:00+00:00"}, "o"),
        ({"owner": "nobody"}, "-"),
    ],
    ids=str,
)
async def test_rows_are_selected_by_every_field(look: Look, where: dict[str, Any], text: str) -> None:
    found = ids_where(text) if text != "o" else [each.id for each in ROWS if each.created_at == START]
    for limit in (1, 50):
        assert ids(await look.rows(where, limit)) == found
    assert (await look("count", KIND, where=where)).rows == len(found)


async def test_chunks_are_counted_and_deleted(look: Look) -> None:
    assert {each.kind: (each.rows, each.tokens) for each in await look("stats")}[KIND] == (5, None)
    assert (await look("count", KIND)).rows == 5
    (lyon,) = ids_where("Lyon")
    assert await look("delete", KIND, [lyon, lyon, "unknown", "\0"]) == 1
    assert await look("get", KIND, lyon) is None
    assert await look("delete", KIND, where={"collection": "ferries"}) == 2
    assert await look("delete", KIND, where={"owner": "ann"}) == 2
    assert (await look("count", KIND)).rows == 0


async def test_made_up_ids_and_cursors_find_nothing(look: Look) -> None:
    for unknown in ("unknown", "\0", "\ud800", "x" * 512):
        assert await look("get", KIND, unknown) is None
    with pytest.raises(InvalidEntryError):
        await look("get", KIND, "x" * 513)
    with pytest.raises(InvalidEntryError, match="owner"):
        await look("list", KIND, where={"owner": "x" * 513})
    with pytest.raises(InvalidEntryError, match="is no cursor"):
        await look("list", KIND, after="made up")


@pytest.mark.parametrize("limit", [2, 3])
async def test_a_page_of_an_owner_is_full_although_chunks_are_deleted_meanwhile(
    store: InMemoryStore, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [each.id for each in ROWS if each.owner == "ann"]
    log: Any = store.suspending.log(KNOWLEDGE_LOG)
    read = log.read

    async def delete_and_read(wanted: list[str]) -> list[ChunkRow]:
        await log.delete(mine[:1])
        rows: list[ChunkRow] = await read(wanted)
        return rows[::-1]

    monkeypatch.setattr(log, "read", delete_and_read)
    page = await ChunkReader(store.suspending, None).page(Query({"owner": "ann"}, "id", None, limit))
    assert [each.row["id"] for each in page] == mine[1:]


async def test_a_made_up_position_counts_in_its_stored_form(store: InMemoryStore) -> None:
    page = await ChunkReader(store.suspending, None).page(Query({}, "id", ("\ud800",), 9))
    assert [each.position for each in page] == [(each.id,) for each in ROWS], "no database takes it as it is"


def test_a_table_shows_what_people_read() -> None:
    assert [each.name for each in CHUNK_ROWS.fields if each.in_table] == ["id", "collection", "who", "said_at", "text"]


def test_a_store_that_keeps_no_knowledge_has_no_chunks(tmp_path: Path, store: InMemoryStore) -> None:
    assert KIND in [each.kind for each in service.resources(store)]
    with FileStore(tmp_path) as files:
        assert KIND not in [each.kind for each in service.resources(files)]
        with pytest.raises(NotSupportedError, match="knowledge cannot be kept in FileStore"):
            service.list(files, KIND)
