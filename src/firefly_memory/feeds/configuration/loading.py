"""The memory of an agent, as YAML says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from firefly_memory.errors import ConfigurationError
from firefly_memory.feeds import memories
from firefly_memory.feeds.base_store import BaseMessageStore
from firefly_memory.feeds.configuration.presets import (
    MANAGER,
    STANDALONE,
    WORKER,
    key_in,
    key_of,
    memory_of_preset,
    preset_called,
)
from firefly_memory.feeds.configuration.variables import Variables
from firefly_memory.feeds.memories import BaseMemory
from firefly_memory.likely_names import meant
from firefly_memory.reprs import shown
from firefly_memory.yaml_text import read_yaml


def _as_a_number(value: Any) -> Any:
    """The value of a variable is text."""
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value


Text = Annotated[str, Field(min_length=1)]
MaxTokens = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_as_a_number)]


class _Arguments(BaseModel):
    """What a memory, or a preset, takes from YAML. Of defaults only those that are not the constructor's matter."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    max_tokens: MaxTokens = None


class _OfNobody(_Arguments):
    agent_key: Text = ""


class _Shared(_Arguments):
    namespace: Text
    agent_key: Text


class _HierarchicalShared(_Shared):
    subordinates: list[Text] = []


class _Stored(_Arguments):
    location: Text
    agent_key: Text
    owner: Text = ""


class _HierarchicalStored(_Stored):
    subordinates: list[Text] = []


class _OfAWorker(_Arguments):
    namespace: Text = ""
    agent_key: Text = ""
    owner: Text = ""


class _OfAManager(_OfAWorker):
    subordinates: list[Text] = []


_TYPES: dict[str, type[_Arguments]] = {
    "InMemoryMemory": _OfNobody,
    "SharedInMemoryMemory": _Shared,
    "HierarchicalSharedMemory": _HierarchicalShared,
    "MessageStoreMemory": _Stored,
    "HierarchicalMessageStoreMemory": _HierarchicalStored,
}

_OVERRIDES: dict[str, type[_Arguments]] = {STANDALONE: _OfNobody, WORKER: _OfAWorker, MANAGER: _OfAManager}


def load_memory(
    text: str,
    context: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    store: BaseMessageStore | None = None,
) -> BaseMemory:
    """The memory that a YAML document describes. YAML needs the extra ``yaml``.

    The document has ``memory`` at the top, or it is an agent's, with ``spec.memory``. ``memory`` has ``type``, the name
    of a class, and ``config``, the arguments of its constructor. Or it has ``$preset``, a name for
    :func:`get_memory_preset`, and beside it ``namespace``, ``agent_key``, ``subordinates``, ``owner``, ``max_tokens``.
    A class that reads from a message store, and the presets ``worker`` and ``manager``, take ``store``.

    An agent key that is not there comes from ``metadata.name``, then from the context, and subordinates that are not
    there from the names in ``spec.workers``; both as keys, such as ``data_team`` for ``Data Team``.

    ``${NAME}`` and ``${NAME:-default}`` in any of these texts stand for variables: of the context, then of ``env``
    (``None`` is the environment of the process). A default has no braces. Keys of YAML have no variables.

    ``ConfigurationError``, which is a ``ValueError``, names what cannot be used, and shows no value of a variable.
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"the text must be YAML in a str, not {type(text).__name__}")
    document = read_yaml(text, "the configuration")
    return _Loading(_checked_mapping("the configuration", document), Variables(context, env), store).memory()


class _Found(NamedTuple):
    """A mapping of the document, and where it is."""

    path: str
    fields: dict[str, Any]


class _Loading:
    """Reads one document."""

    def __init__(self, document: dict[str, Any], variables: Variables, store: BaseMessageStore | None) -> None:
        self._document = document
        self._variables = variables
        self._store = store

    def memory(self) -> BaseMemory:
        path, fields = section = self._section()
        if "$preset" in fields:
            if "type" in fields:
                raise ConfigurationError(f"{path}: has both type and $preset; keep one of them")
            return self._of_preset(section)
        if "type" not in fields:
            raise ConfigurationError(f"{path}: needs type or $preset")
        _refuse_unknown(path, fields, ("type", "config"))
        return self._of_type(section)

    def _section(self) -> _Found:
        spec = self._document.get("spec")
        inside = isinstance(spec, dict) and "memory" in spec
        if inside and "memory" in self._document:
            raise ConfigurationError("the configuration: has memory both at the top and in spec; keep one of them")
        if inside:
            return _Found("spec.memory", _checked_mapping("spec.memory", self._spec["memory"]))
        if "memory" in self._document:
            return _Found("memory", _checked_mapping("memory", self._document["memory"]))
        raise ConfigurationError("the configuration: has neither memory at the top nor spec.memory")

    def _of_type(self, section: _Found) -> BaseMemory:
        path, fields = f"{section.path}.type", section.fields
        name = self._text(path, fields["type"])
        if name not in _TYPES:
            likely = meant(name, _TYPES)
            advice = "" if likely is None else f"; did you mean {likely}?"
            raise ConfigurationError(f"{path}: unknown type {fields['type']!r}; known are {', '.join(_TYPES)}{advice}")
        model, given = _TYPES[name], fields.get("config")
        path = f"{section.path}.config"
        arguments = self._arguments(_Found(path, {} if given is None else _checked_mapping(path, given)), model)
        if issubclass(model, _Stored):
            if self._store is None:
                raise ConfigurationError(f"{section.path}: {name} needs a message store: load_memory(text, store=…)")
            arguments["message_store"] = self._store
        memory: BaseMemory = getattr(memories, name)(**arguments)
        return memory

    def _of_preset(self, section: _Found) -> BaseMemory:
        written = section.fields["$preset"]
        preset = preset_called(self._text(f"{section.path}.$preset", written), written)
        overrides = {name: value for name, value in section.fields.items() if name != "$preset"}
        arguments = self._arguments(_Found(section.path, overrides), _OVERRIDES[preset])
        options = {name: arguments.pop(name) for name in ("owner", "max_tokens") if name in arguments}
        return memory_of_preset(preset, self._variables.with_context(arguments), self._store, **options)

    def _arguments(self, found: _Found, model: type[_Arguments]) -> dict[str, Any]:
        """The arguments that are given, or known from elsewhere in the document, after a check."""
        _refuse_unknown(found.path, found.fields, model.model_fields)
        given = {name: self._filled_in(f"{found.path}.{name}", value) for name, value in found.fields.items()}
        key = self._key() if "agent_key" not in given else None
        if key is not None:
            given["agent_key"] = key
        if "subordinates" in model.model_fields and "subordinates" not in given and "workers" in self._spec:
            given["subordinates"] = self._workers()
        try:
            return model.model_validate(given).model_dump(exclude_unset=True)
        except ValidationError as exc:
            problems = (f"{found.path}{_steps(each['loc'])}: {_problem(each)}" for each in exc.errors())
            raise ConfigurationError("; ".join(problems)) from None

    def _key(self) -> str | None:
        metadata = self._document.get("metadata")
        if isinstance(metadata, dict) and metadata.get("name") is not None:
            return key_of(self._text("metadata.name", metadata["name"]))
        return key_in(self._variables.context)

    @property
    def _spec(self) -> dict[str, Any]:
        spec = self._document.get("spec")
        return spec if isinstance(spec, dict) else {}

    def _workers(self) -> list[str]:
        workers = self._spec["workers"]
        if not isinstance(workers, list):
            raise ConfigurationError(f"spec.workers: must be a list, not {type(workers).__name__}")
        keys = []
        for place, worker in enumerate(workers):
            path = f"spec.workers[{place}]"
            keys.append(key_of(self._text(f"{path}.name", _checked_mapping(path, worker).get("name"))))
        return keys

    def _text(self, path: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ConfigurationError(f"{path}: must be text, not {type(value).__name__}")
        return self._variables.fill_in(value, path)

    def _filled_in(self, path: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._variables.fill_in(each, path) if isinstance(each, str) else each for each in value]
        return self._variables.fill_in(value, path) if isinstance(value, str) else value


def _checked_mapping(path: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        found = "empty" if value is None else f"a {type(value).__name__}"
        raise ConfigurationError(f"{path}: must be a mapping, and is {found}")
    return value


def _refuse_unknown(path: str, fields: Mapping[Any, Any], known: Iterable[str]) -> None:
    for name in fields:
        if name not in known:
            likely = meant(name, known) if isinstance(name, str) else None
            advice = "" if likely is None else f"; did you mean {likely}?"
            raise ConfigurationError(f"{path}: unknown argument {shown(name)}; known are {', '.join(known)}{advice}")


def _steps(steps: tuple[int | str, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _problem(error: Mapping[str, Any]) -> str:
    return "is empty" if error["input"] is None else _PROBLEMS.get(error["type"], str(error["msg"]))


_PROBLEMS = {
    "missing": "is required",
    "string_type": "must be text; in YAML, put quotes around it",
    "string_too_short": "must not be empty",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "greater_than_equal": "must be a whole number from 0 up",
}
