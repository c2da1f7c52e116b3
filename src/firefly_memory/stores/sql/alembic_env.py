"""The import path of what ``migrations/env.py`` ran before: a project may have a copy of that file."""

from __future__ import annotations

from firefly_memory.facets import load_name

run_in_alembic = load_name("firefly_memory.alembic_target:run_in_alembic")
