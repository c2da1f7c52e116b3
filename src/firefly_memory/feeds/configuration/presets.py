"""Memories by the role of their agent: ``standalone``, ``worker`` or ``manager``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.feeds.base_store import BaseMessageStore
from firefly_memory.feeds.configuration.variables import Variables
from firefly_memory.feeds.memories import (
    BaseMemory,
    HierarchicalMessageStoreMemory,
    HierarchicalSharedMemory,
    InMemoryMemory,
    MessageStoreMemory,
    SharedInMemoryMemory,
)
from firefly_memory.reprs import shown

STANDALONE = "standalone"
WORKER = "worker"
MANAGER = "manager"

_PRESETS = {
    STANDALONE: (
        "For one agent on its own: an InMemoryMemory, which is private and ends with the process, also if a message "
        "store is given. Its agent_key is 'default' if none is given."
    ),
    WORKER: (
        "For an agent of a team, which sees the conversation, its own messages and those for every agent: a "
        "MessageStoreMemory if a message store is given. Without one it is a SharedInMemoryMemory, which sees the "
        "other agents of the namespace as well. It needs an agent_key."
    ),
    MANAGER: (
        "For the agent that leads a team, which sees its own messages, those of its subordinates and those for every "
        "agent: a HierarchicalMessageStoreMemory if a message store is given, otherwise a HierarchicalSharedMemory. "
        "It needs an agent_key."
    ),
}

DEFAULT_NAMESPACE = "default"


def list_presets() -> list[str]:
    """The names of the presets."""
    return list(_PRESETS)


def describe_preset(name: str) -> str:
    """What a preset is for, and which memory it gives; ``ConfigurationError`` for an unknown one."""
    return _PRESETS[preset_called(name)]


def get_memory_preset(
    name: str,
    context: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    store: BaseMessageStore | None = None,
) -> BaseMemory:
    """A memory for the role of an agent. ``name`` is one of :func:`list_presets`; capitals, ``-`` and spaces make no
    difference.

    The context may have ``agent_key``, or ``agent_name`` in its place, ``namespace``, ``JOB_ID`` and ``subordinates``;
    its other keys are not read. Every agent key becomes lower case, with ``_`` for ``-`` and spaces. ``namespace`` is
    also the location in ``store``, the message store. Without ``namespace`` it is ``JOB_ID`` of the context, then of
    ``env`` (``None`` is the environment of the process), then ``"default"``, which all jobs without any of these share.

    ``ConfigurationError`` for an unknown preset, for a worker or a manager without an agent key, and for names in the
    context that are empty or no text.
    """
    return memory_of_preset(preset_called(name), Variables(context, env), store)


def memory_of_preset(
    preset: str,
    variables: Variables,
    store: BaseMessageStore | None,
    *,
    owner: str | None = None,
    max_tokens: int | None = None,
) -> BaseMemory:
    """The memory of a preset, which is named as in :func:`list_presets`."""
    key = key_in(variables.context)
    if preset == STANDALONE:
        return InMemoryMemory(max_tokens=max_tokens) if key is None else InMemoryMemory(key, max_tokens=max_tokens)
    if key is None:
        raise ConfigurationError(f"the preset {preset!r} needs the key of its agent: give agent_key or agent_name")
    if owner is not None and store is None:
        raise ConfigurationError(f"the preset {preset!r} keeps an owner only in a message store: give store")
    namespace = _namespace(variables)
    if preset == WORKER:
        if store is None:
            return SharedInMemoryMemory(namespace, key, max_tokens=max_tokens)
        return MessageStoreMemory(store, namespace, key, owner=owner, max_tokens=max_tokens)
    team = _subordinates(variables.context)
    if store is None:
        return HierarchicalSharedMemory(namespace, key, team, max_tokens=max_tokens)
    return HierarchicalMessageStoreMemory(store, namespace, key, team, owner=owner, max_tokens=max_tokens)


def preset_called(name: Any, written: str | None = None) -> str:
    """The preset that is called so. ``written`` stands for ``name`` in the error."""
    preset = key_of(name) if isinstance(name, str) else ""
    if preset not in _PRESETS:
        raise ConfigurationError(
            f"Unknown memory preset: {shown(name if written is None else written)}. Available: {', '.join(_PRESETS)}"
        )
    return preset


def key_of(name: str) -> str:
    """The key of an agent, or the preset, that people call so."""
    return name.lower().replace("-", "_").replace(" ", "_")


def key_in(context: Mapping[str, Any]) -> str | None:
    """The key of the agent whose context it is."""
    given = [name for name in ("agent_key", "agent_name") if context.get(name) is not None]
    return key_of(_name(given[0], context[given[0]])) if given else None


def _namespace(variables: Variables) -> str:
    context = variables.context
    if context.get("namespace") is not None:
        return _name("namespace", context["namespace"])
    if isinstance(context.get("JOB_ID"), str):
        _name("JOB_ID", context["JOB_ID"])
    return variables.get("JOB_ID") or DEFAULT_NAMESPACE


def _subordinates(context: Mapping[str, Any]) -> list[str]:
    given = context.get("subordinates")
    if given is None:
        return []
    if not isinstance(given, (list, tuple)):
        raise ConfigurationError(f"subordinates must be a list of agent keys, not {type(given).__name__}")
    return [key_of(_name(f"subordinates[{place}]", each)) for place, each in enumerate(given)]


def _name(what: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        found = "empty text" if isinstance(value, str) else type(value).__name__
        raise ConfigurationError(f"{what} must be text that is not empty, not {found}")
    return value
