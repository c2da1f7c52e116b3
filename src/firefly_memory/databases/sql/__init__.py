"""SQLite and PostgreSQL: one schema, one set of statements and operations, two ways to connect."""
