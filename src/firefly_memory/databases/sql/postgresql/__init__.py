"""PostgreSQL: asyncpg for event loops, psycopg for blocking calls."""
