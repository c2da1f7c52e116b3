"""Entries: the unit of storage, and its implementations side by side."""
