"""Measure, in an environment that has the contenders: ``python -m …measurements DIRECTORY URL PART…``.

Each finished part is a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.comparison.contenders import CONTENDERS
from benchmarks.comparison.places import Places
from benchmarks.comparison.processes import concurrent, killed
from benchmarks.comparison.rights import rights
from benchmarks.comparison.times import sizes, times

PARTS = {"times": times, "sizes": sizes, "concurrent": concurrent, "killed": killed, "rights": rights}


def _contenders() -> list[dict[str, Any]]:
    return [
        {"contender": name, "name": make.name, "backend": make.backend, "package": make.package, "reads": make.reads}
        | {"version": version(make.package)}
        for name, make in CONTENDERS.items()
    ]


async def _main(directory: str, postgresql_url: str, *names: str) -> None:
    places = Places(Path(directory), postgresql_url)
    print(json.dumps({"contenders": _contenders()}), flush=True)
    for name in names:
        print(json.dumps({name: await PARTS[name](places)}), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
