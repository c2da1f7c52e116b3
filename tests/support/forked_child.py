"""Work in a forked child of this process."""

from __future__ import annotations

import os


def in_child(work: object) -> int:
    """Fork, call ``work`` in the child, and return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert callable(work)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
