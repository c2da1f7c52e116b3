"""For authors of backends: the conformance suite, a checker of histories, and a clock that stands still.

The whole test module of a backend::

    import pytest
    from firefly_memory.testing import Mode, checks

    @pytest.mark.parametrize("mode", Mode)
    @pytest.mark.parametrize("check", checks(capabilities=()), ids=str)
    def test_conformance(check, mode, tmp_path):
        check.run(lambda: MyStore(tmp_path), mode)

``checks`` takes the promises the backend makes (:class:`firefly_memory.Capability`); a class with only the five
methods makes none. Each check is named after the rule of :mod:`firefly_memory.protocols` that it tests.
"""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):
    import pytest

    pytest.register_assert_rewrite("firefly_memory.testing.rules")

from firefly_memory.testing.checks import Check, Mode, Subject, checks
from firefly_memory.testing.clock import StoppedClock, stopped
from firefly_memory.testing.histories import HistoryReport, check_histories
from firefly_memory.testing.proxy import Weather

Colour = Mode
"""The earlier name."""

__all__ = [
    "Check",
    "Colour",
    "HistoryReport",
    "Mode",
    "StoppedClock",
    "Subject",
    "Weather",
    "check_histories",
    "checks",
    "stopped",
]
