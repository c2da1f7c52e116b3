"""YAML that somebody wrote, read as plain values."""

from __future__ import annotations

from itertools import chain
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.validation import ImportingExtra

_YAML = ImportingExtra("a configuration in YAML", "pyyaml", "yaml")

MOST_VALUES = 1_000_000
"""How many values a document may have, with each alias counted as what it stands for."""


def read_yaml(text: str, what: str) -> Any:
    """The one document in ``text``, in the values of JSON and the dates, sets and bytes that YAML adds; no tag makes
    any other object. ``ConfigurationError``, which begins with ``what``, if that cannot be: also for a key that a
    mapping has twice, and for aliases that repeat a part without end.
    """
    with _YAML:
        import yaml
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, what)
        return loader.construct_document(node)
    # Values that do not fit their tag, such as "!!bool x", are not always told as errors of YAML.
    except (yaml.YAMLError, AttributeError, LookupError, OverflowError, RecursionError, ValueError) as exc:
        if isinstance(exc, ConfigurationError):
            raise
        raise ConfigurationError(f"{what}: is not YAML: {exc}") from exc
    finally:
        if loader is not None:
            loader.dispose()


def _check(root: Any, what: str) -> None:
    """Refuse keys that are there twice, and a document that is too large when its aliases are followed."""
    counts: dict[int, int] = {}
    too_many = MOST_VALUES + 1

    def count(node: Any) -> int:
        if id(node) not in counts:
            counts[id(node)] = too_many  # what contains itself has no end
            values: Any = () if isinstance(node.value, str) else node.value
            if node.id == "mapping":
                _check_keys(node, what)
                values = chain.from_iterable(values)
            counts[id(node)] = min(1 + sum(map(count, values)), too_many)
        return counts[id(node)]

    if count(root) > MOST_VALUES:
        raise ConfigurationError(f"{what}: is too large: its aliases stand for more than {MOST_VALUES:,} values")


def _check_keys(mapping: Any, what: str) -> None:
    seen = set()
    for key in (key for key, _ in mapping.value if key.id == "scalar"):
        if (key.tag, key.value) in seen:
            where = f"line {key.start_mark.line + 1}"
            raise ConfigurationError(f"{what}: has the key {key.value!r} twice in one mapping, again in {where}")
        seen.add((key.tag, key.value))
