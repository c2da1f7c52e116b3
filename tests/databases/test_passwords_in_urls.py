"""A password that is not percent-encoded appears in no command output and in no error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConfigurationError, MemoryManager
from firefly_memory.cli import main
from tests.support.error_chains import shown_by

SECRET = "s3cret"
URLS = [
    f"{scheme}://{rest}"
    for scheme in ("postgresql",)
    for rest in (
        f"u:123/{SECRET}@h/db",
        f"u:1@{SECRET}/3@h/db",
        f"u:12?{SECRET}@h/db",
        f"u:12?a={SECRET}@h/db",
        f"u:12/a?b={SECRET}@h/db",
        f"u:12?{SECRET}=1@h/db",
    )
]
COMMANDS = [
    ["doctor"],
    ["db", "current"],
    ["db", "check"],
    ["db", "upgrade"],
    ["db", "downgrade", "base"],
    ["db", "stamp", "head"],
    ["export", "archive.jsonl"],
    ["import", "archive.jsonl"],
]


@pytest.mark.parametrize("url", URLS)
def test_no_command_shows_an_unencoded_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "archive.jsonl").write_text("")
    given = [[*command, "--url", url, "--json"] for command in COMMANDS[:6]]
    given += [[*command, "--url", url] for command in COMMANDS]
    given.append(["copy", "--from", url, "--to", "memory:"])
    given.append(["copy", "--from", "memory:", "--to", url])
    given.append(["db", "import-legacy", "--from", url, "--url", "memory:"])
    for arguments in given:
        try:
            code: Any = main(arguments)
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert code != 0, arguments
        assert SECRET not in said.out + said.err, arguments


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("variable", ["URL", "{}_URL"])
def test_no_error_of_a_manager_shows_an_unencoded_password(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = "postgres" if url.startswith("postgresql") else "mongodb"
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_" + variable.format(backend.upper()), url)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", backend)
    with pytest.raises(ConfigurationError) as caught:
        MemoryManager.from_config()
    assert SECRET not in shown_by(caught.value)
