"""What is found that is not as it should be, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable

from firefly_memory.databases.diagnostics import Difference


def in_words(found: Iterable[Difference]) -> list[str]:
    return [line for each in found for line in (str(each), *(f"  {line}" for line in each.mend.splitlines()))]


def as_json(found: Iterable[Difference]) -> list[dict[str, str]]:
    return [{"what": each.what, "found": each.found, "expected": each.expected, "mend": each.mend} for each in found]
