"""Whether a role that may not create tables can use what another role has set up in PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg

from benchmarks.comparison.contender import Contender, Place
from benchmarks.comparison.contenders import CONTENDERS
from benchmarks.comparison.places import Places

_ROLE = "comparison_app"
_PURPOSE = "rights"


async def rights(places: Places) -> list[dict[str, Any]]:
    with psycopg.connect(places.postgresql_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {_ROLE} LOGIN")
    rows = []
    for name, make in CONTENDERS.items():
        if make.backend != "postgresql":
            continue
        place = places.new(make, _PURPOSE)
        owner = make(place)
        await owner.open()
        await owner.turn("one")
        await owner.close()
        _grant(place)
        restricted = Place(place.path, places.url(database=place.postgresql_url.rsplit("/", 1)[1], user=_ROLE))
        rows.append(
            {"contender": name, "without_setup": await _tried(make(restricted), create=False)}
            | {"with_setup": await _tried(make(restricted), create=True)}
        )
    return rows


def _grant(place: Place) -> None:
    with psycopg.connect(place.postgresql_url, autocommit=True) as connection:
        query = "SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        for (schema,) in connection.execute(query).fetchall():
            connection.execute(f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC")
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {_ROLE}")
            connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {_ROLE}")
            connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {_ROLE}")


async def _tried(contender: Contender, *, create: bool) -> str:
    """``works``, or the error."""
    try:
        await contender.open(create=create)
        await contender.turn("one")
    except Exception as error:  # noqa: BLE001
        return str(error).partition(" at character")[0].partition("\n")[0]
    finally:
        await contender.close()
    return "works"
