"""The function of the trigger that fills a column of pgvector."""

from __future__ import annotations

_FUNCTION = """RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  bytes bytea;
  numbers float8[];
  length float8;
BEGIN
  NEW.{column} := NULL;
  bytes := NEW.vector || ''::bytea;  -- decompressed once
  IF octet_length(bytes) = 4 * {dimensions} THEN
    SELECT array_agg(
      CASE
        WHEN exponent = 0 THEN 0
        WHEN exponent < 255 THEN sign * (8388608 + fraction) * power(2::float8, exponent - 150)
      END
      ORDER BY place)
    INTO numbers
    FROM (
      SELECT place,
        CASE WHEN get_byte(bytes, place + 3) < 128 THEN 1 ELSE -1 END AS sign,
        (get_byte(bytes, place + 3) & 127) * 2 + (get_byte(bytes, place + 2) >> 7) AS exponent,
        ((get_byte(bytes, place + 2) & 127) << 16) + (get_byte(bytes, place + 1) << 8) + get_byte(bytes, place)
          AS fraction
      FROM generate_series(0, 4 * {dimensions} - 4, 4) AS place
    ) AS parts;
    IF array_position(numbers, NULL) IS NULL THEN
{of_length_one}      NEW.{column} := numbers;
    END IF;
  END IF;
  RETURN NEW;
EXCEPTION WHEN OTHERS THEN  -- no write fails because of this
  RETURN NEW;
END
$body$"""

_OF_LENGTH_ONE = """\
      SELECT sqrt(sum(number * number)) INTO length FROM unnest(numbers) AS number;
      SELECT array_agg(CASE WHEN length > 0 THEN number / length ELSE 0 END ORDER BY place)
      INTO numbers
      FROM unnest(numbers) WITH ORDINALITY AS each (number, place);
"""


def trigger_function(column: str, dimensions: int, *, of_length_one: bool) -> str:
    """What follows the name in CREATE FUNCTION. It makes numbers of four bytes each, as IEEE 754 has them.

    With ``of_length_one``, the vector gets that length: numbers of two bytes have no room for large ones. The function
    names no type of the extension: that may be moved to another schema, for which writers need no right. A vector
    that is damaged, or has another number of dimensions, leaves the column empty.
    """
    made = _FUNCTION.replace("{of_length_one}", _OF_LENGTH_ONE if of_length_one else "")
    return made.replace("{column}", column).replace("{dimensions}", str(dimensions))
