"""``psql`` for the tutorial: runs the statements on the standard input, and knows the command ``\\connect``."""

from __future__ import annotations

import re
import sys

import psycopg


def main(url: str, script: str) -> None:
    connected = re.match(r"\\connect (\w+)\n", script)
    if connected is not None:
        url = re.sub(r"/[^/?]*(?=$|\?)", f"/{connected[1]}", url)
        script = script[connected.end() :]
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in filter(None, map(str.strip, script.split(";\n"))):
            connection.execute(statement.encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin.read())
