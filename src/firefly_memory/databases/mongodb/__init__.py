"""MongoDB: one document per entry, typed dates, the documented indexes."""

from firefly_memory.errors import MissingDependencyError
from firefly_memory.validation import is_installed


def require_driver() -> None:
    """``MissingDependencyError`` if PyMongo is not installed: modules of this package import it."""
    if not is_installed("pymongo"):
        raise MissingDependencyError("MongoDBStore", "pymongo", "mongodb")
