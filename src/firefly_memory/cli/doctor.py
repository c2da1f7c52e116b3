"""``firefly-memory doctor``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import show
from firefly_memory.cli.target import add_target, advised, target_of
from firefly_memory.cli.values import a_time_out
from firefly_memory.databases.diagnostics import Finding, Level, ok, warning
from firefly_memory.settings import PREFIX
from firefly_memory.target import Target


def add_to(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="look at a store and its surroundings, and say what is wrong",
        description="Look at a store, its database and its surroundings, and say what is wrong and what to do. Nothing "
        f"is changed. Ends with {Exit.DRIFT} if there is a problem, with {Exit.BEHIND} if there is no SQLite file, and "
        f"with {Exit.UNREACHABLE} if the store cannot be reached.",
    )
    add_target(doctor)
    doctor.add_argument("--timeout", type=a_time_out, default=10.0, metavar="SECONDS", help="for the server (10)")
    doctor.add_argument("--json", action="store_true", help="print a JSON object")
    doctor.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    found = target_of(arguments)
    diagnose = found.row.load("diagnosis")
    findings = [*diagnose(found.url, timeout=arguments.timeout, **found.options), *_settings(found)]
    counts = Counter(finding.level for finding in findings)
    numbers = {level.value: counts[level] for level in Level}
    findings = [replace(each, do=advised(each.do, arguments)) for each in findings]
    details = [{"level": f.level.value, "what": f.what, "found": f.found, "do": f.do} for f in findings]
    show(arguments, {"findings": details, **numbers}, [*_in_words(findings), _summary(counts)])
    return Exit.DRIFT if counts[Level.PROBLEM] else Exit.DONE


def _settings(store: Target) -> Iterator[Finding]:
    if store.only_for_commands:
        needed = f"{PREFIX}BACKEND={store.kind}"
        found = f"MemoryManager.from_config() keeps everything in memory unless {needed} is set"
        yield warning("settings", found, f"set {needed}")
    if store.unused:
        yield ok("settings", f"the store is {store.kind.in_words}, so these are not used: {', '.join(store.unused)}")


def _in_words(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.level:<8} {finding.what}: {_on_one_line(finding.found)}"
        yield from (f"         do: {_on_one_line(line)}" for line in finding.do.splitlines())


def _on_one_line(text: str) -> str:
    """``text`` as a terminal cannot take it for something else: names in a database may have any character."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _summary(counts: Counter[Level]) -> str:
    def number(level: Level) -> str:
        return f"{counts[level]} {level}{'' if counts[level] == 1 else 's'}"

    if counts[Level.PROBLEM] or counts[Level.WARNING]:
        return f"{number(Level.PROBLEM)}, {number(Level.WARNING)}"
    return "all is well"
