"""Every rule of the contract, on every backend, in both modes."""

from __future__ import annotations

import pytest

from firefly_memory.testing import Check, Mode, checks
from tests.support.backends import BACKENDS, Backend, Place


@pytest.mark.parametrize(
    ("backend", "check", "mode"),
    [
        (backend, check, mode)
        for backend in BACKENDS
        for check in checks(backend.capabilities)
        for mode in backend.modes
    ],
    ids=str,
)
def test_conformance(backend: Backend, check: Check, mode: Mode, place: Place) -> None:
    check.run(lambda: backend.open(place), mode)
