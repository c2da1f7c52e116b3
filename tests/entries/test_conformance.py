"""Every rule of the contract, on every backend, in both colours."""

from __future__ import annotations

import pytest

from firefly_memory.testing import Check, Colour, checks
from tests.support.backends import BACKENDS, Backend, Place


@pytest.mark.parametrize(
    ("backend", "check", "colour"),
    [
        (backend, check, colour)
        for backend in BACKENDS
        for check in checks(backend.capabilities)
        for colour in backend.colours
    ],
    ids=str,
)
def test_conformance(backend: Backend, check: Check, colour: Colour, place: Place) -> None:
    check.run(lambda: backend.open(place), colour)
