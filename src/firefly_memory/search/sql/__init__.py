"""The search over rows in SQLite and PostgreSQL."""
