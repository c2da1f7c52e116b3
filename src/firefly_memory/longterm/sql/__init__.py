"""Long-term memory in SQLite and PostgreSQL."""
