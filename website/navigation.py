"""The navigation of ``mkdocs.yml``, in which a folder stands for its pages."""

from __future__ import annotations

import re
from typing import Any

from website.paths import DOCS

_LINK = re.compile(r"\]\(([\w.-]+\.md)\)")


def with_folders(nav: Any) -> Any:
    """``nav``, with the pages of a folder in place of its path: ``Decisions: decisions/``."""
    if isinstance(nav, dict):
        return {title: with_folders(inside) for title, inside in nav.items()}
    if isinstance(nav, list):
        return [with_folders(each) for each in nav]
    return _pages_of(nav) if str(nav).endswith("/") else nav


def _pages_of(folder: str) -> list[str]:
    """README.md of the folder, and the pages of the folder to which it links, in this order."""
    listed = _LINK.findall((DOCS / folder / "README.md").read_text())
    return [f"{folder}README.md", *(f"{folder}{page}" for page in listed)]


def pages_in(nav: Any) -> list[str]:
    """The paths of the pages in a navigation, in its order."""
    if isinstance(nav, dict):
        return [page for inside in nav.values() for page in pages_in(inside)]
    if isinstance(nav, list):
        return [page for each in nav for page in pages_in(each)]
    return [nav]
