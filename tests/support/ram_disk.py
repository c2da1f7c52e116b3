"""Where the files of the tests and of their servers lie: in memory, because a disk makes each commit wait."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import psutil

RAM_DISK = Path("/dev/shm")
_NEEDED = 4 * 2**30
"""Bytes for the servers and databases of four processes."""


def use_ram_disk() -> None:
    """Temporary files of this process and of its children lie in memory, if nobody chose another directory."""
    if "TMPDIR" not in os.environ and _is_large_enough() and not _forbids_programs():
        os.environ["TMPDIR"] = tempfile.tempdir = str(RAM_DISK)


def _is_large_enough() -> bool:
    """A container's is small, unless it is told otherwise."""
    if not os.access(RAM_DISK, os.W_OK):
        return False
    return bool(min(shutil.disk_usage(RAM_DISK).free, psutil.virtual_memory().available) >= _NEEDED)


def _forbids_programs() -> bool:
    return bool(os.statvfs(RAM_DISK).f_flag & os.ST_NOEXEC)
