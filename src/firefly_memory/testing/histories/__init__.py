"""Random histories of a backend, checked for strict serializability.

Each acknowledged append is there once and at its number, reads are prefixes of what is stored, real time is kept, and an
order explains the results of all operations on a fact.
"""

from firefly_memory.testing.histories.run import HistoryReport, check_histories

__all__ = ["HistoryReport", "check_histories"]
