"""The facet of long-term memory. Its rules are in ``firefly_memory.testing.rules``."""
