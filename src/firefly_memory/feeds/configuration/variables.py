"""The variables that a caller's own configuration of a memory names, such as ``JOB_ID``: from a context, then from the
environment. Like tiktoken's, their names are not ours, so ``settings`` does not read them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from firefly_memory.errors import ConfigurationError

_REFERENCE = re.compile(r"\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class Variables:
    """Values by name. ``None`` in place of ``env`` is the environment of the process."""

    def __init__(self, context: Mapping[str, Any] | None, env: Mapping[str, str] | None) -> None:
        self.context = _mapping("context", {} if context is None else context)
        self._env = _mapping("env", os.environ if env is None else env)

    def with_context(self, values: Mapping[str, Any]) -> Variables:
        """The same with more values in the context, which come before those that are there."""
        return Variables({**self.context, **values}, self._env)

    def get(self, name: str) -> str | None:
        """The value of a variable; an empty one is not set. ``ConfigurationError`` if it is no text or whole number."""
        for where, values in (("context", self.context), ("environment", self._env)):
            value = values.get(name)
            if value is None:
                continue
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                raise ConfigurationError(
                    f"{name} in the {where} must be text or a whole number, not {type(value).__name__}"
                )
            if str(value).strip():
                return str(value)
        return None

    def fill_in(self, text: str, path: str) -> str:
        """``text`` with the values of its variables, written as ``${NAME}`` or ``${NAME:-default}``.

        A value is put in as it is: what looks like YAML or like a variable in it is data. ``ConfigurationError`` names
        ``path`` and the variable, and shows no value.
        """

        def value(found: re.Match[str]) -> str:
            inside = found["inside"]
            name, has_default, default = inside.partition(":-")
            if not found["end"]:
                raise ConfigurationError(f"{path}: the variable ${{{inside} has no closing brace")
            if "{" in inside:
                raise ConfigurationError(
                    f"{path}: a variable, or a brace, cannot be inside ${{…}}, as in ${{{inside}}}"
                )
            if _NAME.fullmatch(name) is None:
                raise ConfigurationError(
                    f"{path}: ${{{inside}}} is no variable: write ${{NAME}} or ${{NAME:-default}}, with letters, "
                    "digits and _ in the name"
                )
            known = self.get(name)
            if known is None and not has_default:
                raise ConfigurationError(
                    f"{path}: the variable {name} is not set, or is empty; give it in the context or in the "
                    f"environment, or write a default: ${{{name}:-default}}"
                )
            return default if known is None else known

        return _REFERENCE.sub(value, text)


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} must be a mapping or None, not {type(value).__name__}")
    return value
