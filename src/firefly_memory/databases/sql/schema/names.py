"""Names of the schema and where its revisions are, for those who need no table: SQLAlchemy is slow to load."""

from pathlib import Path

PACKAGE = Path(__file__).parents[3]
"""Where this package is installed, or where a checkout has it."""

_PACKAGED = PACKAGE / "migrations"

MIGRATIONS = _PACKAGED if _PACKAGED.is_dir() else PACKAGE.parents[1] / "migrations"
"""Alembic's environment with the revisions: inside the installed package, or at the top of a checkout."""

REVISIONS_OF_THE_LIBRARY = MIGRATIONS / "versions"

POSTGRESQL_SCHEMA = "firefly_memory"
"""The PostgreSQL schema everything lives in unless ``schema_name`` says otherwise. SQLite has none."""

WORDS_OF_POSTGRESQL = frozenset({"collation", "concurrently", "lateral", "system_user", "tablesample"})
"""Reserved words that SQLAlchemy does not know: it puts no quotes around them."""
