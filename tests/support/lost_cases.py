"""What callers do while the answers of their server get lost: the cases of every module ``lost_…_cases`` beside this one."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, Protocol

from firefly_memory import EntryStore
from tests import support
from tests.support.lost_reply_cases import Act, Meeting


class Reading(Protocol):
    """Reads from a store with both modes, which may be in a transaction of the application's."""

    async def __call__(self, store: EntryStore, *, is_bound: bool) -> None: ...


ACTS: list[Act] = []
ERASURES: list[Act] = []
"""Those that are not in a transaction of the application's, where nobody can be erased."""
MEETINGS: list[Meeting] = []
READINGS: list[Reading] = []
"""What no act does."""

for _each in pkgutil.iter_modules(support.__path__, f"{support.__name__}."):
    if _each.name.rpartition(".")[2].startswith("lost_") and _each.name.endswith("_cases"):
        _cases: Any = import_module(_each.name)
        ACTS += _cases.ACTS
        MEETINGS += _cases.MEETINGS
        ERASURES += getattr(_cases, "ERASURES", [])
        READINGS += getattr(_cases, "READINGS", [])
