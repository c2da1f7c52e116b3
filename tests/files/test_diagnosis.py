"""``firefly-memory doctor`` on files that were changed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import FileStore, MemoryEntry
from firefly_memory.service.file_diagnosis import diagnose


@pytest.mark.parametrize("namespace", [True, 5, None, ["n"], {}])
def test_doctor_names_a_file_whose_namespace_is_not_a_text(namespace: Any, tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        store.save("n", MemoryEntry(content=1))
    (file,) = tmp_path.glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "namespace": namespace}))
    found = [each for each in diagnose(f"file:{tmp_path}") if str(file) in each.found]
    assert [each.found for each in found] == [
        f"{file} cannot be read: its namespace is {type(namespace).__name__}, not text"
    ]
