"""Classes whose operations exist in both colours: ``name`` and ``async_name``."""

from __future__ import annotations

from typing import TypeVar

C = TypeVar("C", bound=type)


def documented(cls: C) -> C:
    """Give each ``async_…`` method the docstring of its blocking twin: the contract is worded once."""
    members = vars(cls)
    for name, member in members.items():
        blocking = members.get(name.removeprefix("async_"))
        if name.startswith("async_") and blocking is not None:
            _function(member).__doc__ = blocking.__doc__
    return cls


def _function(member: object) -> object:
    return getattr(member, "__func__", member)
