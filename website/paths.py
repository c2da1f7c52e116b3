"""Where the pages of the site come from, and where files outside of the site are."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

ROOT_PAGES = {"README.md": "index.md", "SECURITY.md": "reporting.md"}
"""The pages at the root of the repository that the site has, and their names there."""


def file_address() -> str | None:
    """The address of a file in the repository, with ``{path}`` in it; ``None`` if pyproject.toml has no repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    metadata = project["tool"]["hatch"].get("metadata", {}).get("hooks", {}).get("custom", {})
    if not metadata.get("repository"):
        return None
    values = {"repository": metadata["repository"].rstrip("/"), "version": project["project"]["version"]}
    return str(metadata["file"]).format(path="{path}", **values)
