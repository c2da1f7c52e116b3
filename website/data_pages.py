"""The parts of pages that every facet has a share in: ``python -m website.data_pages`` writes them.

Each facet of the library has a page in ``docs/data``. A section of such a page, for example "Whose data", begins with a
table or a list. A general page, for example ``docs/privacy.md``, has these tables of all facets as one table, between
two markers. Other parts are made from the declarations themselves: rights, tables, collections, distribution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from textwrap import fill

from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.sql.schema.commands import grants
from firefly_memory.databases.sql.schema.metadata import metadata, tables_of
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.facets import FACETS, Absent, Facet, all_facets, load_name
from website.paths import DOCS

DATA = "data"
"""The folder of the facets' pages in ``docs``."""

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def page_of(facet: Facet) -> str:
    """The name of a facet's page in the folder."""
    return f"{facet.name.replace('_', '-')}.md"


def of_the_library() -> list[Facet]:
    """The facets that have a page. Facets of other packages have pages of their own packages."""
    return [load_name(name) for name in FACETS]


def section(facet: Facet, title: str) -> str:
    """What is below a heading of a facet's page; empty if the page lacks the heading."""
    text = (DOCS / DATA / page_of(facet)).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return "" if found is None else found[1]


def put_together(title: str) -> str:
    """The first blocks of this section of all facets: their rows as one table, or their items as one list."""
    blocks = [(facet, section(facet, title).partition("\n\n")[0].strip("\n")) for facet in of_the_library()]
    lines = [_seen_from_above(block, facet).splitlines() for facet, block in blocks if block]
    if not lines[0][0].startswith("|"):
        return "".join(f"{line}\n" for block in lines for line in block)
    heads = [block[:2] for block in lines]
    if any(head != heads[0] for head in heads):
        raise ValueError(f"the tables of the sections {title!r} have different columns: {heads}")
    return "".join(f"{line}\n" for line in [*heads[0], *(row for block in lines for row in block[2:])])


def _seen_from_above(text: str, facet: Facet) -> str:
    """The text with links that are right in the folder above the facet's page."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if re.match(r"\w+:", target):
            return found[0]
        if target.startswith("../"):
            return f"]({target.removeprefix('../')})"
        return f"]({DATA}/{page_of(facet)}{target})" if target.startswith("#") else f"]({DATA}/{target})"

    return _LINK.sub(link, text)


def _pages() -> str:
    """A line for each page, with its heading and its first sentence."""
    lines = []
    for facet in of_the_library():
        heading, _, rest = (DOCS / DATA / page_of(facet)).read_text(encoding="utf-8").partition("\n\n")
        question = " ".join(rest.partition("\n\n")[0].split()).partition("?")[0]
        lines.append(
            fill(f"- [{heading.removeprefix('# ')}]({page_of(facet)}): {question}?", 118, subsequent_indent="  ")
        )
    return "".join(f"{line}\n" for line in lines)


def _tables() -> str:
    rows = [(facet, [f"`{name}`" for name in _in_order(facet)]) for facet in of_the_library()]
    return _of_parts("tables", "tables", rows)


def _collections() -> str:
    rows = [(facet, [_named(each) for each in facet.stored("collections") or ()]) for facet in of_the_library()]
    return _of_parts("collections", "collections-of-mongodb", rows)


def _named(collection: Collection) -> str:
    return "the one that the store is opened with" if collection.name is None else f"`{collection.name}`"


def _of_parts(what: str, anchor: str, rows: list[tuple[Facet, list[str]]]) -> str:
    lines = [f"| data | {what} |", "|---|---|"]
    for facet, names in rows:
        lines.append(
            f"| [{facet.title}]({DATA}/{page_of(facet)}#{anchor}) | {', '.join(names) or 'none of their own'} |"
        )
    return "".join(f"{line}\n" for line in lines)


def _rights() -> str:
    statements = grants("agent_service", POSTGRESQL_SCHEMA)
    wrapped = [fill(each, 118, subsequent_indent="  ", break_on_hyphens=False) for each in statements]
    return "".join(["```sql\n", *(f"{each}\n" for each in wrapped), "```\n"])


def distribution() -> str:
    """How Citus is told to distribute the tables of each facet, and why facets are not distributed."""
    calls, reasons = [], []
    for facet in all_facets():
        key = declared_key(facet)
        if isinstance(key, Absent):
            reasons.append(f"- {facet.title}: {key.reason}\n")
        else:
            calls += [f"-- {facet.title}\n", *_calls(facet, key)]
    fence = ["<!-- not run: it takes Citus -->\n", "```sql\n", *calls, "```\n"]
    return "".join([*fence, "\nNot distributed, but whole on the coordinator:\n\n", *reasons])


def declared_key(facet: Facet) -> str | Absent:
    """The column by which a facet's tables may be distributed, or why there is none."""
    return facet.storage if isinstance(facet.storage, Absent) else facet.storage.distribution_key


def _calls(facet: Facet, key: str) -> Iterator[str]:
    """One for each table, in the order of their definitions; rows of one key are on one node, in whatever table."""
    first = "none"
    for name in _in_order(facet):
        table = f"{POSTGRESQL_SCHEMA}.{name}"
        yield f"SELECT create_distributed_table('{table}', '{key}', colocate_with => '{first}');\n"
        first = table if first == "none" else first


def _in_order(facet: Facet) -> list[str]:
    """The tables of a facet, in the order of their definitions."""
    own = tables_of(facet)
    return [table.name for table in metadata(POSTGRESQL_SCHEMA).tables.values() if table.name in own]


SECTIONS = {
    "Whose data": "privacy.md",
    "Erasure": "erasure.md",
    "Retention": "retention.md",
    "Kinds of rows": "looking.md",
    "Archives and copies": "archives.md",
    "Untrusted archives": "archives.md",
    "Reads": "scaling.md",
    "Loggers": "logging.md",
    "Log messages": "logging.md",
}
"""The sections of the facets' pages that are put together, and where."""

DECLARED: dict[str, tuple[str, Callable[[], str]]] = {
    "pages": (f"{DATA}/README.md", _pages),
    "tables": ("schema.md", _tables),
    "collections": ("mongodb.md", _collections),
    "rights": ("migrations.md", _rights),
    "distribution": ("scaling.md", distribution),
}
"""What the declarations of the facets say, and where."""

PARTS: list[tuple[str, str, Callable[[], str]]] = [
    *((page, title, partial(put_together, title)) for title, page in SECTIONS.items()),
    *((page, name, made) for name, (page, made) in DECLARED.items()),
]
"""Every part that is written: its page, its name, and its text."""


def begin(name: str) -> str:
    return f"<!-- {name}: written by `make pages` -->\n"


def end(name: str) -> str:
    return f"<!-- end of {name} -->\n"


def part(text: str, name: str) -> tuple[str, str, str]:
    """The text of a page: what is before the inside of a part, the inside, and what is after it."""
    before, started, rest = text.partition(begin(name))
    inside, ended, after = rest.partition(end(name))
    if not started or not ended:
        raise ValueError(f"a page lacks the markers of {name!r}")
    return before + started, inside, ended + after


def rewritten(page: str) -> str:
    """The text of a page, with all its parts as they are now."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for _, name, made in (each for each in PARTS if each[0] == page):
        before, _, after = part(text, name)
        text = f"{before}\n{made()}\n{after}"
    return text


if __name__ == "__main__":
    for written in sorted({page for page, _, _ in PARTS}):
        (DOCS / written).write_text(rewritten(written), encoding="utf-8")
