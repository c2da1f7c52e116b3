"""``firefly-memory db sql``."""

from __future__ import annotations

import click

from firefly_memory.cli.command import argument, command, option
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where


@command(examples=["firefly-memory db sql 0004:head --dialect postgresql > upgrade.sql"])
@argument("range", "by default base:head", metavar="[FROM:TO]", default="base:head")
@option("--dialect", type=click.Choice(["postgresql", "sqlite"]), help="by default that of the URL, or postgresql")
@store_options(timeout=60.0)
@json_option
def sql(where: Where, range: str, dialect: str | None) -> None:  # noqa: A002 - the name of the argument
    from firefly_memory.cli.statements import print_script

    print_script(where, range, dialect)
