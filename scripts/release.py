"""What a release needs: python scripts/release.py check 0.1.0, python scripts/release.py notes 0.1.0

``check`` names everything that is missing for the release, and ends with 1 if something is. ``notes`` prints the part
of the changelog about the release. docs/releasing.md has the steps.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
HEADING = re.compile(r"\[(?P<version>Unreleased|\d+\.\d+\.\d+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?")


@dataclass(frozen=True)
class Release:
    version: str
    """``Unreleased``, or a number."""
    date: date | None
    changes: dict[str, str]
    """The text of each kind of change."""

    def notes(self) -> str:
        return "\n\n".join(f"### {kind}\n\n{text}" for kind, text in self.changes.items())


def releases(changelog: str) -> list[Release]:
    """The releases of a changelog, newest first. ``ValueError`` where it has not the form of Keep a Changelog."""
    found = []
    for part in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        match = HEADING.fullmatch(heading)
        if match is None:
            raise ValueError(f"'## {heading}' is neither '## [Unreleased]' nor '## [1.2.3] - 2026-01-31'")
        day = None if match["date"] is None else date.fromisoformat(match["date"])
        if (day is None) != (match["version"] == "Unreleased"):
            raise ValueError(f"'## {heading}': a release has a date, and what is unreleased has none")
        found.append(Release(match["version"], day, _changes(heading, text)))
    return found


def _changes(heading: str, text: str) -> dict[str, str]:
    changes: dict[str, str] = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        kind, _, lines = part.partition("\n")
        if kind not in KINDS:
            raise ValueError(f"'### {kind}' in '## {heading}' is none of {', '.join(KINDS)}")
        if kind in changes or not re.search(r"^- ", lines, re.MULTILINE):
            raise ValueError(f"'### {kind}' in '## {heading}' is there twice, or has no item")
        changes[kind] = lines.strip()
    return changes


def problems(version: str, pyproject: dict[str, Any], changelog: str) -> Iterator[str]:
    """What in the files is not ready for the release."""
    if pyproject["project"]["version"] != version:
        yield f'pyproject.toml has version = "{pyproject["project"]["version"]}"'
    if not pyproject["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]:
        yield "pyproject.toml has no address of the repository: the package has no URLs, and its README has no links"
    newest = [(release.version, bool(release.changes)) for release in releases(changelog)][:2]
    if newest != [("Unreleased", False), (version, True)]:
        yield f"docs/changelog.md does not begin with an empty '## [Unreleased]' and then '## [{version}] - DATE'"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def check(version: str) -> int:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = list(problems(version, pyproject, (ROOT / "docs" / "changelog.md").read_text()))
    if _git("status", "--porcelain"):
        found.append("the checkout has changes that are not committed")
    if _git("tag", "--list", f"v{version}"):
        found.append(f"the tag v{version} exists already")
    for problem in found:
        print(f"Not ready: {problem}", file=sys.stderr)
    return 1 if found else 0


def notes(version: str) -> int:
    (release,) = (each for each in releases((ROOT / "docs" / "changelog.md").read_text()) if each.version == version)
    print(release.notes())
    return 0


if __name__ == "__main__":
    command, number = sys.argv[1:]
    sys.exit({"check": check, "notes": notes}[command](number))
