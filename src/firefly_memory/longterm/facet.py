"""What the facet of long-term memory registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Looking, Moving, Operations, Packaging, People, Storage, absent

FACET = Facet(
    name="longterm",
    title="long-term memory",
    storage=Storage(
        tables="firefly_memory.longterm.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions=absent("its revisions call none"),
        objects="firefly_memory.longterm.sql.objects:OBJECTS",
        accelerators="firefly_memory.longterm.sql.objects:ACCELERATORS",
        collections="firefly_memory.longterm.mongodb.documents:COLLECTIONS",
        document_upgrades=absent("no document has changed since"),
        distribution_key=absent("its rows have numbers that the database gives, as full-text tables need them"),
        shard_key=absent("a key is looked up in several places at once"),
    ),
    operations=Operations(
        sql="firefly_memory.longterm.sql.log:SQLLongTermLog",
        mongodb="firefly_memory.longterm.mongodb.log:MongoLongTermLog",
        in_memory="firefly_memory.longterm.in_memory.log:MemoryLongTermLog",
        in_files=absent("its search needs an index"),
        over_entries=absent("its search needs an index"),
        expiry=absent("facts do not expire"),
    ),
    moving=Moving(
        kinds="firefly_memory.longterm.moving:KINDS",
        writer="firefly_memory.longterm.moving:LongTermWriter",
        if_missing=(
            "the target cannot keep long-term memory; InMemoryStore, SQLiteStore, PostgreSQLStore and MongoDBStore can"
        ),
        without="leave out the facts and the people of long-term memory",
        nothing_but_messages=False,
    ),
    people=People(
        owner="owner",
        aliases="firefly_memory.longterm.people:MergedPeople",
        erase="firefly_memory.longterm.people:LongTermEraser",
        find_text=absent("its tables and collections are searched with all others"),
        retention="firefly_memory.longterm.retention:LongTermPruner",
    ),
    looking=Looking(
        diagnosis=absent("the doctor looks at databases, not at facets"),
        sizes=absent("its resources are counted"),
        resources="firefly_memory.longterm.looking:RESOURCES",
        wakeups=absent("nobody waits for a fact"),
        index="firefly_memory.longterm.keeping:fact_index_keeper",
    ),
    packaging=Packaging(
        settings=absent("a MemoryService is made from a store"),
        extra=absent("part of the core; an embedder has an extra of its own"),
        rules=(
            "firefly_memory.testing.rules.long_term",
            "firefly_memory.testing.rules.long_term_erasure",
            "firefly_memory.testing.rules.long_term_facts",
            "firefly_memory.testing.rules.long_term_histories",
            "firefly_memory.testing.rules.long_term_isolation",
            "firefly_memory.testing.rules.long_term_merging",
            "firefly_memory.testing.rules.long_term_people",
        ),
    ),
)
