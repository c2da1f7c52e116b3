"""What a toy registers, and the revision that makes its tables."""

from __future__ import annotations

from pathlib import Path

from firefly_memory import schema
from firefly_memory.facets import Facet, LogOf, Looking, Moving, Operations, Packaging, People, Storage, absent
from tests.toy_facet.log import ToyLog

_REVISION = '''"""Notes of toy {number}."""

from alembic import op
import sqlalchemy as sa
from firefly_memory.databases.sql.schema.alembic_env import target_schema
from tests.toy_facet.tables import objects

revision = "toy_{number}"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade():
    schema = target_schema()
    on_sqlite = schema is None
    name, instant = "toy_{number}_notes", sa.Text() if on_sqlite else sa.DateTime(timezone=True)
    by_id = dict(id='COLLATE "C"')
    op.create_table(
        name,
        sa.Column("number", *([sa.Integer()] if on_sqlite else [sa.BigInteger(), sa.Identity()]), primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("expires_at", instant),
        sa.Column("owner", sa.Text()),
        # What search needs.
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("who", sa.Text()),
        sa.Column("group_id", sa.Text()),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("searchable", sa.Text(), nullable=False),
        sa.Column("words", sa.Text() if on_sqlite else sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("newest", instant, nullable=False),
        schema=schema,
    )
    op.create_index("idx_toy_{number}_note", name, ["id"], unique=True, schema=schema, postgresql_ops=by_id)
    op.create_index("idx_toy_{number}_owner", name, ["owner", "id"], schema=schema, postgresql_ops=by_id)
    op.create_index("idx_toy_{number}_notes_scope", name, ["scope", "group_id", "position"], schema=schema)
    if not on_sqlite:
        gin = dict(postgresql_using="gin", postgresql_with=dict(fastupdate="off"))
        op.create_index("idx_toy_{number}_notes_words", name, ["words"], schema=schema, **gin)
    op.create_table(
        "toy_{number}_notes_vectors",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        schema=schema,
    )
    op.create_table(
        "toy_{number}_notes_signatures",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        schema=schema,
    )
    for each in objects({number}, schema):
        op.execute(each.create)


def downgrade():
    schema = target_schema()
    for each in reversed(objects({number}, schema)):
        op.execute(each.drop)
    for name in ("signatures", "vectors"):
        op.drop_table("toy_{number}_notes_" + name, schema=schema)
    op.drop_table("toy_{number}_notes", schema=schema)
'''


def key(number: int = 1) -> LogOf[ToyLog]:
    """Asks a store for the notes: ``view.log(key())``."""
    return LogOf(f"toy_{number}")


def toys(folder: Path, count: int = 1) -> list[Facet]:
    """Toys whose revisions, written to ``folder``, come after those of the library."""
    folder.mkdir(exist_ok=True)
    before = schema.HEAD
    for number in range(1, count + 1):
        (folder / f"toy_{number}.py").write_text(_REVISION.format(number=number, before=before))
        before = f"toy_{number}"
    return [_toy(number, folder) for number in range(1, count + 1)]


def _toy(number: int, folder: Path) -> Facet:
    return Facet(
        name=f"toy_{number}",
        title=f"notes of toy {number}",
        storage=Storage(
            tables=f"tests.toy_facet.tables:define_{number}",
            revisions=folder,
            sqlite_functions=absent("its revision calls none"),
            objects=f"tests.toy_facet.tables:objects_{number}",
            accelerators=absent("no query needs an extension"),
            collections=f"tests.toy_facet.mongodb:collections_{number}",
            document_upgrades=absent("no document has changed since"),
            distribution_key=absent("its rows have numbers of their own, and are purged by their addresses"),
            shard_key=absent("notes are found by their own id and by their scope"),
        ),
        operations=Operations(
            sql=f"tests.toy_facet.sql:log_{number}",
            mongodb=f"tests.toy_facet.mongodb:log_{number}",
            in_memory=f"tests.toy_facet.in_memory:log_{number}",
            in_files=absent("its search needs a database"),
            over_entries=absent("its search needs a database"),
            expiry="tests.toy_facet.log:purge",
        ),
        moving=Moving(
            kinds=f"tests.toy_facet.moving:kinds_{number}",
            writer=f"tests.toy_facet.moving:writer_{number}",
            if_missing=f"the target cannot keep notes of toy {number}",
            without=f"leave out the notes of toy {number}",
            nothing_but_messages=False,
        ),
        people=People(
            owner="owner",
            aliases=absent("the owner has one id, which the application gives"),
            erase=f"tests.toy_facet.people:eraser_{number}",
            find_text=absent("its tables and collections are searched with all others"),
            retention=f"tests.toy_facet.retention:pruner_{number}",
        ),
        looking=Looking(
            diagnosis=absent("nothing to examine"),
            sizes=absent("its notes are counted"),
            resources=f"tests.toy_facet.looking:resources_{number}",
            wakeups=absent("nobody waits for a note"),
            index=absent("a note that is put again gets new words"),
        ),
        packaging=Packaging(
            settings=absent("nothing to configure"),
            extra=absent("part of the core"),
            rules="tests.toy_facet.rules:RULES",
        ),
    )
