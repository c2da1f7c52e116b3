"""The changelog has a form that a release tool reads, and ``scripts/release.py`` names what a release lacks."""

from __future__ import annotations

import copy
import tomllib
from typing import Any

import pytest

from scripts.release import problems, releases
from tests.support.documentation import ROOT

CHANGELOG = (ROOT / "docs" / "changelog.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
READY = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-01-31\n\n### Fixed\n\n- A fault.\n"


def pyproject(version: str, repository: str) -> dict[str, Any]:
    changed = copy.deepcopy(PYPROJECT)
    changed["project"]["version"] = version
    changed["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"] = repository
    return changed


def test_the_changelog_has_its_releases_newest_first() -> None:
    unreleased, *released = releases(CHANGELOG)
    assert (unreleased.version, unreleased.date) == ("Unreleased", None)
    numbers = [tuple(map(int, release.version.split("."))) for release in released]
    assert numbers == sorted(set(numbers), reverse=True)
    days = [release.date for release in released if release.date is not None]
    assert days == sorted(days, reverse=True)
    assert all(release.changes for release in released)


def test_every_change_is_of_a_kind() -> None:
    items = [line for line in CHANGELOG.splitlines() if line.startswith("- ")]
    parsed = [line for release in releases(CHANGELOG) for line in release.notes().splitlines() if line.startswith("- ")]
    assert parsed == items


@pytest.mark.parametrize(
    ("changelog", "words"),
    [
        ("## Unreleased: 0.1.0\n", "neither"),
        ("## [0.1.0]\n", "has a date"),
        ("## [Unreleased] - 2026-01-31\n", "has none"),
        ("## [Unreleased]\n\n### Mended\n\n- A fault.\n", "none of Added"),
        ("## [Unreleased]\n\n### Fixed\n\n", "no item"),
        ("## [Unreleased]\n\n### Fixed\n\n- A.\n\n### Fixed\n\n- B.\n", "twice"),
    ],
)
def test_another_form_is_refused(changelog: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        releases(changelog)


def test_a_release_that_is_ready_has_no_problems() -> None:
    assert list(problems("0.2.0", pyproject("0.2.0", "https://code.invalid/x"), READY)) == []
    assert releases(READY)[1].notes() == "### Fixed\n\n- A fault."


@pytest.mark.parametrize(
    ("version", "repository", "changelog", "words"),
    [
        ("0.1.0", "https://code.invalid/x", READY, 'version = "0.1.0"'),
        ("0.2.0", "", READY, "no address"),
        ("0.2.0", "https://code.invalid/x", READY.replace("0.2.0", "0.1.0"), "does not begin"),
        ("0.2.0", "https://code.invalid/x", READY.replace("d]\n", "d]\n\n### Added\n\n- More.\n"), "does not begin"),
    ],
)
def test_what_a_release_lacks_is_named(version: str, repository: str, changelog: str, words: str) -> None:
    (problem,) = problems("0.2.0", pyproject(version, repository), changelog)
    assert words in problem
