"""What the facet of knowledge registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Looking, Moving, Operations, Packaging, People, Storage, absent

FACET = Facet(
    name="knowledge",
    title="knowledge",
    storage=Storage(
        tables="firefly_memory.knowledge.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions=absent("its revisions call none"),
        objects="firefly_memory.knowledge.sql.objects:OBJECTS",
        accelerators="firefly_memory.knowledge.sql.objects:ACCELERATORS",
        collections="firefly_memory.knowledge.mongodb.documents:COLLECTIONS",
        document_upgrades=absent("no document has changed since"),
        distribution_key=absent("its rows have numbers that the database gives, as full-text tables need them"),
        shard_key=absent("chunks are found by their own id and by their scope"),
    ),
    operations=Operations(
        sql="firefly_memory.knowledge.sql.log:SQLKnowledgeLog",
        mongodb="firefly_memory.knowledge.mongodb.log:MongoKnowledgeLog",
        in_memory="firefly_memory.knowledge.in_memory:MemoryKnowledgeLog",
        in_files=absent("its search needs an index"),
        over_entries=absent("its search needs an index"),
        expiry=absent("chunks do not expire"),
    ),
    moving=Moving(
        kinds="firefly_memory.knowledge.moving:KINDS",
        writer="firefly_memory.knowledge.moving:KnowledgeWriter",
        if_missing=(
            "the target cannot keep knowledge; InMemoryStore, SQLiteStore, PostgreSQLStore and MongoDBStore can"
        ),
        without="leave out the chunks of KnowledgeStore",
        nothing_but_messages=False,
    ),
    people=People(
        owner="owner",
        aliases=absent("the owner has one id, which the application gives"),
        erase="firefly_memory.knowledge.people:KnowledgeEraser",
        find_text=absent("its tables and collections are searched with all others"),
        retention="firefly_memory.knowledge.retention:KnowledgePruner",
    ),
    looking=Looking(
        diagnosis=absent("the doctor looks at databases, not at facets"),
        sizes=absent("its resources are counted"),
        resources="firefly_memory.knowledge.looking:RESOURCES",
        wakeups=absent("nobody waits for a chunk"),
        index="firefly_memory.knowledge.keeping:chunk_index_keeper",
    ),
    packaging=Packaging(
        settings=absent("a KnowledgeStore is made from a store"),
        extra=absent("part of the core; an embedder has an extra of its own"),
        rules=(
            "firefly_memory.testing.rules.knowledge",
            "firefly_memory.testing.rules.knowledge_erasure",
            "firefly_memory.testing.rules.knowledge_isolation",
            "firefly_memory.testing.rules.knowledge_search",
        ),
    ),
)
