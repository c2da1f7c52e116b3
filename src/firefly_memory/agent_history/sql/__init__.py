"""pydantic-ai's conversations in SQLite and PostgreSQL."""
