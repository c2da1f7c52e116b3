"""Our stores against the bare drivers doing the same work: ``make bench`` or ``python -m benchmarks``."""
