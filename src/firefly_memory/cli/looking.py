"""What ``firefly-memory ls``, ``show``, ``rm`` and ``stats`` do: :mod:`firefly_memory.service`, on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from firefly_memory import service
from firefly_memory.cli.consent import require_consent
from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import say, show
from firefly_memory.cli.tables import Column, show_table
from firefly_memory.cli.target import Where
from firefly_memory.cli.text import Shown, on_one_line, printable
from firefly_memory.clock import instant_of
from firefly_memory.errors import FireflyMemoryError, NotSupportedError
from firefly_memory.looking import Field, Resource, Row, Type
from firefly_memory.service.registered import resource_of
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import changing, reading


def list_kinds(where: Where) -> None:
    with reading(where.target(), timeout=where.timeout) as store:
        kinds = {each.kind: each.title for each in service.resources(store)}
    show_table({"kinds": kinds}, [Column("kind", is_whole=True), Column("what it is")], kinds.items())


def list_rows(
    where: Where, kind: str, selected: Mapping[str, str], *, limit: int, after: str | None, order: str | None
) -> None:
    rows: list[Row] = []
    with reading(where.target(), timeout=where.timeout) as store:
        while True:
            wanted = min(limit - len(rows), service.MOST_ROWS)
            page = service.list(store, kind, where=selected, order=order, after=after, limit=wanted)
            rows += page
            after = page.next
            if after is None or len(rows) == limit:
                break
    if current().json:
        _print_lines(rows, after)
        return
    resource = resource_of(kind)[1]
    fields = [each for each in resource.fields if each.in_table and each.name not in resource.identity]
    columns = [Column("id", is_whole=True), *(column(each) for each in fields)]
    show_table({}, columns, [[row["id"], *(cell(each, row[each.name]) for each in fields)] for row in rows])
    if after is not None:
        say(f"there are more: --after {after}")


def _print_lines(rows: Sequence[Row], after: str | None) -> None:
    for row in rows:
        print(json.dumps(row))
    if after is not None:
        print(json.dumps({"next": after}))


def column(field: Field) -> Column:
    """The column of a table for a field."""
    return Column(field.name, align="right" if field.type is Type.NUMBER else "left")


def cell(field: Field, value: Any) -> str:
    """On one line; of an instant, what people compare."""
    if value is None:
        return ""
    if field.type is Type.INSTANT:
        return instant_of(value).strftime("%Y-%m-%d %H:%M:%S")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_row(where: Where, kind: str, row_id: str) -> None:
    with reading(where.target(), timeout=where.timeout) as store:
        row = service.get(store, kind, row_id)
    if row is None:
        raise _unknown(kind, [row_id])
    show(row, _in_words(row))


def _in_words(row: Row) -> Iterator[str]:
    """A field is one line, unless it is JSON, whose further lines are indented: no content looks like a field."""
    width = max(map(len, row))
    for name, value in row.items():
        text = on_one_line(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        first, *further = printable(text).splitlines() or [""]
        yield Shown(f"{name:<{width}}  {first}")
        yield from (Shown(f"{'':<{width}}  {line}") for line in further)


def delete_rows(
    where: Where,
    kind: str,
    ids: Sequence[str],
    selected: Mapping[str, str],
    *,
    every: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    if (bool(ids), bool(selected), every).count(True) != 1:
        raise click.UsageError("name rows by their ids, by --where or by --all", click.get_current_context())
    with changing(where.target(), timeout=where.timeout) as store:
        resource = resource_of(kind)[1]
        if resource.why_kept is not None:
            raise NotSupportedError(resource.why_kept)
        rows = _counted(store, kind, list(dict.fromkeys(ids)), selected)
        if dry_run or not rows:
            show({"kind": kind, "rows": rows, "deleted": 0}, [f"would delete {_number(resource, rows)}"])
            return
        would = f"delete {_number(resource, rows)}"
        is_to = f"{'it is' if rows == 1 else 'they are'} to be deleted"
        require_consent(
            yes=yes, name=kind, of="the kind", would=[f"would {would}"], lost=would, is_to=is_to,
            or_else="; --dry-run only counts",
        )  # fmt: skip
        deleted = service.delete(store, kind, ids) if ids else service.delete(store, kind, where=selected)
        show({"kind": kind, "rows": rows, "deleted": deleted}, [f"deleted {_number(resource, deleted)}"])


def _counted(store: EntryStore, kind: str, ids: Sequence[str], selected: Mapping[str, str]) -> int:
    if not ids:
        return service.count(store, kind, where=selected).rows
    unknown = [row_id for row_id in ids if service.get(store, kind, row_id) is None]
    if unknown:
        raise _unknown(kind, unknown)
    return len(ids)


def _number(resource: Resource, rows: int) -> str:
    return f"{rows:,} {'row' if rows == 1 else 'rows'} of {resource.kind}"


def _unknown(kind: str, ids: Sequence[str]) -> FireflyMemoryError:
    return FireflyMemoryError(f"no row of {kind} has the id {' or '.join(map(repr, ids))}")


def show_stats(where: Where) -> None:
    with reading(where.target(), timeout=where.timeout) as store:
        found = service.stats(store)
    numbers = [{"kind": each.kind, "rows": each.rows, "tokens": each.tokens, "note": each.note} for each in found]
    columns = [Column("kind", is_whole=True), Column("rows", align="right"), Column("tokens", align="right")]
    rows = [[each.kind, _figure(each.rows), _figure(each.tokens)] for each in found]
    show_table({"kinds": numbers}, columns, rows)


def _figure(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
