"""The generated part of `docs/scaling.md`: how Citus is told to distribute the tables of each facet.

``python -m tests.support.scaling_page`` writes it anew, from the registry of facets.
"""

from __future__ import annotations

from collections.abc import Iterator

from firefly_memory.databases.sql.schema.metadata import metadata, tables_of
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.facets import Facet, all_facets
from firefly_memory.facets.declaration import Absent
from tests.support.documentation import ROOT

PAGE = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- distribution: begin -->\n", "<!-- distribution: end -->\n"


def generated() -> str:
    """The calls of all facets, and why facets have none."""
    calls, reasons = [], []
    for facet in all_facets():
        key = declared_key(facet)
        if isinstance(key, Absent):
            reasons.append(f"- {facet.title}: {key.reason}\n")
        else:
            calls += [f"-- {facet.title}\n", *_calls(facet, key)]
    fence = ["<!-- not run: it takes Citus -->\n", "```sql\n", *calls, "```\n"]
    return "".join(["\n", *fence, "\nNot distributed, but whole on the coordinator:\n\n", *reasons, "\n"])


def declared_key(facet: Facet) -> str | Absent:
    """The column by which a facet's tables may be distributed, or why there is none."""
    return facet.storage if isinstance(facet.storage, Absent) else facet.storage.distribution_key


def _calls(facet: Facet, key: str) -> Iterator[str]:
    """One for each table, in the order of their definitions; rows of one key are on one node, in whatever table."""
    own, first = tables_of(facet), "none"
    for table in metadata(POSTGRESQL_SCHEMA).tables.values():
        if table.name in own:
            yield f"SELECT create_distributed_table('{table.fullname}', '{key}', colocate_with => '{first}');\n"
            first = table.fullname if first == "none" else first


def parts() -> tuple[str, str, str]:
    """The page: what is before the generated part, that part, and what is after it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before + BEGIN, inside, END + after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + generated() + after, encoding="utf-8")
