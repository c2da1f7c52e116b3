"""No application's revision is written into this package: Alembic puts one beside the revision that it follows."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

from alembic.script import ScriptDirectory
from alembic.util import CommandError

from firefly_memory.databases.sql.schema.names import PACKAGE

_PACKAGE = PACKAGE.resolve()

_BRANCH = _PACKAGE / "alembic_branch"

_INTO_THE_BRANCH = (
    "this revision would follow firefly-memory's own, and be written into the installed package. Begin a branch of "
    "your application: alembic revision -m … --head base --branch-label app --version-path DIRECTORY, where DIRECTORY "
    "is yours of version_locations; later revisions take --head app@head"
)

_INTO_THE_PACKAGE = (
    "this revision would be written into the installed package, and no store would start any more: script_location is "
    "firefly-memory's own. Make an environment for the revisions of your application: alembic init DIRECTORY"
)
"""A checkout has its revisions outside of the package, and may get new ones."""


def keep_others_out() -> None:
    """From now on Alembic refuses to write such a revision.

    It has no hook for that, so this wraps what writes the file: nothing before it is sure to come after our revisions
    are loaded.
    """
    scripts: Any = ScriptDirectory
    write = getattr(scripts, "_generate_template", None)
    if write is None or hasattr(write, "__wrapped__"):
        return

    @wraps(write)
    def generate_template(self: ScriptDirectory, source: Any, file: Any, **values: Any) -> None:
        path = Path(file).resolve()
        if path.is_relative_to(_BRANCH):
            raise CommandError(_INTO_THE_BRANCH)
        if path.is_relative_to(_PACKAGE):
            raise CommandError(_INTO_THE_PACKAGE)
        write(self, source, file, **values)

    scripts._generate_template = generate_template  # noqa: SLF001
