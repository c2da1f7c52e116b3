"""The schema: its tables, its migrations, and how a database differs from it."""
