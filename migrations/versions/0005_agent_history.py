"""Agent history: the tables of pydantic-ai's conversations get the name that the library uses for them.

``memory_dialogues`` becomes ``memory_agent_history``, and ``memory_dialogue_entries`` becomes
``memory_agent_history_entries``; their indexes are named after them. No row is changed. PostgreSQL renames tables,
primary keys and indexes, and keeps all grants. SQLite cannot rename an index: its three indexes are built again.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TABLES = [("memory_dialogues", "memory_agent_history"), ("memory_dialogue_entries", "memory_agent_history_entries")]

_INDEXES = [
    ("idx_dialogues_order", "idx_agent_history_order"),
    ("idx_dialogues_scope_order", "idx_agent_history_scope_order"),
    ("idx_dialogue_entries_released", "idx_agent_history_entries_released"),
]


def upgrade() -> None:
    _rename(_TABLES, _INDEXES)


def downgrade() -> None:
    _rename([(new, old) for old, new in _TABLES], [(new, old) for old, new in _INDEXES])


def _rename(tables: list[tuple[str, str]], indexes: list[tuple[str, str]]) -> None:
    if op.get_context().dialect.name == "sqlite":
        _rename_on_sqlite(tables, indexes)
        return
    schema = target_schema()
    for before, after in tables:
        op.rename_table(before, after, schema=schema)
        op.execute(f'ALTER INDEX "{schema}".{before}_pkey RENAME TO {after}_pkey')  # renames the constraint too
    for before, after in indexes:
        op.execute(f'ALTER INDEX "{schema}".{before} RENAME TO {after}')


def _rename_on_sqlite(tables: list[tuple[str, str]], indexes: list[tuple[str, str]]) -> None:
    for before, _ in indexes:
        op.drop_index(before)
    for before, after in tables:
        op.rename_table(before, after)
    records, entries = (after for _, after in tables)
    order, scope_order, released = (after for _, after in indexes)
    op.create_index(order, records, ["updated_at"])
    op.create_index(scope_order, records, ["scope", "updated_at"])
    op.create_index(released, entries, ["entry_id"], sqlite_where=sa.text("holders = 0"))
