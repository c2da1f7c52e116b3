"""Several event loops at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


async def each_in_its_own_loop(*works: Coroutine[Any, Any, None]) -> None:
    """Run coroutines at once, each in the event loop of a thread of its own. The first error is raised."""
    with ThreadPoolExecutor(len(works)) as threads:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(threads, asyncio.run, work) for work in works))
