"""``firefly-memory search``."""

from __future__ import annotations

import click

from firefly_memory.cli.command import OF_A_STORE, argument, command, flag, option
from firefly_memory.cli.options import embedder_option, json_option, store_options
from firefly_memory.cli.selections import filter_option
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name, a_whole_number

MODES = ("best", "hybrid", "text", "semantic", "fuzzy")
"""Those of search.hits, a module that takes long to load."""


@command(
    "Find the rows of one kind that say most about a question, best first. Nothing in a question is syntax. The "
    "collection that is searched is --collection, so the MongoDB collection of entries is --store-collection here. The "
    "store is only read.",
    examples=[
        'firefly-memory search chunks "what is the dog called" --collection notes --url sqlite:///memory.db',
        "firefly-memory search chunks - --collection notes --owner ann --explain --url sqlite:///memory.db",
    ],
    exits=OF_A_STORE,
)
@argument("kind", "the kind of the rows", type=a_name)
@argument("question", "what is asked; - reads it from the standard input", type=a_name)
@option("--collection", type=a_name, metavar="NAME", help="the collection that is searched")
@option("--owner", type=a_name, metavar="NAME", help="the person whose rows are searched")
@option("--space", type=a_name, metavar="NAME", help="the tenant whose rows are searched")
@filter_option
@option("--mode", type=click.Choice(MODES), default="best", help="how the question and the rows are compared (best)")
@option("--limit", type=a_whole_number, default=10, metavar="ROWS", help="find so many rows at most (10)")
@flag("--explain", help="say how each hit came about")
@embedder_option
@store_options(option="--store-{}", also={"schema": "--schema", "database": "--database"})
@json_option
def search(
    where: Where,
    kind: str,
    question: str,
    filters: dict[str, str],
    *,
    mode: str,
    limit: int,
    explain: bool,
    embedder: str | None,
    **named: str,
) -> None:
    from firefly_memory.cli.search import Asked, show_hits

    asked = Asked.on_the_command_line(question, filters, named)
    show_hits(where, kind, asked, mode=mode, limit=limit, explain=explain, embedder=embedder)
