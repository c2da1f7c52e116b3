"""What texts, messages and turns cost, in tokens: for budgets, not for bills.

Texts are counted by :mod:`firefly_memory.tokens.tiktoken_loader`. Messages are counted as they are sent to a model
again: those of pydantic-ai, as objects or as the JSON that they become, dicts in the style of OpenAI or Anthropic,
strings, and any other JSON value, by its JSON text. pydantic-ai is not imported for that. The rules:

* :data:`PER_MESSAGE` tokens for each message, and :data:`PER_TOOL` for each tool call and each tool result, beside
  the name, the arguments and the result themselves. Ids, timestamps and metadata are not sent, or not as tokens.
* Images, sound, video and documents count by a table (:func:`file_tokens`), never by their base64 text.
* Thinking counts: several providers want it back. Where it is encrypted, its length says how much there is.
* pydantic-ai sends the instructions of the newest request only, and a stored turn is followed by a newer one.
* The usage that a response carries is not used: its input tokens are those of the whole prompt, tools and all
  earlier turns included, and its output tokens may contain thinking that is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import shown
from firefly_memory.tokens.attachments import IMAGE_IN_LOW_DETAIL, Count, bytes_tokens, file_tokens
from firefly_memory.tokens.tiktoken_loader import (
    EstimatedTokensWarning,
    counted,
    encoding_names,
    estimated,
    vocabulary_for,
)
from firefly_memory.validation import above_zero, require_extra, true_or_false

__all__ = ["PER_MESSAGE", "PER_TOOL", "EstimatedTokensWarning", "TokenEstimator", "file_tokens"]

PER_MESSAGE = 4
"""What a message costs beside its contents: its role, and where it begins and ends."""

PER_TOOL = 8
"""What a tool call or a tool result costs beside its name and contents: its id, and the JSON around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimator:
    """Counts tokens with tiktoken, or estimates them by a formula while it has no vocabulary or is not installed.

    ``encoding_name`` names one of tiktoken's encodings and needs the extra ``tokens``. Otherwise the encoding is that
    of ``model``, a name such as ``"openai:gpt-4o"``, and ``o200k_base`` for a model that tiktoken does not know, or
    none. ``tokens_per_word`` is what the formula reckons for a word. With ``download=True`` tiktoken may download a
    vocabulary that is not on this machine; otherwise it may do so only where ``TIKTOKEN_CACHE_DIR`` is set.

    Immutable, and safe to share between threads and over forks. Nothing is loaded before the first text is counted.
    Then a thread loads the vocabulary. Code in an event loop does not wait for it, and gets estimates meanwhile; other
    code waits up to three seconds, see :meth:`prepare`. If there is no vocabulary, there is one
    :class:`EstimatedTokensWarning` in the life of the process. Nobody is warned who has not installed tiktoken.
    """

    tokens_per_word: float = 1.33
    encoding_name: str | None = None
    model: str | None = None
    download: bool = False

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
        """Load the vocabulary now, and wait for it: at start-up, outside the event loop.

        Returns whether tokens are counted from now on; otherwise they are estimated.
        """
        return vocabulary_for(self.encoding_name, self.model).wait(timeout_seconds, download=self.download)

    def estimate(self, text: str) -> int:
        """The tokens of ``text``: 0 if it is empty, else at least 1. What looks like a special token is text."""
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
        """What ``message`` costs when it is sent by itself, with its own instructions if it has any."""
        return self.estimate_messages((message,))

    def estimate_messages(self, messages: Iterable[Any]) -> int:
        """What ``messages`` cost when they are sent together, in this order; 0 if there are none."""
        tokens = 0
        instructions = None
        for message in messages:
            tokens += _message(self.estimate, message)
            if _get(message, "kind") == "request":
                instructions = _get(message, "instructions") or instructions
        return tokens + _content(self.estimate, instructions)

    def estimate_turn(self, user_prompt: str, assistant_response: str, messages: Sequence[Any] = ()) -> int:
        """What a stored turn costs when it is replayed: its messages, or else prompt and response; at least 1."""
        if messages:
            return max(1, sum(_message(self.estimate, message) for message in messages))
        return 2 * PER_MESSAGE + self.estimate(user_prompt) + self.estimate(assistant_response)


def texts_of(messages: Iterable[Any]) -> list[str]:
    """What a model reads of messages, in order: what would be counted."""
    texts: list[str] = []

    def collect(text: str) -> int:
        texts.append(text)
        return 0

    for message in messages:
        _message(collect, message)
    return texts


def _message(count: Count, message: Any) -> int:
    if isinstance(message, str):
        return PER_MESSAGE + count(message)
    parts = _get(message, "parts")
    if isinstance(parts, (list, tuple)):  # pydantic-ai's
        return PER_MESSAGE + sum(_part(count, part) for part in parts)
    if not isinstance(message, dict) and hasattr(message, "role"):  # what a provider's SDK makes of the dict
        from pydantic_core import to_jsonable_python

        message = to_jsonable_python(message, serialize_unknown=True)
    if isinstance(message, dict) and "role" in message:
        return PER_MESSAGE + sum(_member(count, name, value) for name, value in message.items() if value)
    return PER_MESSAGE + _part(count, message)


_NOT_SENT = {
    *("role", "type", "id", "object", "index", "status", "model", "metadata", "usage", "annotations", "logprobs"),
    *("created", "created_at", "timestamp", "finish_reason", "stop_reason", "stop_sequence", "cache_control"),
}


def _member(count: Count, name: str, value: Any) -> int:
    """A member of a dict that is a message. Those of other people's formats count as data."""
    match name:
        case "content":
            return _content(count, value)
        case "tool_calls" if isinstance(value, list):
            return sum(_tool_call(count, call) for call in value)
        case "function_call":
            return _tool_call(count, value)
        case "tool_call_id":
            return PER_TOOL
    return 0 if name in _NOT_SENT else _data(count, value)


def _content(count: Count, content: Any) -> int:
    """Text, or parts, or one part, or nothing."""
    if isinstance(content, (list, tuple)):
        return sum(_part(count, part) for part in content)
    return 0 if content is None else _part(count, content)


def _part(count: Count, part: Any) -> int:
    known, members = _PARTS.get(_kind(part), (_data, ()))
    if _first(part, *members) is None:  # perhaps somebody else's kind of the same name
        known = _data
    return known(count, part)


def _data(count: Count, value: Any) -> int:
    return count(value if isinstance(value, str) else _json(value))


def _texts(count: Count, part: Any) -> int:
    return sum(_content(count, _get(part, name)) for name in ("content", "text", "refusal"))


def _tool_call(count: Count, call: Any) -> int:
    call = _first(call, "function", "custom") or call
    name, arguments = _first(call, "tool_name", "name"), _first(call, "args", "arguments", "input")
    return PER_TOOL + sum(_data(count, data) for data in (name, arguments) if data)


def _tool_result(count: Count, part: Any) -> int:
    """OpenAI's and Anthropic's: text or typed parts."""
    return PER_TOOL + _content(count, _first(part, "content", "output"))


def _tool_return(count: Count, part: Any) -> int:
    """pydantic-ai's: a file, or files in a list, are sent as files, all else as JSON."""
    content = _get(part, "content")
    tokens = PER_TOOL + _data(count, _get(part, "tool_name") or "")
    if _is_file(content):
        return tokens + _file(count, content)
    if isinstance(content, (list, tuple)) and any(map(_is_file, content)):
        return tokens + sum(_file(count, item) if _is_file(item) else _data(count, item) for item in content)
    return tokens if content is None else tokens + _data(count, content)


def _is_file(value: Any) -> bool:
    return _kind(value) in _SENT_AS_FILES and _first(value, "data", "url", "file_id") is not None


_RETRY_WORDS = 40  # what pydantic-ai writes around the message of a validator


def _retry(count: Count, part: Any) -> int:
    return _tool_return(count, part) + _RETRY_WORDS


_ENCRYPTED_CHARACTERS = 5  # of base64, for a token: four make three bytes, and a token has about four


def _thinking(count: Count, part: Any) -> int:
    """What can be read of it; if nothing can, what its length tells."""
    readable = sum(_content(count, _get(part, name)) for name in ("content", "thinking", "summary"))
    if readable:
        return readable
    encrypted = _first(part, "signature", "encrypted_content", "data")
    if encrypted is None:
        encrypted = _get(_get(part, "provider_details"), "encrypted_content")
    return len(encrypted) // _ENCRYPTED_CHARACTERS if isinstance(encrypted, str) else 0


def _speech(count: Count, part: Any) -> int:
    """What a user said is sent as sound if that was kept, otherwise as its transcript."""
    audio = _get(part, "audio") if _get(part, "speaker") == "user" else None
    return _content(count, _get(part, "transcript") if audio is None else audio)


_SENT_AS_FILES = {  # pydantic-ai's kinds, with the type of those that need not say it
    "image-url": "image/*",
    "audio-url": "audio/*",
    "video-url": "video/*",
    "document-url": "application/*",
    "binary": "application/*",
    "uploaded-file": "application/*",
}
_FILE_TYPES = _SENT_AS_FILES | {
    "image_url": "image/*",
    "input_image": "image/*",
    "image": "image/*",
    "image_generation_call": "image/*",
    "input_audio": "audio/*",
    "video_url": "video/*",
    "document": "application/*",
    "file": "application/*",
    "input_file": "application/*",
}


def _file(count: Count, part: Any) -> int:
    """A file in any of the forms that it is sent in: its bytes, a URL that has them, or a place where they are."""
    kind = _kind(part)
    where = _first(part, "source", "image_url", "input_audio", "video_url", "file") or part
    if (content := _get(where, "content")) is not None:  # the file of a response, a document made of parts
        return _content(count, content)
    if "low" in (_get(where, "detail"), _get(part, "detail"), _get(_get(part, "vendor_metadata"), "detail")):
        return IMAGE_IN_LOW_DETAIL
    media_type = _FILE_TYPES[kind]
    if kind == "input_audio":
        media_type = f"audio/{_get(where, 'format')}"
    elif not kind.endswith("-url"):  # those may not know it, and raise an error when asked
        media_type = str(_first(where, "media_type") or media_type)
    data = _first(where, "data", "file_data")
    if data is None:
        url = where if isinstance(where, str) else _first(where, "url", "file_url")
        data = url if isinstance(url, str) and url.startswith("data:") else None
    if _get(where, "type") == "text" and isinstance(data, str):
        return count(data)
    return bytes_tokens(count, media_type, data)


# How parts are counted, by their kind, provided that they have one of the members that this needs.
_PARTS: dict[str, tuple[Callable[[Count, Any], int], tuple[str, ...]]] = {
    **dict.fromkeys(
        [
            *("system-prompt", "user-prompt", "text", "text-content", "structured-content", "instruction-delta"),
            *("input_text", "output_text", "summary_text", "reasoning_text", "refusal"),
        ],
        (_texts, ("content", "text", "refusal")),
    ),
    **dict.fromkeys(
        [
            *("tool-call", "builtin-tool-call", "tool_use", "server_tool_use", "mcp_tool_use"),
            *("function", "custom", "function_call", "custom_tool_call"),
        ],
        (_tool_call, ("tool_name", "name", "function", "custom")),
    ),
    **dict.fromkeys(["tool-return", "builtin-tool-return"], (_tool_return, ("tool_name",))),
    **dict.fromkeys(["retry-prompt", "retry-feedback"], (_retry, ("content",))),
    **dict.fromkeys(
        ["tool_result", "function_call_output", "custom_tool_call_output"], (_tool_result, ("content", "output"))
    ),
    **dict.fromkeys(
        ["thinking", "redacted_thinking", "reasoning", "compaction"],
        (_thinking, ("content", "thinking", "summary", "data", "provider_details")),
    ),
    **dict.fromkeys(
        _FILE_TYPES,
        (
            _file,
            (
                *("url", "data", "file_id", "content", "source", "image_url", "input_audio", "video_url", "file"),
                *("file_data", "file_url", "result"),
            ),
        ),
    ),
    **dict.fromkeys(  # notes of pydantic-ai to itself
        ["cache-point", "instruction-baseline", "capability-load-delta", "model-settings-delta"],
        (lambda _count, _part: 0, ("part_kind", "kind")),
    ),
    "speech": (_speech, ("speaker",)),
}


def _kind(part: Any) -> str:
    kind = _first(part, "part_kind", "kind", "type")
    return kind if isinstance(kind, str) else ""


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _first(value: Any, *names: str) -> Any:
    for name in names:
        if (found := _get(value, name)) is not None:
            return found
    return None


def _json(value: Any) -> str:
    """The JSON text as pydantic-ai sends it; of what cannot be written so, something about as long."""
    from pydantic_core import to_json

    try:
        return to_json(value, inf_nan_mode="constants", bytes_mode="base64", serialize_unknown=True).decode()
    except ValueError:
        return repr(value)
