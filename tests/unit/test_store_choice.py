"""``from_config()``, every command and Alembic choose the same store, for every combination of settings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConfigurationError
from firefly_memory.settings import PREFIX, read_settings
from firefly_memory.target import Given, Target, target

PG, OTHER_PG = "postgresql://u:s3cret@h/one", "postgresql://u:s3cret@h/other"
MONGO = "mongodb://u:s3cret@h/"
SQLITE = "sqlite:///a%20file.db"

EVERYTHING = {
    "FILE_DIR": "files",
    "SQLITE_PATH": "a file.db",
    "POSTGRES_URL": PG,
    "POSTGRES_SCHEMA": "agents",
    "POSTGRES_POOL_SIZE": "3",
    "POSTGRES_POOL_MIN_SIZE": "1",
    "POSTGRES_POOLER": "transaction",
    "MONGODB_URL": MONGO,
    "MONGODB_DATABASE": "agents",
    "MONGODB_COLLECTION": "memories",
    "MONGODB_POOL_SIZE": "4",
}
"""All of the documented variables but those that say which backend is meant."""

OF_PG = {"schema_name": "agents", "pool_size": 3, "pool_min_size": 1, "pooler": "transaction", "migrate": True}
OF_MONGO = {"database": "agents", "collection": "memories", "pool_size": 4, "migrate": True}
DEFAULTS_OF_PG = {"schema_name": "firefly_memory", "pool_size": 10, "pool_min_size": 2, "pooler": None, "migrate": True}
DEFAULTS_OF_MONGO = {"database": "firefly_memory", "collection": "entries", "pool_size": 10, "migrate": True}


@dataclass(frozen=True)
class Case:
    """What is set, after the prefix, and which store that means: its kind, URL and options, or the words of the error.

    ``manager`` is for ``from_config()``, ``command`` for commands and Alembic, where these differ.
    """

    set: dict[str, str]
    meant: Any
    manager: Any = None
    given: Given = field(default_factory=Given)

    def __str__(self) -> str:
        options = [name for name in ("url", "schema_name", "database", "collection") if getattr(self.given, name)]
        return " ".join([*(f"{name}={value}" for name, value in self.set.items()), *options]).replace("s3cret", "")


IN_MEMORY: tuple[str, str, dict[str, Any]] = ("in_memory", "memory:", {})
AMBIGUOUS = f"set {PREFIX}BACKEND: without it"

CASES = [
    # Nothing says which backend is meant: a manager stays in memory, and commands take the only server.
    Case({}, None, manager=IN_MEMORY),
    Case({"FILE_DIR": "files"}, None, manager=IN_MEMORY),
    Case({"POSTGRES_URL": PG}, ("postgres", PG, DEFAULTS_OF_PG), manager="POSTGRES_URL"),
    Case({"MONGODB_URL": MONGO}, ("mongodb", MONGO, DEFAULTS_OF_MONGO), manager="MONGODB_URL"),
    Case({"SQLITE_PATH": "a.db"}, AMBIGUOUS, manager="SQLITE_PATH"),
    Case({"POSTGRES_URL": PG, "SQLITE_PATH": "a.db"}, AMBIGUOUS, manager=f"SQLITE_PATH and {PREFIX}POSTGRES_URL"),
    Case(EVERYTHING, AMBIGUOUS, manager="MONGODB_URL"),
    # BACKEND decides; variables of the others are there as well, as the documents set all of them in one block.
    Case({**EVERYTHING, "BACKEND": "in_memory"}, IN_MEMORY),
    Case({**EVERYTHING, "BACKEND": "file"}, ("file", "file://files", {})),
    Case({**EVERYTHING, "BACKEND": "sqlite"}, ("sqlite", SQLITE, {"migrate": True})),
    Case({**EVERYTHING, "BACKEND": "postgres"}, ("postgres", PG, OF_PG)),
    Case({**EVERYTHING, "BACKEND": "mongodb"}, ("mongodb", MONGO, OF_MONGO)),
    Case({"BACKEND": "file"}, ("file", "file://.firefly_memory", {})),
    Case({"BACKEND": "file", "FILE_DIR": "//srv/my files"}, ("file", "file:////srv/my%20files", {})),
    Case({"BACKEND": "postgres", "MONGODB_URL": MONGO}, f"BACKEND is postgres, which needs {PREFIX}POSTGRES_URL"),
    Case({"BACKEND": "sqlite"}, f"which needs {PREFIX}SQLITE_PATH"),
    Case(
        {"BACKEND": "postgres", "POSTGRES_URL": SQLITE},
        f"{PREFIX}POSTGRES_URL must be the URL of PostgreSQL, not of SQLite",
    ),
    Case(
        {"BACKEND": "postgres", "POSTGRES_URL": MONGO},
        f"{PREFIX}POSTGRES_URL must be the URL of PostgreSQL, not of MongoDB",
    ),
    Case(
        {"BACKEND": "mongodb", "MONGODB_URL": PG}, f"{PREFIX}MONGODB_URL must be the URL of MongoDB, not of PostgreSQL"
    ),
    Case(
        {"BACKEND": "mongodb", "MONGODB_URL": "memory:"},
        f"{PREFIX}MONGODB_URL must be the URL of MongoDB, not of memory",
    ),
    Case({"BACKEND": "postgres", "POSTGRES_URL": "h/s3cret"}, f"{PREFIX}POSTGRES_URL: this is not a URL"),
    Case({"POSTGRES_URL": MONGO}, f"{PREFIX}POSTGRES_URL must be the URL of PostgreSQL", manager="POSTGRES_URL"),
    Case(
        {"BACKEND": "sqlite", "SQLITE_PATH": SQLITE},
        f"{PREFIX}SQLITE_PATH takes a path; a URL goes into {PREFIX}URL",
    ),
    Case({"BACKEND": "sqlite", "SQLITE_PATH": PG}, f"{PREFIX}SQLITE_PATH takes a path"),
    Case({"BACKEND": "file", "FILE_DIR": "file://files"}, f"{PREFIX}FILE_DIR takes a path"),
    Case({"BACKEND": "mongodb", "POSTGRES_URL": PG}, f"which needs {PREFIX}MONGODB_URL"),
    Case(
        {"BACKEND": "mongodb", "MONGODB_URL": f"{MONGO}own"},
        ("mongodb", f"{MONGO}own", DEFAULTS_OF_MONGO | {"database": "own"}),
    ),
    Case(
        {"BACKEND": "mongodb", "MONGODB_URL": f"{MONGO}login", "MONGODB_DATABASE": "own"},
        ("mongodb", f"{MONGO}login", DEFAULTS_OF_MONGO | {"database": "own"}),
    ),
    Case({"BACKEND": "mongodb", "MONGODB_URL": f"{MONGO}admin"}, ("mongodb", f"{MONGO}admin", DEFAULTS_OF_MONGO)),
    # A URL, or the file that has it, names the backend; what stands beside it for that backend is heard.
    *(
        case
        for name in ("URL", "URL_FILE")
        for case in (
            Case({name: PG}, ("postgres", PG, DEFAULTS_OF_PG)),
            Case({name: "PostgreSQL://h/one"}, ("postgres", "PostgreSQL://h/one", DEFAULTS_OF_PG)),
            Case({**EVERYTHING, name: PG}, ("postgres", PG, OF_PG)),
            Case({**EVERYTHING, name: PG, "BACKEND": "postgres"}, ("postgres", PG, OF_PG)),
            Case({**EVERYTHING, name: MONGO}, ("mongodb", MONGO, OF_MONGO)),
            Case({**EVERYTHING, name: SQLITE}, ("sqlite", SQLITE, {"migrate": True})),
            Case({**EVERYTHING, name: "file:files"}, ("file", "file:files", {})),
            Case({**EVERYTHING, name: "memory:"}, IN_MEMORY),
            Case({name: SQLITE, "MIGRATE": "false"}, ("sqlite", SQLITE, {"migrate": False})),
            Case({name: f"{MONGO}own"}, ("mongodb", f"{MONGO}own", DEFAULTS_OF_MONGO | {"database": "own"})),
            Case(
                {name: f"{MONGO}admin", "MONGODB_DATABASE": "own"},
                ("mongodb", f"{MONGO}admin", DEFAULTS_OF_MONGO | {"database": "own"}),
            ),
            Case(
                {name: f"{MONGO}own", "MONGODB_DATABASE": "own"},
                ("mongodb", f"{MONGO}own", DEFAULTS_OF_MONGO | {"database": "own"}),
            ),
            # One file or directory has many spellings.
            Case(
                {name: "sqlite:///memory.db", "SQLITE_PATH": "./memory.db"},
                ("sqlite", "sqlite:///memory.db", {"migrate": True}),
            ),
            Case(
                {name: "sqlite:////srv/memory.db", "SQLITE_PATH": "/srv//x/../memory.db"},
                ("sqlite", "sqlite:////srv/memory.db", {"migrate": True}),
            ),
            Case({name: "sqlite://", "SQLITE_PATH": ":memory:"}, ("sqlite", "sqlite://", {"migrate": True})),
            Case({name: "sqlite:///:memory:", "SQLITE_PATH": "./:memory:"}, f"{PREFIX}SQLITE_PATH contradicts"),
            Case({name: "file:files/", "FILE_DIR": "./files"}, ("file", "file:files/", {})),
            Case({name: "file:%00", "FILE_DIR": "files"}, f"{PREFIX}FILE_DIR contradicts"),
            # What contradicts it is an error that names the variable.
            Case(
                {name: f"{MONGO}own", "MONGODB_DATABASE": "other"},
                f"{PREFIX}MONGODB_DATABASE contradicts {PREFIX}{name}:",
            ),
            Case({name: PG, "BACKEND": "in_memory"}, f"{PREFIX}BACKEND contradicts {PREFIX}{name}:"),
            Case(
                {name: SQLITE, "BACKEND": "postgres", "POSTGRES_URL": PG},
                f"{PREFIX}BACKEND contradicts {PREFIX}{name}:",
            ),
            Case({name: PG, "POSTGRES_URL": OTHER_PG}, f"{PREFIX}POSTGRES_URL contradicts {PREFIX}{name}:"),
            Case({name: MONGO, "MONGODB_URL": "mongodb://other/"}, f"{PREFIX}MONGODB_URL contradicts {PREFIX}{name}:"),
            Case({name: SQLITE, "SQLITE_PATH": "b.db"}, f"{PREFIX}SQLITE_PATH contradicts {PREFIX}{name}:"),
            Case({name: "file:files", "FILE_DIR": "others"}, f"{PREFIX}FILE_DIR contradicts {PREFIX}{name}:"),
            Case({name: "redis://u:s3cret@h"}, f"{PREFIX}{name}: no store has a URL that starts with 'redis'"),
        )
    ),
    Case({"URL": PG, "URL_FILE": PG}, ("postgres", PG, DEFAULTS_OF_PG)),
    # A mounted secret often ends with a line feed.
    Case({"URL": f" {PG}\n"}, ("postgres", PG, DEFAULTS_OF_PG)),
    Case({"URL": f"{PG}\n", "URL_FILE": PG, "POSTGRES_URL": f"{PG}\r\n"}, ("postgres", PG, DEFAULTS_OF_PG)),
    Case({"BACKEND": "postgres", "POSTGRES_URL": f"{PG}\n"}, ("postgres", PG, DEFAULTS_OF_PG)),
    Case({"BACKEND": "mongodb", "MONGODB_URL": f"\t{MONGO} \n"}, ("mongodb", MONGO, DEFAULTS_OF_MONGO)),
    Case({"URL": "\n", "POSTGRES_URL": " "}, None, manager=IN_MEMORY),
    Case({"URL_FILE": "\n"}, f"{PREFIX}URL_FILE: the file url must have a URL in it"),
    Case({"URL": PG, "URL_FILE": MONGO}, f"{PREFIX}URL_FILE contradicts {PREFIX}URL:"),
]

ON_A_COMMAND_LINE = [
    # Options come before whatever is set, and contradict nothing.
    Case({"URL": SQLITE, "BACKEND": "sqlite"}, ("postgres", PG, DEFAULTS_OF_PG), given=Given(PG)),
    Case({"BACKEND": "file", "POSTGRES_URL": OTHER_PG}, ("postgres", PG, DEFAULTS_OF_PG), given=Given(PG)),
    Case(EVERYTHING, ("postgres", PG, OF_PG), given=Given(PG)),
    Case(EVERYTHING, ("postgres", PG, OF_PG | {"schema_name": "own"}), given=Given(PG, schema_name="own")),
    Case({"URL": PG, "POSTGRES_SCHEMA": "agents"}, ("postgres", PG, DEFAULTS_OF_PG | {"schema_name": "own"}), given=Given(schema_name="own")),
    Case(EVERYTHING, ("mongodb", MONGO, OF_MONGO), given=Given(MONGO)),
    Case(EVERYTHING, ("mongodb", f"{MONGO}own", OF_MONGO | {"database": "own"}), given=Given(f"{MONGO}own")),
    Case(EVERYTHING, ("mongodb", f"{MONGO}login", OF_MONGO | {"database": "own"}), given=Given(f"{MONGO}login", database="own")),
    Case({"MONGODB_URL": MONGO}, ("mongodb", MONGO, DEFAULTS_OF_MONGO | {"database": "own", "collection": "mine"}), given=Given(database="own", collection="mine")),
    Case({"BACKEND": "sqlite", "SQLITE_PATH": "a.db"}, "--schema is for PostgreSQL, and the store is SQLite", given=Given(schema_name="x")),
    Case({}, "--database is for MongoDB, and the store is PostgreSQL", given=Given(PG, database="x")),
    Case({}, "--collection is for MongoDB, and the store is files", given=Given("file:x", collection="x")),
    Case({}, "no store has a URL that starts with 'redis'", given=Given("redis://u:s3cret@h")),
]  # fmt: skip


@contextmanager
def _set(case: Case, monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[None]:
    monkeypatch.chdir(directory)
    with monkeypatch.context() as patch:
        for name, value in case.set.items():
            if name == "URL_FILE":
                (directory / "url").write_text(f"{value}\n")
            patch.setenv(PREFIX + name, "url" if name == "URL_FILE" else value)
        yield


def _matches(found: Target | None, meant: Any) -> None:
    if found is None:
        assert meant is None
        return
    assert (str(found.kind), found.url, found.options) == meant
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize("case", [*CASES, *ON_A_COMMAND_LINE], ids=str)
def test_commands_and_alembic_choose_the_same_store(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with _set(case, monkeypatch, tmp_path):
        if isinstance(case.meant, str):
            with pytest.raises(ConfigurationError) as caught:
                target(read_settings(), case.given)
            assert case.meant in str(caught.value)
            assert "s3cret" not in str(caught.value)
        else:
            _matches(target(read_settings(), case.given), case.meant)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_manager_chooses_the_same_store_or_warns_and_uses_memory(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with _set(case, monkeypatch, tmp_path):
        if isinstance(case.manager, str):
            with pytest.warns(UserWarning, match=f"kept in memory.*{case.manager} (is|are) not used.*{PREFIX}BACKEND"):
                found = target(read_settings(), for_a_manager=True)
            _matches(found, IN_MEMORY)
        elif isinstance(case.meant, str):
            with pytest.raises(ConfigurationError) as caught:
                target(read_settings(), for_a_manager=True)
            assert case.meant in str(caught.value)
        else:
            with warnings.catch_warnings(action="error"):
                _matches(target(read_settings(), for_a_manager=True), case.manager or case.meant)


def test_a_url_file_that_cannot_be_read_names_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(f"{PREFIX}URL_FILE", str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match=f"^{PREFIX}URL_FILE: the URL cannot be read from the file .*missing"):
        target(read_settings())


def test_a_link_to_the_same_file_is_no_contradiction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for path in ("memory.db", "link/memory.db"):
        with _set(Case({"URL": "sqlite:///memory.db", "SQLITE_PATH": path}, None), monkeypatch, tmp_path):
            found = target(read_settings())
        assert found is not None
        assert found.url == "sqlite:///memory.db"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["SQLITE_PATH"], f"{PREFIX}SQLITE_PATH does not say which store is meant"),
        (
            ["SQLITE_PATH", "MONGODB_URL"],
            f"{PREFIX}SQLITE_PATH and {PREFIX}MONGODB_URL do not say which store is meant",
        ),
        (
            ["SQLITE_PATH", "POSTGRES_URL", "MONGODB_URL"],
            f"{PREFIX}SQLITE_PATH, {PREFIX}POSTGRES_URL and {PREFIX}MONGODB_URL do not say which store is meant",
        ),
    ],
    ids=str,
)
def test_the_error_has_singular_and_plural_forms(
    names: list[str], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with _set(Case({name: EVERYTHING[name] for name in names}, None), monkeypatch, tmp_path):
        with pytest.raises(ConfigurationError) as caught:
            target(read_settings())
        assert str(caught.value) == f"set {PREFIX}BACKEND: without it {words}"
        with pytest.warns(UserWarning, match=f"{PREFIX}{names[-1]} {'is' if len(names) == 1 else 'are'} not used"):
            target(read_settings(), for_a_manager=True)


def test_only_for_commands_says_that_a_manager_uses_another_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def only_for_commands(case: Case) -> bool:
        with _set(case, monkeypatch, tmp_path):
            found = target(read_settings(), case.given)
        assert found is not None
        return found.only_for_commands

    assert only_for_commands(Case({"POSTGRES_URL": PG}, None))
    assert only_for_commands(Case({"MONGODB_URL": MONGO, "FILE_DIR": "files"}, None))
    assert not only_for_commands(Case({"POSTGRES_URL": PG, "BACKEND": "postgres"}, None))
    assert not only_for_commands(Case({"POSTGRES_URL": PG, "URL": PG}, None))
    assert not only_for_commands(Case({"POSTGRES_URL": PG}, None, given=Given(PG)))


def test_unused_variables_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unused(case: Case) -> list[str]:
        with _set(case, monkeypatch, tmp_path):
            found = target(read_settings(), case.given)
        assert found is not None
        return [name.removeprefix(PREFIX) for name in found.unused]

    of_mongodb = ["MONGODB_COLLECTION", "MONGODB_DATABASE", "MONGODB_POOL_SIZE", "MONGODB_URL"]
    of_postgresql = [
        "POSTGRES_POOL_MIN_SIZE",
        "POSTGRES_POOL_SIZE",
        "POSTGRES_POOLER",
        "POSTGRES_SCHEMA",
        "POSTGRES_URL",
    ]
    assert unused(Case({"BACKEND": "postgres", "POSTGRES_URL": PG, "SUMMARIZE_THRESHOLD": "3000"}, None)) == []
    assert unused(Case({**EVERYTHING, "BACKEND": "postgres"}, None)) == ["FILE_DIR", *of_mongodb, "SQLITE_PATH"]
    assert unused(Case({**EVERYTHING, "URL": "file:files"}, None)) == [*of_mongodb, *of_postgresql, "SQLITE_PATH"]
    assert unused(Case({"URL": PG, "POSTGRES_SCHEMA": "x"}, None, given=Given(OTHER_PG))) == ["URL"]
