"""What the facet of agent history, pydantic-ai's conversations, registers."""

from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.facets import Facet, Looking, Moving, Operations, Packaging, People, Storage, absent

FACET = Facet(
    name="agent_history",
    title="agent history",
    storage=Storage(
        tables="firefly_memory.agent_history.sql.tables:define",
        revisions=REVISIONS_OF_THE_LIBRARY,
        sqlite_functions=absent("its revisions call none"),
        objects=absent("Alembic sees all of it"),
        accelerators=absent("no query needs an extension"),
        collections="firefly_memory.agent_history.mongodb.documents:COLLECTIONS",
        document_upgrades=absent("no document has changed since"),
        distribution_key=absent("entries are shared by conversations, and found by their own id"),
        shard_key=absent("entries are shared by conversations, and found by their own id"),
    ),
    operations=Operations(
        sql="firefly_memory.agent_history.sql.log:SQLHistoryLog",
        mongodb="firefly_memory.agent_history.mongodb.log:history_log",
        in_memory=absent("pydantic-ai has an in-memory store of its own"),
        in_files=absent("its rows refer to each other, which takes transactions"),
        over_entries=absent("its rows refer to each other, which takes transactions"),
        expiry="firefly_memory.agent_history.log:finish_deletions",
    ),
    moving=Moving(
        kinds="firefly_memory.agent_history.moving:KINDS",
        writer="firefly_memory.agent_history.moving:AgentHistoryWriter",
        if_missing=(
            "the target cannot keep conversations of pydantic-ai; SQLiteStore, PostgreSQLStore and MongoDBStore can"
        ),
        without="leave out the conversations of pydantic-ai's ConversationStore",
        nothing_but_messages=True,
    ),
    people=People(
        owner="scope",
        aliases=absent("the scope has one id, which the application gives"),
        erase="firefly_memory.agent_history.people:HistoryEraser",
        find_text=absent("its tables and collections are searched with all others"),
        retention="firefly_memory.agent_history.retention:HistoryPruner",
    ),
    looking=Looking(
        diagnosis=absent("the doctor looks at databases, not at facets"),
        sizes=absent("its resources are counted"),
        resources="firefly_memory.agent_history.looking:RESOURCES",
        wakeups=absent("nobody waits for it"),
        index=absent("it is not searched by an index of words"),
    ),
    packaging=Packaging(
        settings=absent("stores of agent history are made from stores"),
        extra="agents",
        rules=absent("pydantic-ai's own store is what its stores are compared with"),
    ),
)
