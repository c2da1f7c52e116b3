"""Tables that fit the terminal: drawn by rich where it is installed, in plain text otherwise.

In a pipe nothing is cut. Contents are data: their control characters are written out, and rich reads no markup in them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import is_coloured, show
from firefly_memory.cli.text import Shown, chunks, cut, on_one_line, width_of

GAP = 2
"""The columns of the terminal between two of the table."""

LEAST = 8
"""A column is not made narrower than this while another one can be."""


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    align: Literal["left", "right"] = "left"
    is_whole: bool = False
    """Whether its contents are never cut, such as ids that people copy: they go on in the next line."""


def show_table(
    result: dict[str, Any], columns: Sequence[Column], rows: Iterable[Sequence[object]], *, has_titles: bool = True
) -> None:
    """Print ``result`` with ``--json``, and the table otherwise."""
    if current().json:
        show(result, [])
        return
    cells = [[on_one_line(str(each)) for each in row] for row in rows]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    widths = _widths(columns, cells, width, has_titles=has_titles)
    if width is None or os.environ.get("TERM") == "dumb" or not _by_rich(columns, cells, widths, width, has_titles):
        show(result, _plain(columns, cells, widths, has_titles=has_titles))


def _widths(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None, *, has_titles: bool
) -> list[int]:
    """How wide each column is. Where all do not fit, the widest ones give way, those that may be cut first."""
    titles = [[each.title for each in columns]] if has_titles else []
    found = [max((width_of(cell) for cell in column), default=1) for column in zip(*titles, *cells, strict=True)]
    if width is None or not found:
        return found
    to_fit = width - GAP * (len(found) - 1)
    may_be_cut = [number for number, column in enumerate(columns) if not column.is_whole]
    for may_give_way, least in ((may_be_cut, LEAST), (range(len(columns)), 1)):
        while sum(found) > to_fit and (wide := [number for number in may_give_way if found[number] > least]):
            found[max(wide, key=found.__getitem__)] -= 1
    return found


def _plain(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: Sequence[int], *, has_titles: bool
) -> Iterator[Shown]:
    titles = [[each.title for each in columns]] if has_titles else []
    for row in [*titles, *cells]:
        parts = [_parts(*each) for each in zip(row, columns, widths, strict=True)]
        for line in zip_longest(*parts, fillvalue=""):
            filled = (_filled(*each) for each in zip(line, columns, widths, strict=True))
            yield Shown((" " * GAP).join(filled).rstrip())


def _parts(cell: str, column: Column, width: int) -> list[str]:
    return list(chunks(cell, width)) or [""] if column.is_whole else [cut(cell, width)]


def _filled(part: str, column: Column, width: int) -> str:
    space = " " * (width - width_of(part))
    return space + part if column.align == "right" else part + space


def _by_rich(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: Sequence[int], width: int, has_titles: bool
) -> bool:
    """Whether rich is there and has printed the table."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(
        box=box.SIMPLE_HEAD, show_header=has_titles, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    for column, size in zip(columns, widths, strict=True):
        table.add_column(
            Text(column.title),
            justify=column.align,
            width=size,
            no_wrap=not column.is_whole,
            overflow="fold" if column.is_whole else "ellipsis",
        )
    for row in cells:
        table.add_row(*map(Text, row))
    is_plain = not is_coloured(sys.stdout)
    Console(file=sys.stdout, width=width, no_color=is_plain, highlight=False, markup=False, emoji=False).print(table)
    return True
