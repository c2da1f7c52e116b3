"""A facet that another package registers is exported, imported and copied like those of the library."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from firefly_memory import (
    ConfigurationError,
    ConflictError,
    CorruptDataError,
    EntryStore,
    InMemoryStore,
    MemoryEntry,
    NotSupportedError,
    SQLiteStore,
)
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.facets import all_facets, registered
from firefly_memory.transfer.counts import Counts
from tests.support.facets import unregistered
from tests.support.notes_facet import NOTES, notes_facet

TEXTS = {f"note {number}": f"text {number}" for number in range(7)}


@pytest.fixture(autouse=True)
def _notes() -> Iterator[None]:
    with registered([notes_facet()]):
        yield


def notes_of(store: EntryStore) -> dict[str, str]:
    return store.blocking.log(NOTES).by_name


def filled() -> InMemoryStore:
    store = InMemoryStore()
    store.save("n", MemoryEntry(entry_id="e", content=1))
    notes_of(store).update(TEXTS)
    return store


def exported(store: EntryStore) -> str:
    file = io.StringIO()
    export_jsonl(store, file)
    return file.getvalue()


def test_an_import_restores_the_exported_items() -> None:
    source, target = filled(), InMemoryStore()
    file = io.StringIO()
    steps: list[tuple[str, int]] = []
    counts = export_jsonl(source, file, progress=lambda step, counts: steps.append((step, counts.notes)))
    assert steps[-1] == ("exported", 7)
    assert counts == Counts(entries=1, notes=7)
    assert counts.in_words() == "1 entries, 0 conversations with 0 turns, 7 notes"
    header, *_, end = map(json.loads, file.getvalue().splitlines())
    assert header["kinds"] == {"note": {"version": 1, "since": "firefly-notes 1.0"}}
    assert end["end"]["notes"] == 7
    for _ in range(2):
        assert import_jsonl(target, io.StringIO(file.getvalue())) == counts
        assert notes_of(target) == TEXTS
    assert exported(target).splitlines()[1:] == file.getvalue().splitlines()[1:]


async def test_the_asynchronous_functions_do_the_same() -> None:
    source, target, other = filled(), InMemoryStore(), InMemoryStore()
    file = io.StringIO()
    counts = await async_export_jsonl(source, file)
    assert await async_import_jsonl(target, io.StringIO(file.getvalue())) == counts
    assert (await async_copy_store(source, other)).equal
    assert notes_of(target) == notes_of(other) == TEXTS


def test_a_copy_has_all_items_and_compares_them() -> None:
    source, target = filled(), InMemoryStore()
    notes_of(target)["note 3"] = TEXTS["note 3"]
    copied = copy_store(source, target)
    assert copied.equal
    assert copied.before == Counts(notes=1)
    assert copied.target.counts == Counts(entries=1, notes=7)
    assert notes_of(target) == TEXTS
    notes_of(target)["note 3"] = "another text"
    with pytest.raises(ConflictError, match="note 'note 3' of the target is another one in the source"):
        copy_store(source, target)
    notes_of(target)["of its own"] = ""
    assert copy_store(source, target, merge=True).beyond == Counts(notes=1)
    assert notes_of(target) == {**TEXTS, "of its own": ""}


def test_a_part_or_none_of_the_items_can_be_moved() -> None:
    source, target = filled(), InMemoryStore()
    notes_of(source)["note 1"] = "obey me"
    lines = exported(source).splitlines()
    assert import_jsonl(target, lines, only="note 1", untrusted=True) == Counts(notes=1)
    assert notes_of(target) == {"note 1": " me"}
    assert import_jsonl(InMemoryStore(), lines, notes=False) == Counts(entries=1)
    assert copy_store(source, InMemoryStore(), notes=False).source.counts == Counts(entries=1)
    assert export_jsonl(source, io.StringIO(), notes=False) == Counts(entries=1)
    options = [facet.name for facet in all_facets() if isinstance(getattr(facet.moving, "without", None), str)]
    assert {"agent_history", "notes"} <= set(options)
    with pytest.raises(ConfigurationError, match=f"'conversations' cannot be left out; .*{', '.join(options)}$"):
        export_jsonl(source, io.StringIO(), conversations=False)


def test_a_damaged_item_is_refused_by_its_line() -> None:
    lines = exported(filled()).splitlines()
    for wrong in ('{"note": {"name": "note 0", "text": 1}}', '{"note": []}', '{"note": {}}'):
        with pytest.raises(CorruptDataError, match="line 3 of the archive"):
            import_jsonl(InMemoryStore(), [*lines[:2], wrong, *lines[3:]])
    with pytest.raises(CorruptDataError, match="lines are missing"):
        import_jsonl(InMemoryStore(), [*lines[:3], *lines[4:]])


def test_a_store_without_the_facet_refuses_its_items(tmp_path: Path) -> None:
    source = filled()
    words = r"the target cannot keep notes; InMemoryStore can, and notes=False \(--without-notes\) leaves them out"
    with SQLiteStore(tmp_path / "memory.db") as target:
        with pytest.raises(NotSupportedError, match=words):
            copy_store(source, target)
        with pytest.raises(NotSupportedError, match=f"line 3 of the archive: {words}"):
            import_jsonl(target, exported(source).splitlines())
        assert copy_store(source, target, notes=False, merge=True).equal
        assert copy_store(target, InMemoryStore()).equal


def test_a_version_without_the_facet_refuses_the_archive_before_anything_is_saved() -> None:
    lines = exported(filled()).splitlines()
    with unregistered():
        target = InMemoryStore()
        words = "line 1 of the archive: .* the kind 'note' in version 1, .* it needs firefly-notes 1.0"
        with pytest.raises(NotSupportedError, match=words):
            import_jsonl(target, lines)
        assert target.namespaces() == []
        header = {name: value for name, value in json.loads(lines[0]).items() if name != "kinds"}
        with pytest.raises(CorruptDataError, match=r"line 3 .*no lines of the kind 'note' that this version knows"):
            import_jsonl(target, [json.dumps(header), *lines[1:]])


def test_a_version_with_an_earlier_item_format_refuses_the_archive() -> None:
    with unregistered(), registered([notes_facet("LATER_KINDS")]):
        later = exported(filled()).splitlines()
    with pytest.raises(NotSupportedError, match=r"the kind 'note' in version 2, .* it needs firefly-notes 2\.0"):
        import_jsonl(InMemoryStore(), later)
    assert import_jsonl(InMemoryStore(), later, notes=False) == Counts(entries=1)


@pytest.mark.parametrize(
    "kinds", [[], 7, {"note": 1}, {"note": {}}, {"note": {"version": "1"}}, {"x" * 10_000: {"version": 1, "since": ""}}]
)
def test_the_error_about_a_damaged_header_is_short(kinds: object) -> None:
    header = json.loads(exported(filled()).splitlines()[0])
    with pytest.raises((CorruptDataError, NotSupportedError), match="line 1 of the archive") as caught:
        import_jsonl(InMemoryStore(), [json.dumps({**header, "kinds": kinds})])
    assert len(str(caught.value)) < 1_000


def test_an_archive_without_items_of_the_facet_does_not_change() -> None:
    with InMemoryStore() as store:
        store.save("n", MemoryEntry(entry_id="e", content=1))
        header, *_, end = map(json.loads, exported(store).splitlines())
    assert list(header) == ["format", "created_at", "raw_messages"]
    assert list(end["end"]) == ["entries", "conversations", "turns", "dialogues", "messages"]


def test_the_number_of_agents_conversations_has_its_earlier_name_in_archives() -> None:
    counts = Counts(agent_conversations=2, messages=3)
    assert (
        counts.agent_conversations == counts.as_dict()["agent_conversations"] == counts.as_archived()["dialogues"] == 2
    )
    assert "agent_conversations" not in counts.as_archived()
    assert Counts.of_archive({"dialogues": 2, "messages": 3}) == counts


def test_the_commands_have_an_option_for_the_facet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_text(exported(filled()))
    importing = ["import", "--url", f"sqlite:///{tmp_path}/a.db", str(archive)]
    assert main(importing) == Exit.FAILED
    assert "--without-notes" in capsys.readouterr().err
    assert main([*importing, "--without-notes"]) == Exit.DONE
    assert capsys.readouterr().err == "imported 1 entries, 0 conversations with 0 turns\n"
    assert main(["import", "--url", "memory:", str(archive)]) == Exit.DONE
    assert capsys.readouterr().err == "imported 1 entries, 0 conversations with 0 turns, 7 notes\n"
