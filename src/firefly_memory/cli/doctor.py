"""What ``firefly-memory doctor`` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import in_colour, show
from firefly_memory.cli.target import Where
from firefly_memory.cli.text import Shown, on_one_line
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.diagnostics import Finding, Level, ok, problem, warning
from firefly_memory.search.searching import at_once
from firefly_memory.service.indexes import outdated_in
from firefly_memory.settings import PREFIX
from firefly_memory.target import Target, reading
from firefly_memory.urls import Medium

_COLOUR_OF = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


def run(where: Where) -> Exit:
    found = where.target()
    diagnose = found.row.load("diagnosis")
    findings = [*diagnose(found.url, timeout=where.timeout, **found.options), *_settings(found)]
    if not any(finding.level is Level.PROBLEM for finding in findings):
        findings += _indexes(found, where.timeout)
    counts = Counter(finding.level for finding in findings)
    numbers = {level.value: counts[level] for level in Level}
    findings = [replace(each, do=where.advised(each.do)) for each in findings]
    details = [{"level": f.level.value, "what": f.what, "found": f.found, "do": f.do} for f in findings]
    show({"findings": details, **numbers}, [*_in_words(findings), _summary(counts)])
    return Exit.DRIFT if counts[Level.PROBLEM] else Exit.DONE


def _indexes(found: Target, timeout: float) -> Iterator[Finding]:
    """Those that searches use and that are outdated."""
    if found.row.medium is Medium.MEMORY:
        return
    with reading(found, timeout=timeout) as store:
        for kind in run_without_loop(outdated_in(store.blocking, at_once)):
            what = "some words of the index are not those of the texts, so searches miss rows"
            yield problem(kind, what, "run `firefly-memory index rebuild`")


def _settings(store: Target) -> Iterator[Finding]:
    if store.only_for_commands:
        needed = f"{PREFIX}BACKEND={store.kind}"
        found = f"MemoryManager.from_config() keeps everything in memory unless {needed} is set"
        yield warning("settings", found, f"set {needed}")
    if store.unused:
        yield ok("settings", f"the store is {store.kind.in_words}, so these are not used: {', '.join(store.unused)}")


def _in_words(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        level = in_colour(f"{finding.level:<8}", _COLOUR_OF[finding.level])
        yield Shown(f"{level} {on_one_line(finding.what)}: {on_one_line(finding.found)}")
        yield from (f"         do: {on_one_line(line)}" for line in finding.do.splitlines())


def _summary(counts: Counter[Level]) -> str:
    def number(level: Level) -> str:
        return f"{counts[level]} {level}{'' if counts[level] == 1 else 's'}"

    if counts[Level.PROBLEM] or counts[Level.WARNING]:
        return f"{number(Level.PROBLEM)}, {number(Level.WARNING)}"
    return "all is well"
