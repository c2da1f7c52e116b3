"""The tokens of texts, messages and turns: for budgets, not for bills.

:mod:`firefly_memory.tokens.tiktoken_loader` counts texts, and :mod:`firefly_memory.tokens.formula` estimates them.
:mod:`firefly_memory.messages.shapes` reads messages. Messages are counted as they are sent to a model again:
pydantic-ai's, as objects or as the JSON that they become, dicts in the style of OpenAI or Anthropic, strings, and any
other JSON value, by its JSON text. pydantic-ai is not imported for that. The rules:

* :data:`PER_MESSAGE` tokens for each message, and :data:`PER_TOOL` for each tool call and each tool result, in addition
  to the name, the arguments and the result. Ids, timestamps and metadata are not sent, or not as tokens.
* Images, sound, video and documents count by a table (:func:`file_tokens`), never by their base64 text.
* Thinking counts: several providers want it back. Encrypted thinking counts by its length.
* pydantic-ai sends only the instructions of the newest request, and a stored turn is followed by a newer one.
* The usage that a response reports is not used: its input tokens are those of the whole prompt, with all tools and
  earlier turns, and its output tokens may contain thinking that is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.messages.parts import Part, Sort, call_of, contents_of, file_of, get, result_parts, thinking_of
from firefly_memory.messages.shapes import instructions_of, parts_of
from firefly_memory.reprs import shown
from firefly_memory.tokens.attachments import IMAGE_IN_LOW_DETAIL, Count, bytes_tokens, file_tokens
from firefly_memory.tokens.formula import estimated
from firefly_memory.tokens.tiktoken_loader import EstimatedTokensWarning, counted, encoding_names, vocabulary_for
from firefly_memory.validation import above_zero, require_extra, true_or_false

__all__ = ["PER_MESSAGE", "PER_TOOL", "EstimatedTokensWarning", "TokenEstimator", "file_tokens"]

PER_MESSAGE = 4
"""The tokens of a message in addition to its contents: its role, its beginning and its end."""

PER_TOOL = 8
"""The tokens of a tool call or tool result in addition to its name and contents: its id, and the JSON around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimator:
    """Counts tokens with tiktoken. Estimates them by a formula if tiktoken has no vocabulary or is not installed.

    ``encoding_name`` names one of tiktoken's encodings and needs the extra ``tokens``. Without it, ``model``, a name
    such as ``"openai:gpt-4o"``, decides on the encoding. The encoding is ``o200k_base`` if tiktoken does not know the
    model, or there is none. The formula counts ``tokens_per_word`` for a word. With ``download=True`` tiktoken may
    download a vocabulary that is not on this machine; without, only if ``TIKTOKEN_CACHE_DIR`` is set.

    An estimator is immutable. Threads and forked processes may share it. The first text that is counted starts a thread
    that loads the vocabulary. Code in an event loop does not wait for the thread, and gets estimates until it has
    ended; other code waits up to three seconds, see :meth:`prepare`. If no vocabulary can be loaded, the process issues
    one :class:`EstimatedTokensWarning`. There is no warning if tiktoken is not installed.
    """

    tokens_per_word: float = 1.33
    """How many tokens the formula counts for a word."""
    encoding_name: str | None = None
    """One of tiktoken's encodings."""
    model: str | None = None
    """The name of a model, which decides on the encoding if there is no ``encoding_name``."""
    download: bool = False
    """Whether tiktoken may download a vocabulary."""

    def __post_init__(self) -> None:
        rate: Any = self.tokens_per_word
        above_zero("tokens_per_word", rate)
        for name, value in (("encoding_name", self.encoding_name), ("model", self.model)):
            if value is not None and not (isinstance(value, str) and value):
                raise ConfigurationError(f"{name} must be a name or None, not {shown(value)}")
        true_or_false("download", self.download)
        if self.encoding_name is not None:
            require_extra(f"TokenEstimator(encoding_name={self.encoding_name!r})", "tiktoken", "tokens")
            if self.encoding_name not in (names := encoding_names()):
                raise ConfigurationError(
                    f"encoding_name {self.encoding_name!r} is not known; tiktoken has: {', '.join(names)}"
                )

    def prepare(self, timeout_seconds: float = 30.0) -> bool:
        """Load the vocabulary now and wait for it. Call this at start-up, outside the event loop.

        Returns whether tokens are counted from now on. Otherwise they are estimated.
        """
        return vocabulary_for(self.encoding_name, self.model).wait(timeout_seconds, download=self.download)

    def estimate(self, text: str) -> int:
        """The tokens of ``text``: 0 if it is empty, else at least 1. The names of special tokens count as text."""
        if not text:
            return 0
        vocabulary = vocabulary_for(self.encoding_name, self.model)
        encode = vocabulary.encoder(download=self.download)
        if encode is None:
            return estimated(text, self.tokens_per_word, vocabulary.rates)
        return counted(text, encode)

    def fits(self, text: str, max_tokens: int) -> bool:
        """Whether ``text`` has at most ``max_tokens`` tokens."""
        return self.estimate(text) <= max_tokens

    def estimate_message(self, message: Any) -> int:
        """The tokens of ``message`` if it is sent alone, with its own instructions if it has any."""
        return self.estimate_messages((message,))

    def estimate_messages(self, messages: Iterable[Any]) -> int:
        """The tokens of ``messages`` if they are sent together, in this order; 0 if there are none."""
        tokens = 0
        instructions = None
        for message in messages:
            tokens += _message(self.estimate, message)
            instructions = instructions_of(message) or instructions
        return tokens + _sum(self.estimate, contents_of(instructions))

    def estimate_turn(self, user_prompt: str, assistant_response: str, messages: Sequence[Any] = ()) -> int:
        """The tokens of a stored turn when it is replayed: its messages, or else prompt and response; at least 1."""
        if messages:
            return max(1, sum(_message(self.estimate, message) for message in messages))
        return 2 * PER_MESSAGE + self.estimate(user_prompt) + self.estimate(assistant_response)


def texts_of(messages: Iterable[Any]) -> list[str]:
    """The texts that are counted when messages are sent to a model, in order."""
    texts: list[str] = []

    def collect(text: str) -> int:
        texts.append(text)
        return 0

    for message in messages:
        _message(collect, message)
    return texts


def _message(count: Count, message: Any) -> int:
    return PER_MESSAGE + _sum(count, parts_of(message))


def _sum(count: Count, parts: list[Part]) -> int:
    tokens = 0
    for sort, part in parts:
        tokens += count(part) if sort == "text" else _COUNTED[sort](count, part)
    return tokens


def _data(count: Count, value: Any) -> int:
    return count(value if isinstance(value, str) else _json(value))


def _call(count: Count, part: Any) -> int:
    call = call_of(part)
    return PER_TOOL + sum(_data(count, data) for data in (call.name, call.arguments) if data)


def _answered_call(_count: Count, _call_id: Any) -> int:
    return PER_TOOL


def _result(count: Count, part: Any) -> int:
    return PER_TOOL + _sum(count, result_parts(part, "result"))


def _return(count: Count, part: Any) -> int:
    """pydantic-ai sends the name of the tool with the result."""
    return PER_TOOL + _data(count, get(part, "tool_name") or "") + _sum(count, result_parts(part, "return"))


_RETRY_WORDS = 40  # the tokens of the text that pydantic-ai writes around the message of a validator


def _retry(count: Count, part: Any) -> int:
    return _return(count, part) + _RETRY_WORDS


_ENCRYPTED_CHARACTERS = 5  # characters of base64 for a token: four characters are three bytes; a token has about four


def _thinking(count: Count, part: Any) -> int:
    """The tokens of the readable text; if there is none, an estimate by the length of the encrypted text."""
    thinking = thinking_of(part)
    return _sum(count, thinking.parts) or len(thinking.encrypted or "") // _ENCRYPTED_CHARACTERS


def _file(count: Count, part: Any) -> int:
    file = file_of(part)
    if file.is_low_detail:
        return IMAGE_IN_LOW_DETAIL
    return bytes_tokens(count, file.media_type, file.data) if file.text is None else count(file.text)


_COUNTED: dict[Sort, Callable[[Count, Any], int]] = {
    "data": _data,
    "call": _call,
    "answered call": _answered_call,
    "result": _result,
    "return": _return,
    "retry": _retry,
    "thinking": _thinking,
    "file": _file,
}
"""How the parts that are not text are counted."""


def _json(value: Any) -> str:
    """The JSON text as pydantic-ai sends it. A value that JSON cannot express counts by its ``repr``."""
    from pydantic_core import to_json

    try:
        return to_json(value, inf_nan_mode="constants", bytes_mode="base64", serialize_unknown=True).decode()
    except ValueError:
        return repr(value)
