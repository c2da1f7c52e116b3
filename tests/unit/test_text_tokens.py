"""The tokens of texts: estimated, and counted with a vocabulary."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import tiktoken

from firefly_memory.errors import ConfigurationError
from firefly_memory.tokens import PER_MESSAGE, TokenEstimator, formula, tiktoken_loader
from tests.support.documentation import ROOT
from tests.support.tiktoken_vocabularies import VOCABULARIES, other_implementation
from tests.support.token_samples import SAMPLES

TOO_FEW, TOO_MANY = 0.9, 1.65
"""What the documentation promises: an estimate is never less nor more than this, times the real count."""


def rates(name: str) -> formula.Rates:
    return formula.rates_for(name, None)


def ratio(text: str, name: str) -> float:
    return formula.estimated(text, 1.33, rates(name)) / len(tiktoken.get_encoding(name).encode_ordinary(text))


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("kind", SAMPLES)
def test_the_estimate_is_near_the_count_of_a_real_vocabulary(kind: str, name: str) -> None:
    assert TOO_FEW <= ratio(SAMPLES[kind], name) <= TOO_MANY


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_estimate_is_rather_too_high_than_too_low(name: str) -> None:
    ratios = [ratio(text, name) for text in SAMPLES.values()]
    assert 1.05 <= sum(ratios) / len(ratios) <= 1.25
    assert sum(each < 1 for each in ratios) <= len(ratios) / 4


def test_the_documented_errors_are_those_that_are_measured() -> None:
    page = (ROOT / "docs" / "tokens.md").read_text()
    missing = [
        row
        for kind, text in SAMPLES.items()
        if (row := f"| {kind} | {' | '.join(f'{ratio(text, name):.2f}' for name in VOCABULARIES)} |") not in page
    ]
    assert not missing, "\n".join(missing)
    assert f"{TOO_FEW} to {TOO_MANY}" in page


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "\ud800",
        "\x00",
        " ",
        "\n" * 9,
        "e\u0301",
        "=" * 500,
        "x" * 100_000,
        "\U0010ffff",
        "ß" * 50,
        "0" * 1000,
        "aB" * 500,
    ],
    ids=repr,
)
def test_a_text_is_estimated_between_one_token_and_its_bytes(text: str) -> None:
    for name in VOCABULARIES:
        tokens = formula.estimated(text, 1.33, rates(name))
        assert 1 <= tokens <= 2 * len(text.encode("utf-8", "surrogatepass"))


def test_tokens_per_word_sets_the_cost_of_a_word() -> None:
    def reckoned(tokens_per_word: float) -> int:
        return formula.estimated("one two six " * 1000, tokens_per_word, rates("o200k_base"))

    assert reckoned(2) - reckoned(1) == 3000


# Counting


def test_tokens_are_counted_if_the_vocabulary_is_present() -> None:
    for name in VOCABULARIES:
        estimator = TokenEstimator(encoding_name=name)
        for text in SAMPLES.values():
            assert estimator.estimate(text) == len(tiktoken.get_encoding(name).encode_ordinary(text))


def test_another_implementation_of_the_vocabularies_counts_the_same() -> None:
    for name in VOCABULARIES:
        count = other_implementation(name)
        for text in SAMPLES.values():
            assert TokenEstimator(encoding_name=name).estimate(text) == count(text)


def test_empty_text_has_no_tokens() -> None:
    assert TokenEstimator().estimate("") == 0
    assert TokenEstimator().fits("", 0)


def test_text_fits_if_it_has_no_more_tokens_than_allowed() -> None:
    estimator = TokenEstimator()
    tokens = estimator.estimate(SAMPLES["French"])
    assert estimator.fits(SAMPLES["French"], tokens)
    assert not estimator.fits(SAMPLES["French"], tokens - 1)


def test_text_like_a_special_token_is_counted_as_text() -> None:
    assert TokenEstimator().estimate("<|endoftext|>") > 3
    assert TokenEstimator().estimate_message({"role": "user", "content": "<|im_start|><|endofprompt|>"}) > 10


def test_lone_surrogates_are_counted() -> None:
    assert TokenEstimator().estimate("a \ud83d b \udc00") > 3
    assert TokenEstimator().estimate_message({"text": "\ud83d"}) > PER_MESSAGE


@pytest.mark.parametrize("unit", ["a", " ", "\n", "=", "中", "aA", "7", "\u0308", "ab "], ids=repr)
def test_a_megabyte_of_anything_is_counted_in_time_that_grows_with_its_length(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    for name in VOCABULARIES:
        estimator = TokenEstimator(encoding_name=name)
        started = time.thread_time()
        tokens = estimator.estimate(text)
        assert time.thread_time() - started < 10
        assert len(text) / 130 < tokens <= 2 * len(text)


def test_cutting_long_text_hardly_changes_its_count() -> None:
    for kind in ("English, chat", "Python", "Chinese"):
        text = SAMPLES[kind] * 200
        whole = len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))
        assert whole <= TokenEstimator().estimate(text) <= whole * 1.002


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-4o", "o200k_base"),
        ("openai:gpt-4", "cl100k_base"),
        ("gpt-4.1-mini", "o200k_base"),
        ("GPT-4-turbo", "cl100k_base"),
        ("azure:gpt-35-turbo", "cl100k_base"),
        ("openrouter:openai/gpt-4:free", "cl100k_base"),
        ("gateway/openai:gpt-5", "o200k_base"),
        ("openai:ft:gpt-3.5-turbo:acme::x1", "cl100k_base"),
        ("ollama:gpt-oss:20b", "o200k_base"),
        ("openai:o3-mini", "o200k_base"),
        ("anthropic:claude-sonnet-4-5", "o200k_base"),
        ("bedrock:us.anthropic.claude-3-5-sonnet-20241022-v2:0", "o200k_base"),
        ("google-gla:gemini-2.5-pro", "o200k_base"),
        ("test", "o200k_base"),
        (":/", "o200k_base"),
    ],
)
def test_the_model_decides_the_encoding(model: str, name: str) -> None:
    text = SAMPLES["Hindi"]
    assert tiktoken_loader.encoding_name_for(model) == name
    assert TokenEstimator(model=model).estimate(text) == TokenEstimator(encoding_name=name).estimate(text)
    assert formula.rates_for(None, model) == rates(name), "the formula takes the same model for the same"


def test_a_named_encoding_goes_before_that_of_the_model() -> None:
    both = TokenEstimator(encoding_name="cl100k_base", model="openai:gpt-4o")
    assert both.estimate(SAMPLES["Hindi"]) == TokenEstimator(model="gpt-4").estimate(SAMPLES["Hindi"])


# The object


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), True, "1.33", None])
def test_tokens_per_word_must_be_a_number_above_zero(rate: Any) -> None:
    with pytest.raises(ConfigurationError, match="tokens_per_word must be a number above 0, not"):
        TokenEstimator(tokens_per_word=rate)


@pytest.mark.parametrize("name", ["", 5, b"o200k_base"])
def test_invalid_names_of_encodings_and_models_are_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="encoding_name must be a name or None"):
        TokenEstimator(encoding_name=name)
    with pytest.raises(ConfigurationError, match="model must be a name or None"):
        TokenEstimator(model=name)


def test_download_must_be_true_or_false() -> None:
    download: Any = "no"
    with pytest.raises(ConfigurationError, match="download must be True or False, not 'no'"):
        TokenEstimator(download=download)


def test_an_unknown_encoding_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"'o200k' is not known.*cl100k_base,.*o200k_base"):
        TokenEstimator(encoding_name="o200k")


def test_an_estimator_is_a_value() -> None:
    estimator = TokenEstimator(tokens_per_word=1.5, model="openai:gpt-4o")
    assert repr(estimator).startswith("TokenEstimator(tokens_per_word=1.5, encoding_name=None, model='openai:gpt-4o', ")
    estimator.estimate("used")
    assert pickle.loads(pickle.dumps(estimator)) == estimator
    assert len({estimator, TokenEstimator(tokens_per_word=1.5, model="openai:gpt-4o"), TokenEstimator()}) == 2
    with pytest.raises(FrozenInstanceError):
        estimator.model = None  # type: ignore[misc]


def test_threads_share_an_estimator() -> None:
    estimator = TokenEstimator()
    texts = list(SAMPLES.values()) * 5
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(estimator.estimate, texts)) == [estimator.estimate(text) for text in texts]
