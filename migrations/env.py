"""Alembic's entry point. The work is done by the library, so that `alembic`, `initialize()` and others stay in step."""

from __future__ import annotations

from logging.config import fileConfig

from alembic import context

from firefly_memory.alembic_target import run_in_alembic

# An ini of the user's own may say nothing about logging.
if context.config.config_file_name is not None and context.config.file_config.has_section("loggers"):
    fileConfig(context.config.config_file_name, disable_existing_loggers=False)

run_in_alembic(context)
