"""How a database is reached, migrated and diagnosed. Nothing here knows a facet."""
