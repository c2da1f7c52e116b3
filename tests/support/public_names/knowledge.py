"""The public names of knowledge."""

NAMES = {
    "firefly_memory.knowledge": "Chunk ChunkHit ChunkPage Explanation Hit KnowledgeStore StoredChunk",
}

REVISIONS = ["0008_0005"]
