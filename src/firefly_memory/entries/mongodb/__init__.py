"""Entries in MongoDB."""
