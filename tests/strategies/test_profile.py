"""Configurations: the examples of the specification, files, and strategies of an application."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import ValidationError

from firefly_memory import ConfigurationError
from firefly_memory.strategies import (
    KeepPlan,
    KnowledgeBase,
    LongTermMemoryStrategyBase,
    MemoryMaxTokensStrategy,
    MemoryProfile,
    NeuralyzerStrategy,
    ShortTermMemoryStrategyBase,
    SummarizerStrategy,
    json_schema,
    register_strategy,
)
from firefly_memory.strategies import registry as registered

MAX_TOKENS = (
    '{ "memory_strategy_id": "max_tokens", "memory_max_tokens": 8000, "conditions": ["message.role != \'tool\'"]}'
)
SUMMARIZER = """{ "long_term_memory_id": "summarizer", "interaction_threshold_qty": 15, "interaction_threshold_tokens": 15000, "cod_max_loops": 3, "interaction_keep": 2, "instructions": "Focus on decisions made and action items.", "knowledge_base": { "collection_id": "session-memory", "search_mode": "always", "top_k": 3 }}"""
NEURALYZER = '{ "long_term_memory_id": "neuralyzer", "interaction_threshold_qty": 30, "interaction_keep": 5}'

PROFILE = f'{{"short_term_memory_strategy": [{MAX_TOKENS}], "long_term_memory_strategy": [{SUMMARIZER}, {NEURALYZER}]}}'

AS_YAML = """\
short_term_memory_strategy:
  - memory_strategy_id: max_tokens
    memory_max_tokens: 8000
    conditions: ["message.role != 'tool'"]
long_term_memory_strategy:
  - long_term_memory_id: summarizer
    interaction_threshold_qty: 15
    interaction_threshold_tokens: 15000
    cod_max_loops: 3
    interaction_keep: 2
    instructions: Focus on decisions made and action items.
    knowledge_base:
      collection_id: session-memory
      search_mode: always
      top_k: 3
  - long_term_memory_id: neuralyzer
    interaction_threshold_qty: 30
    interaction_keep: 5
"""

EXPECTED = MemoryProfile(
    short_term_memory_strategy=[MemoryMaxTokensStrategy(memory_max_tokens=8000, conditions=["message.role != 'tool'"])],
    long_term_memory_strategy=[
        SummarizerStrategy(
            interaction_threshold_qty=15,
            interaction_threshold_tokens=15000,
            cod_max_loops=3,
            interaction_keep=2,
            instructions="Focus on decisions made and action items.",
            knowledge_base=KnowledgeBase(collection_id="session-memory", search_mode="always", top_k=3),
        ),
        NeuralyzerStrategy(interaction_threshold_qty=30, interaction_keep=5),
    ],
)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten."""
    with monkeypatch.context() as patch:
        patch.setattr(registered, "_registered", {base: {} for base in registered.ID_FIELDS})
        yield


# The examples


def test_the_json_examples_are_loaded_word_for_word() -> None:
    assert MemoryProfile.model_validate_json(PROFILE) == EXPECTED
    assert [type(each) for each in EXPECTED.long_term_memory_strategy] == [SummarizerStrategy, NeuralyzerStrategy]


@pytest.mark.parametrize(
    ("example", "strategy"),
    [(MAX_TOKENS, MemoryMaxTokensStrategy), (SUMMARIZER, SummarizerStrategy), (NEURALYZER, NeuralyzerStrategy)],
)
def test_each_example_is_loaded_by_its_class(example: str, strategy: Any) -> None:
    loaded = strategy.model_validate_json(example)
    given = json.loads(example)
    assert {name: loaded.model_dump()[name] for name in given.keys() - {"knowledge_base"}} == {
        name: value for name, value in given.items() if name != "knowledge_base"
    }


@pytest.mark.parametrize(("name", "text"), [("p.json", PROFILE), ("p.yaml", AS_YAML), ("p.yml", AS_YAML)])
def test_a_profile_is_read_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert MemoryProfile.from_file(path) == MemoryProfile.from_file(str(path)) == EXPECTED


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(f"\ufeff{PROFILE}", "utf-8")
    assert MemoryProfile.from_file(path) == EXPECTED


def test_what_is_dumped_is_loaded_again_as_an_equal_profile() -> None:
    for profile in (
        EXPECTED,
        MemoryProfile(),
        MemoryProfile(long_term_memory_strategy=[SummarizerStrategy(model="m")]),
    ):
        assert MemoryProfile.model_validate(profile.model_dump()) == profile
        assert MemoryProfile.model_validate_json(profile.model_dump_json()) == profile
        assert MemoryProfile.model_validate(yaml.safe_load(yaml.safe_dump(profile.model_dump()))) == profile


def test_by_default_there_are_no_strategies() -> None:
    assert MemoryProfile().model_dump() == {"short_term_memory_strategy": [], "long_term_memory_strategy": []}


# The id


def test_the_id_is_required_in_json_and_has_its_default_in_python() -> None:
    assert MemoryMaxTokensStrategy().memory_strategy_id == "max_tokens"
    with pytest.raises(ValidationError) as caught:
        MemoryProfile.model_validate({"short_term_memory_strategy": [{"memory_max_tokens": 1}]})
    (error,) = caught.value.errors()
    assert error["loc"] == ("short_term_memory_strategy", 0)
    assert error["msg"] == "Value error, memory_strategy_id is required: one of max_tokens"
    with pytest.raises(ValidationError, match="long_term_memory_id is required: one of neuralyzer, summarizer"):
        MemoryProfile.model_validate({"long_term_memory_strategy": [{"long_term_memory_id": None}]})


def test_an_unknown_id_is_refused_with_the_one_that_is_probably_meant() -> None:
    with pytest.raises(
        ValidationError, match="'sumarizer' is not known; known are: neuralyzer, summarizer; did you mean"
    ):
        MemoryProfile.model_validate({"long_term_memory_strategy": [{"long_term_memory_id": "sumarizer"}]})
    with pytest.raises(ValidationError, match="'neuralyzer' is not known; known are: max_tokens"):
        MemoryProfile.model_validate({"short_term_memory_strategy": [{"memory_strategy_id": "neuralyzer"}]})


def test_an_object_of_python_may_stand_beside_a_mapping() -> None:
    profile = MemoryProfile.model_validate(
        {"long_term_memory_strategy": [NeuralyzerStrategy(), {"long_term_memory_id": "neuralyzer"}]}
    )
    assert profile.long_term_memory_strategy == [NeuralyzerStrategy(), NeuralyzerStrategy()]
    with pytest.raises(ValidationError):
        MemoryProfile.model_validate({"long_term_memory_strategy": [MemoryMaxTokensStrategy()]})


# Errors of files


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"short_term_memory_strategy": [{"memory_strategy_id": "max_tokens", "memory_max_token": 1}]}',
         "short_term_memory_strategy[0].memory_max_token: Extra inputs are not permitted"),
        ('{"long_term_memory_strategy": [{"long_term_memory_id": "neuralyzer", "interaction_keep": -1}]}',
         "long_term_memory_strategy[0].interaction_keep: Input should be greater than or equal to 0"),
        ('{"short_term_memory_strategy": [{"memory_strategy_id": "max_tokens", "conditions": ["x", ""]}]}',
         "short_term_memory_strategy[0].conditions[0]: Value error, the condition 'x' is refused"),
        ('{"long_term": []}', "long_term: Extra inputs are not permitted"),
        ("[]", "must be a mapping with the fields short_term_memory_strategy, long_term_memory_strategy"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_and_the_field(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        MemoryProfile.from_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("a: [")
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\xff")
    for name, problem in {
        "p.yaml": "is not YAML",
        "p.json": "cannot be read",
        "none.json": "No such file",
        "p.toml": "must end in .json, .yaml or .yml",
    }.items():
        with pytest.raises(ConfigurationError, match=problem) as caught:
            MemoryProfile.from_file(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


def test_yaml_makes_no_python_objects(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(ConfigurationError, match="is not YAML"):
        MemoryProfile.from_file(path)


# Strategies of an application


class Newest(ShortTermMemoryStrategyBase):
    """Keeps the newest messages."""

    memory_strategy_id: Literal["newest"] = "newest"
    number: int = 1

    def plan(self, messages: Sequence[Any], count: Any = None) -> KeepPlan:
        first = max(0, len(messages) - self.number)
        return KeepPlan(tuple(messages[first:]), tuple(range(first, len(messages))), 0, "the newest")


def test_a_strategy_of_an_application_is_registered_and_loaded_by_its_id() -> None:
    assert register_strategy(Newest) is Newest
    given = {"short_term_memory_strategy": [{"memory_strategy_id": "newest", "number": 2}]}
    profile = MemoryProfile.model_validate(given)
    assert profile.short_term_memory_strategy == [Newest(number=2)]
    assert profile.short_term_memory_strategy[0].apply([1, 2, 3]) == [2, 3]
    assert MemoryProfile.model_validate(profile.model_dump()) == profile
    assert "Newest" in json_schema()["$defs"]


def test_a_long_term_strategy_is_registered_with_a_decorator() -> None:
    @register_strategy
    class Mine(NeuralyzerStrategy):
        long_term_memory_id: Literal["mine"] = "mine"  # type: ignore[assignment]

    loaded = MemoryProfile.model_validate({"long_term_memory_strategy": [{"long_term_memory_id": "mine"}]})
    assert loaded.long_term_memory_strategy == [Mine()]


def test_an_id_is_registered_once() -> None:
    register_strategy(Newest)
    with pytest.raises(ConfigurationError, match="memory_strategy_id 'newest' is in use by Newest"):
        register_strategy(Newest)

    class Mine(NeuralyzerStrategy):
        """Has the id of its base."""

    with pytest.raises(ConfigurationError, match="long_term_memory_id 'neuralyzer' is in use by NeuralyzerStrategy"):
        register_strategy(Mine)


def test_a_class_without_an_id_is_refused() -> None:
    class Nameless(LongTermMemoryStrategyBase):
        async def async_apply(self, messages: Sequence[Any], **_: Any) -> list[Any]:
            return []

    with pytest.raises(ConfigurationError, match="Nameless needs an id: long_term_memory_id: Literal"):
        register_strategy(Nameless)
    others: tuple[Any, ...] = (ShortTermMemoryStrategyBase, LongTermMemoryStrategyBase, MemoryProfile, "newest")
    for wrong in others:
        with pytest.raises(ConfigurationError, match="must be a subclass of ShortTermMemoryStrategyBase or"):
            register_strategy(wrong)


def test_a_base_cannot_be_used_itself() -> None:
    bases: tuple[Any, ...] = (ShortTermMemoryStrategyBase, LongTermMemoryStrategyBase)
    for base in bases:
        with pytest.raises(TypeError, match="abstract"):
            base(memory_strategy_id="x")


@pytest.mark.parametrize("text", ["!!bool x", "!!timestamp x", "!!int x", "!!python/name:os.system", "{[1]: 2}"])
def test_yaml_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "profile.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"profile\.yaml: is not YAML"):
        MemoryProfile.from_file(file)


def test_a_traceback_does_not_show_what_aliases_multiply(tmp_path: Path) -> None:
    """Five lines of YAML are a hundred thousand values."""
    aliases = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 5)]
    budget = "short_term_memory_strategy: [{memory_strategy_id: max_tokens, memory_max_tokens: *a4}]"
    file = tmp_path / "profile.yaml"
    file.write_text("\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *aliases, budget]))
    with pytest.raises(ConfigurationError) as caught:
        MemoryProfile.from_file(file)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "memory_max_tokens: Input should be a valid integer" in str(caught.value)


# The schema


def test_the_json_schema_has_every_strategy_and_requires_the_id() -> None:
    schema = json_schema()
    json.dumps(schema)
    definitions = schema["$defs"]
    assert definitions["MemoryMaxTokensStrategy"]["required"] == ["memory_strategy_id"]
    assert definitions["SummarizerStrategy"]["required"] == ["long_term_memory_id"]
    assert definitions["NeuralyzerStrategy"]["properties"]["long_term_memory_id"]["const"] == "neuralyzer"
    assert definitions["MemoryMaxTokensStrategy"]["additionalProperties"] is False
    assert definitions["MemoryMaxTokensStrategy"]["properties"]["memory_max_tokens"]["description"]
    items = schema["properties"]["long_term_memory_strategy"]["items"]["oneOf"]
    assert [item["$ref"] for item in items] == ["#/$defs/NeuralyzerStrategy", "#/$defs/SummarizerStrategy"]
    fields = {
        name
        for each in definitions.values()
        for name, field in each["properties"].items()
        if "description" not in field
    }
    assert not fields - {
        "memory_strategy_id",
        "long_term_memory_id",
        "interaction_threshold_qty",
        "interaction_threshold_tokens",
    }


def test_importing_the_package_loads_neither_pydantic_ai_nor_simpleeval_nor_the_splitter() -> None:
    code = """
import sys, firefly_memory, firefly_memory.strategies as s
print('pydantic' in sys.modules)
for name in s.__all__: getattr(s, name)
print(*sorted({'pydantic_ai', 'simpleeval', 'semchunk', 'yaml', 'tqdm'} & set(sys.modules)))
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed == "False\n\n"


def test_a_misspelt_name_gets_advice() -> None:
    with pytest.raises(ImportError, match="did you mean MemoryProfile"):
        from firefly_memory.strategies import MemoryProfil  # type: ignore[attr-defined]  # noqa: F401
