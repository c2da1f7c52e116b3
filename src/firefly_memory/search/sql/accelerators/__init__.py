"""What extensions of SQLite and PostgreSQL do for the search: each is switched on in the database, and never needed."""
