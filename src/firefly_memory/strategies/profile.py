"""``MemoryProfile``: the strategies of a memory as configuration, from Python, JSON or YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError
from pydantic.json_schema import models_json_schema

from firefly_memory.errors import ConfigurationError
from firefly_memory.strategies.base import Configuration, LongTermMemoryStrategyBase, ShortTermMemoryStrategyBase
from firefly_memory.strategies.registry import ID_FIELDS, Base, ids_of, strategy_class
from firefly_memory.yaml_text import read_yaml


def _loaded(base: Base, value: Any) -> Any:
    """A mapping as the strategy that its id names; any other value as it is."""
    if not isinstance(value, dict):
        return value
    field = ID_FIELDS[base]
    if not isinstance(value.get(field), str):
        raise ValueError(f"{field} is required: one of {', '.join(ids_of(base))}")
    return strategy_class(base, value[field]).model_validate(value)


ShortTerm = Annotated[
    SerializeAsAny[ShortTermMemoryStrategyBase],
    BeforeValidator(lambda value: _loaded(ShortTermMemoryStrategyBase, value)),
]
LongTerm = Annotated[
    SerializeAsAny[LongTermMemoryStrategyBase],
    BeforeValidator(lambda value: _loaded(LongTermMemoryStrategyBase, value)),
]


class MemoryProfile(Configuration):
    """The strategies of a memory. With the defaults everything is sent, and nothing ever leaves.

    Several strategies of a list are applied one after the other.
    """

    short_term_memory_strategy: list[ShortTerm] = Field(default_factory=list)
    """What of the history a prompt has."""
    long_term_memory_strategy: list[LongTerm] = Field(default_factory=list)
    """When the oldest interactions leave the history, and what replaces them."""

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """The profile in a file ``….json``, ``….yaml`` or ``….yml``. YAML needs the extra ``yaml``.

        ``ConfigurationError`` names the file, and each field that is wrong.
        """
        content = _read(Path(path))
        if not isinstance(content, dict):
            raise ConfigurationError(f"{path}: must be a mapping with the fields {', '.join(cls.model_fields)}")
        try:
            return cls.model_validate(content)
        except ValidationError as exc:
            problems = "; ".join(f"{_path(error['loc'])}: {error['msg']}" for error in exc.errors(include_url=False))
            # A traceback would show the values, and aliases of YAML let a small file have endless ones.
            raise ConfigurationError(f"{path}: {problems}") from None


def _path(steps: tuple[int | str, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _read(path: Path) -> Any:
    if path.suffix not in {".json", ".yaml", ".yml"}:
        raise ConfigurationError(f"{path}: the name of the file must end in .json, .yaml or .yml")
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as exc:
        raise ConfigurationError(f"{path}: cannot be read: {exc}") from exc
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ConfigurationError(f"{path}: is not JSON: {exc}") from exc
    return read_yaml(text, str(path))


def json_schema() -> dict[str, Any]:
    """The JSON schema of a profile, for editors. It has every strategy that is registered."""
    classes = [(base, each, strategy_class(base, each)) for base in ID_FIELDS for each in ids_of(base)]
    references, schema = models_json_schema([(strategy, "validation") for _, _, strategy in classes])
    definitions = schema.get("$defs", {})
    profile = MemoryProfile.model_json_schema()
    items: dict[Base, list[dict[str, Any]]] = {base: [] for base in ID_FIELDS}
    for base, strategy_id, strategy in classes:
        reference = references[strategy, "validation"]
        items[base].append(reference)
        definition = definitions[reference["$ref"].rpartition("/")[2]]
        definition["properties"][ID_FIELDS[base]]["const"] = strategy_id
        definition["required"] = sorted({*definition.get("required", []), ID_FIELDS[base]})
    for base, field in zip(ID_FIELDS, MemoryProfile.model_fields, strict=True):
        profile["properties"][field]["items"] = {"oneOf": items[base]}
    return profile | {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}
