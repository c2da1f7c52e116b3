"""Chunks in archives and copies, in both modes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import (
    ConflictError,
    CorruptDataError,
    EntryStore,
    ErasedError,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    NotSupportedError,
)
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.erasure import erase, readmit
from firefly_memory.facets import registered
from firefly_memory.identifiers import original_name
from firefly_memory.knowledge import moving
from firefly_memory.knowledge.facet import FACET
from firefly_memory.knowledge.log import ChunkRow
from firefly_memory.knowledge.rows import row_of, stored_chunk
from firefly_memory.knowledge.types import Chunk
from firefly_memory.moving import Item
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from firefly_memory.transfer.copy_store import Copy
from firefly_memory.transfer.counts import Counts
from tests.knowledge import ENGLISH, START, Chunks, row
from tests.support.value_strategies import json_values, names

GERMAN = IndexLanguage("german", FORM)

ROWS = [
    row("She moved the boats."),
    row("She moved the boats.", source={"page": 2, "file": "a.pdf"}),
    row("She moved the boats.", source={"file": "a.pdf", "page": 2}),
    row("\0 \ud800 \x10 ~", who="A\0nna", group="\udfff", position=3, space="\x10", collection="\0", owner="ann \0"),
    row("on a day", at=date(2023, 5, 8), owner="ann \0"),
    row("at an instant", at=datetime(2023, 5, 8, 9, 10, 11, tzinfo=UTC), owner="bob", group="g", day=1),
    row("odd sources", source=["\ud800", {"~str": 2**70, "": -0.0, "$a.b": [1e300, None]}]),
]


@pytest.fixture(autouse=True)
def _knowledge(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(moving, "_PAGE", 2)
    with registered([FACET]):
        yield


@pytest.fixture
def source() -> Iterator[InMemoryStore]:
    with InMemoryStore() as store:
        yield store


@pytest.fixture
def target() -> Iterator[InMemoryStore]:
    with InMemoryStore() as store:
        yield store


class Transfer:
    """Exports, imports and copies in one mode."""

    def __init__(self, mode: Mode) -> None:
        self._is_blocking = mode is Mode.BLOCKING

    async def lines(self, store: EntryStore) -> list[str]:
        file = io.StringIO()
        export_jsonl(store, file) if self._is_blocking else await async_export_jsonl(store, file)
        return file.getvalue().splitlines()

    async def load(self, store: EntryStore, lines: Sequence[str], **options: Any) -> Counts:
        if self._is_blocking:
            return import_jsonl(store, lines, **options)
        return await async_import_jsonl(store, lines, **options)

    async def copy(self, source: EntryStore, target: EntryStore, **options: Any) -> Copy:
        if self._is_blocking:
            return copy_store(source, target, **options)
        return await async_copy_store(source, target, **options)


@pytest.fixture(params=Mode)
def transfer(request: pytest.FixtureRequest) -> Transfer:
    return Transfer(request.param)


def by_id(rows: Sequence[ChunkRow]) -> list[ChunkRow]:
    return sorted(rows, key=lambda each: each.id)


async def test_an_import_restores_every_chunk(transfer: Transfer, source: InMemoryStore, target: InMemoryStore) -> None:
    assert await Chunks(source).add(*ROWS) == len(ROWS)
    lines = await transfer.lines(source)
    header, *items, end = map(json.loads, lines)
    assert header["kinds"] == {"chunk": {"version": 1, "since": "firefly-memory 0.2"}}
    assert end["end"]["chunks"] == len(ROWS)
    assert [each["chunk"]["id"] for each in items] == [each.id for each in by_id(ROWS)]
    for _ in range(2):
        counts = await transfer.load(target, lines)
        assert counts == Counts(chunks=len(ROWS))
        assert counts.in_words().endswith(f", {len(ROWS)} chunks")
        assert await Chunks(target).every() == by_id(ROWS)
    assert (await transfer.lines(target))[1:] == lines[1:]


async def test_a_copy_has_every_chunk(transfer: Transfer, source: InMemoryStore, target: InMemoryStore) -> None:
    await Chunks(source).add(*ROWS)
    await Chunks(target).add(*ROWS[2:4])
    copied = await transfer.copy(source, target)
    assert copied.equal
    assert (copied.before, copied.target.counts) == (Counts(chunks=2), Counts(chunks=len(ROWS)))
    assert await Chunks(target).every() == by_id(ROWS)


async def test_an_item_has_what_was_added_and_nothing_derived(transfer: Transfer, source: InMemoryStore) -> None:
    await Chunks(source).add(ROWS[3])
    assert json.loads((await transfer.lines(source))[1]) == {
        "chunk": {
            "id": ROWS[3].id,
            "space": "\x10",
            "collection": "\0",
            "owner": "ann \0",
            "source": None,
            "text": "\0 \ud800 \x10 ~",
            "said_at": None,
            "who": "A\0nna",
            "group": "\udfff",
            "position": 3,
            "created_at": START.isoformat(),
            "language": "english",
        }
    }


async def test_an_archive_without_chunks_does_not_name_them(transfer: Transfer, source: InMemoryStore) -> None:
    source.save("n", MemoryEntry(entry_id="e", content=1))
    header, *_, end = map(json.loads, await transfer.lines(source))
    assert list(header) == ["format", "created_at", "raw_messages"]
    assert "chunks" not in end["end"]


async def test_the_words_are_those_of_the_targets_language(
    transfer: Transfer, source: InMemoryStore, target: InMemoryStore
) -> None:
    await Chunks(source).add(row("moving houses"))
    first = row("Häuser", language="german")
    await Chunks(target)("add", [first], {}, GERMAN)
    lines = await transfer.lines(source)
    copied = await transfer.copy(source, target, merge=True)
    assert copied.equal
    assert copied.beyond == Counts(chunks=1)
    assert await Chunks(target).every() == by_id([first, row("moving houses", language="german")])
    with InMemoryStore() as empty:
        await transfer.load(empty, lines)
        assert await Chunks(empty)("language") == ENGLISH
        assert await Chunks(empty).every() == [row("moving houses")]


async def test_an_empty_target_takes_the_language_of_the_source(
    transfer: Transfer, source: InMemoryStore, target: InMemoryStore
) -> None:
    of_earlier_rules = IndexLanguage("german", FORM - 1)
    await Chunks(source)("add", [row("Häuser", language="german")], {}, of_earlier_rules)
    assert (await transfer.copy(source, target)).equal
    assert await Chunks(target)("language") == GERMAN, "the words are made anew, by the rules of today"
    assert await Chunks(target).every() == [row("Häuser", language="german")]


async def test_an_index_of_other_rules_takes_no_words_of_todays(
    transfer: Transfer, source: InMemoryStore, target: InMemoryStore
) -> None:
    await Chunks(source).add(row("new"))
    await Chunks(target)("add", [row("old")], {}, IndexLanguage("english", FORM - 1))
    with pytest.raises(ConflictError, match="the words of the index of chunks"):
        await transfer.copy(source, target, merge=True)
    assert await Chunks(target)("count", None, None) == 1


async def test_vectors_stay_where_they_are(transfer: Transfer, source: InMemoryStore, target: InMemoryStore) -> None:
    chunk = row("text")
    await Chunks(source)("add", [chunk], {chunk.id: Vector("e", b"1234", b"1")}, ENGLISH)
    assert (await transfer.copy(source, target)).equal
    assert await Chunks(target)("without_vector", "e", 9, "") == [chunk]


async def test_a_chunk_that_is_there_is_left_by_an_import_and_replaced_by_a_merge(
    transfer: Transfer, source: InMemoryStore, target: InMemoryStore
) -> None:
    mine, theirs = row("the same"), row("the same", day=1)
    await Chunks(source).add(mine, row("more"))
    await Chunks(target).add(theirs)
    with pytest.raises(ConflictError, match=f"chunk '{mine.id}' of collection 'notes' .* is another one in the source"):
        await transfer.copy(source, target)
    await transfer.load(target, await transfer.lines(source))
    assert await Chunks(target).every() == by_id([theirs, row("more")])
    assert (await transfer.copy(source, target, merge=True)).equal
    assert await Chunks(target).every() == by_id([mine, row("more")])


async def test_a_part_or_none_of_the_chunks_can_be_moved(transfer: Transfer, source: InMemoryStore) -> None:
    await Chunks(source).add(row("a", collection="notes a"), row("b", collection="notes b"), row("c", collection="c"))
    lines = await transfer.lines(source)
    for options, texts in (({"only": "notes "}, ["a", "b"]), ({"only": "c"}, ["c"]), ({"knowledge": False}, [])):
        with InMemoryStore() as target:
            counts = await transfer.load(target, lines, **options)
            assert counts == (Counts(chunks=len(texts)) if texts else Counts())
            assert sorted(each.text for each in await Chunks(target).every()) == texts
    with InMemoryStore() as target:
        assert (await transfer.copy(source, target, knowledge=False)).source.counts == Counts()


async def test_a_store_that_keeps_no_knowledge_says_which_do(
    transfer: Transfer, source: InMemoryStore, tmp_path: Path
) -> None:
    await Chunks(source).add(row("text"))
    words = r"cannot keep knowledge; InMemoryStore, .* can, and knowledge=False \(--without-knowledge\) leaves them out"
    with FileStore(tmp_path) as target:
        with pytest.raises(NotSupportedError, match=words):
            await transfer.copy(source, target)
        with pytest.raises(NotSupportedError, match=f"line 2 of the archive: .*{words}"):
            await transfer.load(target, await transfer.lines(source))
        assert (await transfer.copy(source, target, knowledge=False)).equal
        assert (await transfer.copy(target, InMemoryStore())).equal


async def test_chunks_of_an_erased_person_end_an_import_and_a_copy(
    transfer: Transfer, source: InMemoryStore, target: InMemoryStore
) -> None:
    await Chunks(source).add(row("public"), row("mine", owner="ann"))
    lines = await transfer.lines(source)
    erase(target, "ann")
    with pytest.raises(ErasedError):
        await transfer.load(target, lines)
    with pytest.raises(ErasedError):
        await transfer.copy(source, target, merge=True)
    assert "mine" not in {each.text for each in await Chunks(target).every()}
    readmit(target, "ann")
    assert await transfer.load(target, lines) == Counts(chunks=2)
    assert (await transfer.copy(source, target)).equal


async def test_an_untrusted_import_does_not_show_a_persons_chunks_to_everybody(
    transfer: Transfer, source: InMemoryStore, target: InMemoryStore
) -> None:
    await Chunks(source).add(row("mine", owner="ann"), row("public"))
    await transfer.load(target, await transfer.lines(source), untrusted=True)
    assert {each.text: each.owner for each in await Chunks(target).every()} == {"mine": "ann", "public": None}


def archive(*items: Item) -> list[str]:
    header = {"format": "firefly-memory-archive/1", "created_at": START.isoformat(), "raw_messages": True}
    end = {"entries": 0, "conversations": 0, "turns": 0, "dialogues": 0, "messages": 0, "chunks": len(items)}
    return [json.dumps(line) for line in (header, *({"chunk": each} for each in items), {"end": end})]


def item(**changed: Any) -> Item:
    """The item of a chunk, with the id that it should have."""
    made = row("text", source={"file": "a"}, who="Anna", group="g", position=2, at=date(2023, 5, 8))
    fields = {
        "id": made.id,
        "space": "",
        "collection": "notes",
        "owner": None,
        "source": {"file": "a"},
        "text": "text",
        "said_at": "2023-05-08",
        "language": "english",
        "who": "Anna",
        "group": "g",
        "position": 2,
        "created_at": START.isoformat(),
    }
    return {**fields, **changed}


CONTENTS: dict[str, Any] = {
    "id": "0" * 32,
    "space": "other",
    "collection": "other",
    "owner": "ann",
    "source": {"file": "b"},
    "text": "other",
    "group": "other",
    "position": 3,
}


@pytest.mark.parametrize(("name", "value"), CONTENTS.items())
async def test_an_item_whose_id_is_not_made_of_its_contents_is_refused_by_name(
    name: str, value: Any, transfer: Transfer, target: InMemoryStore
) -> None:
    forged = item(**{name: value})
    chunk = f"chunk '{forged['id']}' of collection '{forged['collection']}' is not made of its contents"
    with pytest.raises(CorruptDataError, match=f"line 2 of the archive .*{chunk}"):
        await transfer.load(target, archive(forged))
    assert await Chunks(target).every() == []


WRONG: dict[str, list[Any]] = {
    "id": [None, 7, ["a"], "", "\ud800"],
    "space": [None, 7, "x" * 513, ["a"]],
    "collection": [None, "", 7, "x" * 513, {}],
    "owner": ["", 7, "x" * 513, []],
    "source": [{"~str": 7}, {"~nonsense": 1}, {"~int": "z"}],
    "text": [None, "", " \n", 7, ["text"], "x" * 4_000_001],
    "said_at": [7, "", "T", "yesterday", "2023-05-08T10:00:00", "2023-13-01", ["T"], "0001-01-01T00:00:00+23:00", {}],
    "who": [7, [], False, "x" * 513],
    "group": [7, "", [], "x" * 513],
    "position": [None, -1, 1.0, "1", True, [1]],
    "created_at": [None, 7, "", "2026-05-06", "2026-05-06T00:00:00", "0001-01-01T00:00:00+23:00"],
}


ALONE = {"group": None, "id": row("text", source={"file": "a"}).id}


@pytest.mark.parametrize(("name", "value"), [(name, each) for name, values in WRONG.items() for each in values])
async def test_a_damaged_field_is_refused_by_its_line(name: str, value: Any, target: InMemoryStore) -> None:
    lacking = {key: each for key, each in item().items() if key != name}
    for damaged in (item(**{name: value}), item(**{**ALONE, name: value}), lacking):
        with pytest.raises(CorruptDataError, match="line 2 of the archive") as caught:
            import_jsonl(target, archive(damaged))
        assert len(str(caught.value)) < 1_000
    assert await Chunks(target).every() == []


async def test_other_ways_to_write_an_instant_are_the_same_instant(target: InMemoryStore) -> None:
    assert import_jsonl(InMemoryStore(), archive(item())) == Counts(chunks=1), "the tests of damage begin with this one"
    moment = datetime(2023, 5, 8, 10, tzinfo=UTC)
    made = row("text", source={"file": "a"}, who="Anna", group="g", position=2, at=moment)
    instants = {"said_at": "2023-05-08T12:00:00+02:00", "created_at": "2026-05-06T09:08:09.101112+02:00"}
    written = item(id=made.id, **instants)
    import_jsonl(target, archive(written))
    (found,) = await Chunks(target).every()
    assert (found.said_at, found.created_at) == ("2023-05-08T10:00:00.000000+00:00", START)


async def test_a_forged_chunk_of_a_source_is_not_copied(source: InMemoryStore, target: InMemoryStore) -> None:
    await Chunks(source).add(row("text")._replace(text="other"))
    with pytest.raises(InvalidEntryError, match="is not made of its contents"):
        copy_store(source, target)


@given(
    st.builds(
        row_of,
        st.builds(
            Chunk,
            names.filter(str.strip),
            st.none() | names,
            st.none() | st.dates() | st.datetimes(min_value=datetime(2, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
            st.none() | names,
        ),
        space=st.just(""),
        collection=st.just("c"),
        owner=st.none() | st.just("ann"),
        source=st.none() | json_values.map(lambda value: row("x", source=value).source),
        position=st.integers(0, 9),
        created_at=st.just(START),
        language=st.just("english"),
    )
)
def test_every_chunk_comes_out_of_its_item_as_it_was(chunk: ChunkRow) -> None:
    line = json.dumps(moving._as_json(chunk))
    restored = moving._row_from_json(json.loads(line), "english")
    assert restored == chunk
    assert original_name(restored.text) == stored_chunk(restored).text
