"""What the facet of entries registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Looking, Moving, Packaging, Storage, absent

FACET = Facet(
    name="entries",
    title="entries",
    storage=Storage(
        tables="firefly_memory.entries.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions="firefly_memory.entries.sql.sqlite_functions:add_functions",
        objects=absent("Alembic sees all of it"),
        accelerators=absent("no query needs an extension"),
        collections="firefly_memory.entries.mongodb.documents:COLLECTIONS",
        document_upgrades="firefly_memory.entries.mongodb.fact_ids:bring_to_today",
        distribution_key="entry_id",
        shard_key="entry_id",
    ),
    operations=absent("every store has them in its own methods"),
    moving=Moving(
        kinds="firefly_memory.entries.moving:KINDS",
        writer="firefly_memory.entries.moving:EntryWriter",
        if_missing=absent("every store keeps entries"),
        without=absent("what archives and copies are made for"),
        nothing_but_messages=False,
    ),
    people=absent("entries have no owner: an erasure deletes the namespaces that are named"),
    looking=Looking(
        diagnosis=absent("the doctor looks at databases, not at facets"),
        sizes=absent("its resources are counted"),
        resources="firefly_memory.entries.looking:RESOURCES",
        wakeups=absent("nobody waits for it"),
        index=absent("it is not searched by an index of words"),
    ),
    packaging=Packaging(
        settings=absent("what configures a store configures entries"),
        extra=absent("part of the core"),
        rules=(
            "firefly_memory.testing.rules.atomicity",
            "firefly_memory.testing.rules.bounds",
            "firefly_memory.testing.rules.concurrency",
            "firefly_memory.testing.rules.expiry",
            "firefly_memory.testing.rules.isolation",
            "firefly_memory.testing.rules.order",
            "firefly_memory.testing.rules.refusals",
            "firefly_memory.testing.rules.reserved",
            "firefly_memory.testing.rules.upsert",
            "firefly_memory.testing.rules.values",
        ),
    ),
)
