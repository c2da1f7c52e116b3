"""Which class a configuration means by an id: the strategies of the library, and those that applications register."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from firefly_memory import likely_names
from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import shown
from firefly_memory.strategies.base import LongTermMemoryStrategyBase, ShortTermMemoryStrategyBase

Base = type[ShortTermMemoryStrategyBase] | type[LongTermMemoryStrategyBase]
C = TypeVar("C", bound=Base)

ID_FIELDS: dict[Base, str] = {
    ShortTermMemoryStrategyBase: "memory_strategy_id",
    LongTermMemoryStrategyBase: "long_term_memory_id",
}
"""The bases, and the field that names the strategy."""

_OF_THE_LIBRARY: dict[Base, dict[str, str]] = {
    ShortTermMemoryStrategyBase: {"max_tokens": "firefly_memory.strategies.max_tokens:MemoryMaxTokensStrategy"},
    LongTermMemoryStrategyBase: {
        "neuralyzer": "firefly_memory.strategies.neuralyzer:NeuralyzerStrategy",
        "summarizer": "firefly_memory.strategies.summarizer:SummarizerStrategy",
    },
}

_registered: dict[Base, dict[str, Any]] = {base: {} for base in ID_FIELDS}


def register_strategy(strategy: C) -> C:
    """Register a strategy of your own, so that a configuration can name it. Use it as a decorator.

    The class extends one of the two bases, and has an id of its own as the default of ``memory_strategy_id`` or
    ``long_term_memory_id``. ``ConfigurationError`` if it has none, or if another strategy has the id.
    """
    base = next((each for each in ID_FIELDS if isinstance(strategy, type) and issubclass(strategy, each)), None)
    if base is None or base is strategy:
        kinds = " or ".join(each.__name__ for each in ID_FIELDS)
        raise ConfigurationError(f"a strategy must be a subclass of {kinds}, not {shown(strategy)}")
    field = ID_FIELDS[base]
    strategy_id = strategy.model_fields[field].default
    if not isinstance(strategy_id, str) or not strategy_id:
        raise ConfigurationError(f"{strategy.__name__} needs an id: {field}: Literal['my_id'] = 'my_id'")
    if strategy_id in ids_of(base):
        raise ConfigurationError(f"{field} {strategy_id!r} is in use by {strategy_class(base, strategy_id).__name__}")
    _registered[base][strategy_id] = strategy
    return strategy


def ids_of(base: Base) -> list[str]:
    """The ids that a configuration may name."""
    return sorted({*_OF_THE_LIBRARY[base], *_registered[base]})


def strategy_class(base: Base, strategy_id: str) -> Any:
    """The class with this id. ``ValueError`` says which ids there are."""
    if strategy_id in _registered[base]:
        return _registered[base][strategy_id]
    if strategy_id in _OF_THE_LIBRARY[base]:
        module, name = _OF_THE_LIBRARY[base][strategy_id].split(":")
        return getattr(import_module(module), name)
    ids = ids_of(base)
    meant = likely_names.meant(strategy_id, ids)
    advice = f"; did you mean {meant!r}?" if meant else ""
    raise ValueError(f"{ID_FIELDS[base]} {shown(strategy_id)} is not known; known are: {', '.join(ids)}{advice}")
