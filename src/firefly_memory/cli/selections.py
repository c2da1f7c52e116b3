"""``--where``: which rows a command is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from firefly_memory.cli.command import option

_CONDITION = re.compile(r"(?P<name>\w+)(?P<operator>=|~|>=|<)(?P<value>.*)", re.DOTALL | re.ASCII)


def where_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``selected``, as :func:`firefly_memory.service.list` takes ``where``."""
    words = "only rows with this value; may be repeated. FIELD~TEXT: that contain it; FIELD>=VALUE and FIELD<VALUE"
    settings = {"multiple": True, "callback": _selected, "metavar": "FIELD=VALUE", "help": words}
    made: Callable[..., Any] = option("--where", "selected", **settings)(function)
    return made


def _selected(_: click.Context, __: click.Parameter, conditions: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for condition in conditions:
        parts = _CONDITION.fullmatch(condition)
        if parts is None:
            raise click.BadParameter(f"{condition!r} is not FIELD=VALUE, FIELD~TEXT, FIELD>=VALUE or FIELD<VALUE")
        asked = parts["name"] + ("" if parts["operator"] == "=" else parts["operator"])
        if asked in found:
            raise click.BadParameter(f"{asked} is given twice")
        found[asked] = parts["value"]
    return found


def filter_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``filters``, as :func:`firefly_memory.service.search` takes ``where``."""
    words = "another filter of the kind; may be repeated"
    settings = {"multiple": True, "callback": _filters, "metavar": "FILTER=TEXT", "help": words}
    made: Callable[..., Any] = option("--where", "filters", **settings)(function)
    return made


def _filters(_: click.Context, __: click.Parameter, given: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not (name and equals and text):
            raise click.BadParameter(f"{each!r} is not FILTER=TEXT")
        if name in found:
            raise click.BadParameter(f"{name} is given twice")
        found[name] = text
    return found
