"""Knowledge in SQLite and PostgreSQL."""
