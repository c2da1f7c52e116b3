"""MongoDB: one document per entry, typed dates, the documented indexes."""

from firefly_memory.errors import MissingDependencyError

try:
    import pymongo as _pymongo  # noqa: F401 - only to say clearly what is missing
except ImportError as exc:
    raise MissingDependencyError("MongoDBStore", "pymongo", "mongodb") from exc
