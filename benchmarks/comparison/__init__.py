"""firefly-memory beside other libraries' stores: ``make bench-comparison`` or ``python -m benchmarks.comparison``."""
