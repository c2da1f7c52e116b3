import pytest
from blob_store import BlobStore

from firefly_memory import Capability, EntryStore, adapt
from firefly_memory.testing import Check, Colour, checks

PROMISED = {Capability.DURABLE}


@pytest.mark.parametrize("colour", Colour)
@pytest.mark.parametrize("check", checks(PROMISED), ids=str)
def test_conformance(check: Check, colour: Colour) -> None:
    blobs: dict[str, bytes] = {}

    def open_store() -> EntryStore:
        return adapt(BlobStore(blobs), PROMISED)

    check.run(open_store, colour)
