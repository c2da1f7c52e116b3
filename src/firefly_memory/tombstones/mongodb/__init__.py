"""Tombstones in MongoDB."""
