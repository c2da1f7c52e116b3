"""``firefly-memory db history``."""

from __future__ import annotations

from firefly_memory.cli.command import command
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where


@command(examples=["firefly-memory db history"])
@store_options(timeout=60.0)
@json_option
def history(where: Where) -> None:  # noqa: ARG001 - it takes the options of each command in its group
    from firefly_memory.cli.tables import Column, show_table
    from firefly_memory.databases.sql.schema import revisions
    from firefly_memory.databases.sql.schema.commands import history as known

    head = revisions.head()
    rows = [(each.revision, f"{each.title}{'  (head)' if each.revision == head else ''}") for each in known()]
    result = {"revisions": [{"revision": each.revision, "title": each.title} for each in known()]}
    show_table(result, [Column("revision", is_whole=True), Column("title", is_whole=True)], rows, has_titles=False)
