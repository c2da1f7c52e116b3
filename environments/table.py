"""Which environments there are: what is installed in each, and what is run there."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKS = "environments/checks"
PACKAGE = "examples/backend_package"

EXTRAS = ("postgres", "mongodb", "agents", "tokens", "cli", "vectors", "embeddings", "strategies", "yaml")


def _uses(path: Path, packages: str) -> bool:
    return re.search(rf"^\s*from ({packages})\b", path.read_text(), re.MULTILINE) is not None


def _agents(*others: str) -> list[str]:
    """The tests that use pydantic-ai, and some others. The suite's conftest leaves out what an older one cannot run."""
    support = [path.stem for path in (ROOT / "tests" / "support").glob("*.py") if _uses(path, "pydantic_ai")]
    packages = "|".join(["pydantic_ai", *(rf"tests\.support\.{name}" for name in support)])
    tests = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    return [
        *[f"--ignore={name}" for name, path in tests.items() if name not in others and not _uses(path, packages)],
        "tests",
    ]


_OF_THE_SCHEMA = tuple(
    f"tests/migrations/test_{name}.py" for name in ("schema", "alembic_command", "concurrent_starts")
)

_NOT_OF_PROCESSES = "not races and not transfer and not archive and not kill and not process"
"""What does not depend on the versions of libraries, and takes long."""

_ONCE_PER_DRIVER = (
    f"{_NOT_OF_PROCESSES} and "
    "(not test_conformance or mongodb- or (asyncpg- and suspending) or (psycopg- and blocking))"
)


_WIDELY = tuple(
    f"tests/{name}"
    for name in ("unit", "entries", "conversations", "agents", "sqlite", "files", "postgresql", "migrations")
)
"""The folders whose tests depend on the version of Python."""


@dataclass(frozen=True)
class Environment:
    """``requirements`` are pip's; without any, it is the environment for development, ``.venv``."""

    requirements: tuple[str, ...]
    pytest: tuple[str, ...]
    """pytest's arguments."""
    extras: tuple[str, ...] = ()
    lowest: bool = False
    """Whether the oldest versions are installed that the library accepts."""
    python: str = sys.executable
    """A version is looked for by uv, on the PATH first."""


def _suite(*arguments: str, processes: str = "2") -> tuple[str, ...]:
    return ("--numprocesses", processes, "--dist", "worksteal", "--no-header", "-q", *arguments)


def _checks(*names: str) -> tuple[str, ...]:
    return (
        "-c",
        f"{CHECKS}/pytest.ini",
        "-q",
        f"{CHECKS}/test_every_install.py",
        *(f"{CHECKS}/{name}" for name in names),
    )


def _project(*extras: str) -> str:
    return f"firefly-memory[{','.join(extras)}] @ {ROOT.as_uri()}"


def testing_tools() -> tuple[str, ...]:
    """What the suite needs beside the library and its extras."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return tuple(groups["test"])


ENVIRONMENTS = {
    "core": Environment((_project(), "pytest"), _checks("test_core.py")),
    "oldest-core": Environment((_project(), "pytest>=8.4"), _checks("test_core.py"), lowest=True),
    "oldest": Environment(
        (_project("all"), *testing_tools()),
        _suite("-k", _ONCE_PER_DRIVER, *_agents(*_OF_THE_SCHEMA, "tests/entries/test_conformance.py")),
        EXTRAS,
        lowest=True,
    ),
    **{extra: Environment((_project(extra), "pytest"), _checks(f"test_{extra}.py"), (extra,)) for extra in EXTRAS},
    "newest-slim": Environment(
        (_project("all"), *testing_tools(), "pydantic-ai-slim>=2"),
        _suite("-k", _NOT_OF_PROCESSES, *_agents()),
        EXTRAS,
    ),
    "newest-full": Environment(
        (_project("all"), *testing_tools(), "pydantic-ai>=2"),
        _suite("-k", _NOT_OF_PROCESSES, *_agents()),
        EXTRAS,
    ),
    **{
        f"python-{version}": Environment(
            (_project("all"), *testing_tools()),
            _suite("-k", _ONCE_PER_DRIVER, *_WIDELY),
            EXTRAS,
            python=version,
        )
        for version in ("3.12", "3.13", "3.14")
    },
    "third-party": Environment(
        (f"firefly-memory-blobs[test] @ {(ROOT / PACKAGE).as_uri()}", _project()),
        ("-q", f"{PACKAGE}/test_blob_store.py"),
    ),
    "package": Environment(("pytest", "twine"), ("-c", f"{CHECKS}/pytest.ini", "-q", f"{CHECKS}/test_package.py")),
    "demo": Environment(("pytest",), ("-c", f"{CHECKS}/pytest.ini", "-q", f"{CHECKS}/test_demo.py")),
    "tutorial": Environment(
        (_project("all"), "fastapi", "uvicorn", "pytest", "coverage", "mypy"),
        ("-c", f"{CHECKS}/pytest.ini", "-q", f"{CHECKS}/test_tutorial.py"),
        ("postgres",),
    ),
    "docs-snippets": Environment(
        (), ("-c", f"{CHECKS}/pytest.ini", "-p", "no:asyncio", "-q", f"{CHECKS}/test_snippets.py")
    ),
    "one-process": Environment((), _suite(processes="0")),
    "random-order": Environment((), _suite("--random-order", "--random-order-bucket=module", "--cov")),
}
