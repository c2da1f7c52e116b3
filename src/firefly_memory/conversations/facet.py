"""What the facet of conversations registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Looking, Moving, Operations, Packaging, People, Storage, absent

FACET = Facet(
    name="conversations",
    title="conversations",
    storage=Storage(
        tables="firefly_memory.conversations.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions=absent("its revisions call none"),
        objects=absent("Alembic sees all of it"),
        accelerators=absent("no query needs an extension"),
        collections="firefly_memory.conversations.mongodb.documents:COLLECTIONS",
        document_upgrades="firefly_memory.conversations.mongodb.upgrade:bring_to_today",
        distribution_key="conversation_id",
        shard_key="conversation_id",
    ),
    operations=Operations(
        sql="firefly_memory.conversations.sql.log:SQLConversationLog",
        mongodb="firefly_memory.conversations.mongodb.log:MongoConversationLog",
        in_memory="firefly_memory.conversations.in_memory:MemoryConversationLog",
        in_files="firefly_memory.conversations.over_entries:conversations_in_files",
        over_entries="firefly_memory.conversations.over_entries:EntryConversationLog",
        expiry=absent("conversations stay until they are deleted"),
    ),
    moving=Moving(
        kinds="firefly_memory.conversations.moving:KINDS",
        writer="firefly_memory.conversations.moving:ConversationWriter",
        if_missing=absent("every store keeps conversations"),
        without=absent("what archives and copies are made for"),
        nothing_but_messages=False,
    ),
    people=People(
        owner="owner",
        aliases=absent("the owner has one id, which the application gives"),
        erase="firefly_memory.conversations.people:ConversationEraser",
        find_text=absent("its tables and collections are searched with all others"),
        retention="firefly_memory.conversations.retention:ConversationPruner",
    ),
    looking=Looking(
        diagnosis=absent("the doctor looks at databases, not at facets"),
        sizes=absent("its resources are counted"),
        resources="firefly_memory.conversations.looking:RESOURCES",
        wakeups=absent("nobody waits for it"),
        index=absent("it is not searched by an index of words"),
    ),
    packaging=Packaging(
        settings="firefly_memory.settings:MemorySettings",
        extra=absent("part of the core"),
        rules=(
            "firefly_memory.testing.rules.conversation_forks",
            "firefly_memory.testing.rules.conversations",
            "firefly_memory.testing.rules.dropped_turns",
            "firefly_memory.testing.rules.erasure",
            "firefly_memory.testing.rules.exports",
            "firefly_memory.testing.rules.flushes",
            "firefly_memory.testing.rules.owners",
            "firefly_memory.testing.rules.windows",
            "firefly_memory.testing.rules.working",
        ),
    ),
)
