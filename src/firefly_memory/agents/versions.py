"""Which version of pydantic-ai is installed, for those who need another one."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from firefly_memory.errors import MissingDependencyError

_PACKAGE = "pydantic-ai-slim"

NEEDED = f"{_PACKAGE}>=2.60,<3"
NEEDED_FOR_CONVERSATION_STORES = f"{_PACKAGE}>=2.66,<3"


def wrong_version(purpose: str, needed: str) -> MissingDependencyError:
    """The error that says which version is installed, and which one ``purpose`` needs."""
    try:
        found = version(_PACKAGE)
    except PackageNotFoundError:  # a copy without metadata
        found = "another version"
    return MissingDependencyError(purpose, needed, "agents", found)
