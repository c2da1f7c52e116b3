"""The import path of what ``migrations/env.py`` ran before: a project may have a copy of that file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firefly_memory.facets import load_name

run_in_alembic: Callable[[Any], None] = load_name("firefly_memory.alembic_target:run_in_alembic")
"""Run the revisions that Alembic asks for, or only write them down. The argument is ``alembic.context``."""
