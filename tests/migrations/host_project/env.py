"""The application's own environment: the one line for firefly-memory is ``include_name``."""

from __future__ import annotations

import os
from typing import Any

from alembic import context
from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine

from firefly_memory.alembic import include_name

metadata = MetaData()
Table("orders", metadata, Column("id", Integer, primary_key=True), Column("item", Text, nullable=False))

url = os.environ["APPLICATION_URL"]
options: dict[str, Any] = {
    "target_metadata": metadata,
    "include_schemas": not url.startswith("sqlite"),
    "include_name": include_name,
}

if context.is_offline_mode():
    context.configure(url=url, literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    engine = create_engine(url)
    with engine.connect() as connection:
        context.configure(connection=connection, **options)
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()
