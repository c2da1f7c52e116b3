"""Conversations in SQLite and PostgreSQL."""
