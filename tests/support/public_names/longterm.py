"""The public names of long-term memory."""

NAMES = {
    "firefly_memory.longterm": """
        FACT_TYPES FactHit FactVersion MemoryFact MemoryPage MemoryService MemoryUser SCOPES Scope async_identify_user
        async_memory_read async_memory_write identify_user memory_read memory_write
    """,
}

REVISIONS = ["0011_0005"]
