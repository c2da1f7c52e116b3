"""Every rule of the contract, on every backend, in both colours."""

from __future__ import annotations

import pytest

from firefly_memory.testing import Check, Colour, checks
from tests.backends import BACKENDS, Backend, Place


@pytest.mark.parametrize("colour", Colour)
@pytest.mark.parametrize(
    ("backend", "check"), [(backend, check) for backend in BACKENDS for check in checks(backend.capabilities)], ids=str
)
def test_conformance(backend: Backend, check: Check, colour: Colour, place: Place) -> None:
    check.run(lambda: backend.open(place), colour)
