import pytest
from blob_store import BlobStore

from firefly_memory import Capability, EntryStore, adapt
from firefly_memory.testing import Check, Mode, check_histories, checks

PROMISED = {Capability.DURABLE}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("check", checks(PROMISED), ids=str)
def test_conformance(check: Check, mode: Mode) -> None:
    blobs: dict[str, bytes] = {}

    def open_store() -> EntryStore:
        return adapt(BlobStore(blobs), PROMISED)

    check.run(open_store, mode)


@pytest.mark.parametrize("mode", Mode)
def test_histories(mode: Mode) -> None:
    blobs: dict[str, bytes] = {}
    check_histories(lambda: adapt(BlobStore(blobs), PROMISED), mode=mode, processes=0)
