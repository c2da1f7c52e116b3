# migrations/env.py
"""Runs the migrations of the application and those of firefly-memory."""

import os

from alembic import context
from sqlalchemy import create_engine

from firefly_memory.alembic import include_name

from models import metadata

engine = create_engine(os.environ["DATABASE_URL"])
with engine.connect() as connection:
    context.configure(connection, target_metadata=metadata, include_name=include_name)
    with context.begin_transaction():
        context.run_migrations()
