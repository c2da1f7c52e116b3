"""The library in environments of its own, as people install it. Run with ``make environments``."""
