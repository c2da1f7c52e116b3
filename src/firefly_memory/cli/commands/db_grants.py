"""``firefly-memory db grants``."""

from __future__ import annotations

from firefly_memory.cli.command import argument, command
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where


@command(examples=["firefly-memory db grants agent_service | psql"])
@argument("role", "the role of the service, which needs no right to create anything")
@store_options(timeout=60.0)
@json_option
def grants(where: Where, role: str) -> None:
    from firefly_memory.cli.statements import print_grants

    print_grants(where, role)
