"""Entries in SQLite and PostgreSQL."""
