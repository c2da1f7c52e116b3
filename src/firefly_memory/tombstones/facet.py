"""What the facet of tombstones registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Operations, Packaging, Storage, absent

FACET = Facet(
    name="tombstones",
    title="tombstones",
    storage=Storage(
        tables="firefly_memory.tombstones.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions=absent("its revision calls none"),
        objects=absent("Alembic sees all of it"),
        accelerators=absent("no query needs an extension"),
        collections=absent("each collection has the tombstones of its own documents"),
        document_upgrades="firefly_memory.tombstones.mongodb.gates:make_key",
        distribution_key=absent("every node needs all of them: a reference table"),
        shard_key=absent("they are in the collections of other facets"),
    ),
    operations=Operations(
        sql="firefly_memory.tombstones.sql.log:SQLTombstoneLog",
        mongodb="firefly_memory.tombstones.mongodb.log:MongoTombstoneLog",
        in_memory="firefly_memory.tombstones.in_memory:MemoryTombstoneLog",
        in_files="firefly_memory.tombstones.in_files:FileTombstoneLog",
        over_entries="firefly_memory.tombstones.over_entries:EntryTombstoneLog",
        expiry=absent("a person stays erased"),
    ),
    moving=absent("a tombstone says nothing in another database: it is made with the key of its own"),
    people=absent("a tombstone tells no name"),
    looking=absent("there is nothing to see in a hash"),
    packaging=Packaging(
        settings=absent("nothing to configure"),
        extra=absent("part of the core"),
        rules=absent("the rules of what can be erased test them"),
    ),
)
