"""What the facet of feeds registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Looking, Moving, Operations, Packaging, People, Storage, absent

FACET = Facet(
    name="feeds",
    title="messages of agents",
    storage=Storage(
        tables="firefly_memory.feeds.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions=absent("its revisions call none"),
        objects=absent("Alembic sees all of it"),
        accelerators=absent("no query needs an extension"),
        collections="firefly_memory.feeds.mongodb.documents:COLLECTIONS",
        document_upgrades=absent("no document has changed since"),
        distribution_key="location",
        shard_key="location",
    ),
    operations=Operations(
        sql="firefly_memory.feeds.sql.log:SQLFeedLog",
        mongodb="firefly_memory.feeds.mongodb.log:MongoFeedLog",
        in_memory="firefly_memory.feeds.in_memory:MemoryFeedLog",
        in_files=absent("its order needs a database"),
        over_entries=absent("its order needs a database"),
        expiry=absent("messages do not expire"),
    ),
    moving=Moving(
        kinds="firefly_memory.feeds.moving:KINDS",
        writer="firefly_memory.feeds.moving:FeedWriter",
        if_missing=(
            "the target cannot keep messages of agents; InMemoryStore, SQLiteStore, PostgreSQLStore and MongoDBStore "
            "can"
        ),
        without="leave out the messages of agents",
        nothing_but_messages=True,
    ),
    people=People(
        owner="owner",
        aliases=absent("the owner has one id, which the application gives"),
        erase="firefly_memory.feeds.people:FeedEraser",
        find_text=absent("its tables and collections are searched with all others"),
        retention="firefly_memory.feeds.retention:FeedPruner",
    ),
    looking=Looking(
        diagnosis=absent("the doctor looks at databases, not at facets"),
        sizes=absent("its resources are counted"),
        resources="firefly_memory.feeds.looking:RESOURCES",
        wakeups="firefly_memory.feeds.wakeups:wake",
        index=absent("it is not searched by an index of words"),
    ),
    packaging=Packaging(
        settings=absent("a message store is made from a store"),
        extra=absent("part of the core; YAML has an extra of its own"),
        rules=(
            "firefly_memory.testing.rules.feeds",
            "firefly_memory.testing.rules.feeds_changes",
            "firefly_memory.testing.rules.feeds_subscriptions",
        ),
    ),
)
