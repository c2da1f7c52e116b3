"""``firefly-memory doctor``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import show
from firefly_memory.cli.target import add_url, target_url
from firefly_memory.errors import ConfigurationError
from firefly_memory.options import seconds
from firefly_memory.settings import MemorySettings, read_settings
from firefly_memory.stores.findings import Finding, Level, warning


def add_to(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="look at a store and its surroundings, and say what is wrong",
        description="Look at a store, its database and its surroundings, and say what is wrong and what to do. Nothing "
        f"is changed. Ends with {Exit.DRIFT} if there is a problem, with {Exit.UNREACHABLE} if the store cannot be "
        "reached.",
    )
    add_url(doctor)
    for name, what in (("schema", "PostgreSQL schema"), ("database", "MongoDB database"), ("collection", "collection")):
        doctor.add_argument(f"--{name}", metavar="NAME", help=f"the {what}, by default as configured")
    doctor.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="for the server (10)")
    doctor.add_argument("--json", action="store_true", help="print a JSON object")
    doctor.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    seconds("--timeout", arguments.timeout)
    settings = read_settings()
    findings = list(_examined(_url(arguments, settings), arguments, settings))
    counts = Counter(finding.level for finding in findings)
    numbers = {level.value: counts[level] for level in Level}
    details = [{"level": f.level.value, "what": f.what, "found": f.found, "do": f.do} for f in findings]
    show(arguments, {"findings": details, **numbers}, [*_in_words(findings), _summary(counts)])
    return Exit.DRIFT if counts[Level.PROBLEM] else Exit.DONE


def _url(arguments: argparse.Namespace, settings: MemorySettings) -> str:
    given = arguments.url or arguments.url_file or settings.store_url
    if given is None and settings.backend == "file":
        return f"file:{quote(settings.file_dir)}"
    return target_url(arguments)


def _examined(url: str, arguments: argparse.Namespace, settings: MemorySettings) -> Iterator[Finding]:
    # Each examination is imported when it is wanted: the others' drivers may not be installed.
    scheme, colon, rest = url.partition(":")
    match scheme.lower().partition("+")[0] if colon else "":
        case "sqlite":
            from firefly_memory.stores.sql.sqlite import examination as of_sqlite

            return of_sqlite.examine(url, timeout=arguments.timeout)
        case "postgresql" | "postgres":
            from firefly_memory.stores.sql.postgresql import examination as of_postgresql

            return of_postgresql.examine(
                url,
                arguments.schema or settings.postgres_schema,
                timeout=arguments.timeout,
                pool_size=settings.postgres_pool_size,
                pooler=settings.postgres_pooler,
            )
        case "mongodb":
            from firefly_memory.stores.mongodb import examination as of_mongodb

            return of_mongodb.examine(
                url,
                arguments.database or settings.mongodb_database,
                arguments.collection or settings.mongodb_collection,
                timeout=arguments.timeout,
            )
        case "file":
            from firefly_memory.stores import file_examination

            return file_examination.examine(Path(unquote(rest.removeprefix("//")) or ".firefly_memory").absolute())
        case "memory":
            return iter([warning("store", "it is in memory and ends with the process", "use another one to keep it")])
    raise ConfigurationError("doctor needs a URL such as sqlite:///memory.db, postgresql://host/name or file:directory")


def _in_words(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.level:<8} {finding.what}: {finding.found}"
        yield from (f"         do: {line}" for line in finding.do.splitlines())


def _summary(counts: Counter[Level]) -> str:
    def number(level: Level) -> str:
        return f"{counts[level]} {level}{'' if counts[level] == 1 else 's'}"

    if counts[Level.PROBLEM] or counts[Level.WARNING]:
        return f"{number(Level.PROBLEM)}, {number(Level.WARNING)}"
    return "all is well"
