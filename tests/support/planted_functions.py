"""Functions and operators of somebody who may create in a schema of PostgreSQL's search path.

There is one for every function and operator of PostgreSQL's own, with types that a careless statement fits better. Each
counts, where no rollback takes it back, and fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.support.databases import empty_postgresql, execute

_PLANT = """
CREATE ROLE {role} LOGIN;
CREATE SEQUENCE public.ran;
GRANT USAGE ON SEQUENCE public.ran TO PUBLIC;
GRANT CREATE ON SCHEMA public TO {role};
SET ROLE {role};
SET search_path = pg_catalog;
DO $plant$
DECLARE
    types text[] := '{{text,varchar,name,"char",int2,int4,int8,float8,numeric,timestamptz,jsonb,oid}}';
    body text := $body$ BEGIN PERFORM pg_catalog.nextval('public.ran'); RAISE EXCEPTION 'a planted function ran'; END $body$;
    one text; other text; named text; kind text; each record;
BEGIN
    -- Text and names as VARCHAR, numbers of other sizes, whole records as what they might be.
    FOR each IN SELECT DISTINCT proname, replaced.arguments FROM pg_proc,
        LATERAL (SELECT string_agg(CASE
            WHEN given IN ('text'::regtype, 'name'::regtype) THEN 'varchar'
            WHEN given = 'float8'::regtype THEN 'numeric'
            WHEN given = 'int8'::regtype THEN 'int4'
            WHEN given = '"any"'::regtype OR given = 'anyelement'::regtype THEN 'varchar'
            WHEN given = 'anyarray'::regtype THEN 'varchar[]'
            ELSE format_type(given, NULL) END, ', ' ORDER BY place) AS arguments
            FROM unnest(proargtypes::regtype[]) WITH ORDINALITY AS argument(given, place)) AS replaced
        WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND pronargs BETWEEN 1 AND 4
        AND NOT proargtypes::oid[] && ARRAY['internal'::regtype::oid, 'cstring'::regtype::oid]
        AND proargtypes::oid[] && ARRAY['text'::regtype::oid, 'name'::regtype::oid, 'float8'::regtype::oid,
            'int8'::regtype::oid, '"any"'::regtype::oid, 'anyelement'::regtype::oid, 'anyarray'::regtype::oid]
    LOOP
        CONTINUE WHEN each.arguments LIKE '%any%' OR to_regprocedure(format('pg_catalog.%I(%s)', each.proname, each.arguments)) IS NOT NULL;
        EXECUTE format('CREATE OR REPLACE FUNCTION public.%I(%s) RETURNS text LANGUAGE plpgsql AS %L', each.proname, each.arguments, body);
    END LOOP;
    FOREACH one IN ARRAY types LOOP FOREACH other IN ARRAY types LOOP
        EXECUTE format('CREATE FUNCTION public.compared(%s, %s) RETURNS bool LANGUAGE plpgsql AS %L', one, other, body);
        EXECUTE format('CREATE FUNCTION public.reckoned(%s, %s) RETURNS text LANGUAGE plpgsql AS %L', one, other, body);
        FOREACH named IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '~~', '!~~', '~', '+', '-', '||', '->', '?'] LOOP
            kind := CASE WHEN named IN ('+', '-', '||', '->') THEN 'reckoned' ELSE 'compared' END;
            IF to_regoperator(format('pg_catalog.%s(%s,%s)', named, one, other)) IS NULL THEN
                EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%s)', named, one, other, kind);
            END IF;
        END LOOP;
    END LOOP; END LOOP;
END $plant$;
RESET ROLE;
RESET search_path
"""


@contextmanager
def planted_database(server_url: str, role: str) -> Iterator[str]:
    """The URL of an empty database in which ``role`` has planted all that it could; both are gone at the end."""
    with empty_postgresql(server_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_PLANT.format(role=role).encode())
        try:
            yield url
        finally:
            execute(url, f"DROP OWNED BY {role} CASCADE")
            execute(url, f"DROP ROLE {role}")


def calls(url: str) -> Any:
    """How often any of them has run."""
    return execute(url, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.ran")[0][0]
