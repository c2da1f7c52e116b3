"""Tombstones in SQL."""
