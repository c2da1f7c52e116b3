"""How the parts of messages are written: texts, tool calls, tool results, thinking and files, of every provider.

A new kind of part is a line in ``_KINDS``; if it is a tool call or a tool result, also a line in :data:`TOOL_IDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Sort = Literal["text", "data", "call", "result", "return", "retry", "answered call", "thinking", "file"]
"""What a part of a message is:

=============  ====================================================================================
text           text to read: a ``str``
data           any other value; it is sent as text or as JSON
call           a tool call
result         a tool result of OpenAI or Anthropic: text or parts
return         a tool result of pydantic-ai: a file, files in a list, or a value that is sent as JSON
retry          pydantic-ai's request to try again; it answers a tool call if it has a ``tool_name``
answered call  the id of the tool call that the whole message answers, as in OpenAI's chat
thinking       the thinking of a model
file           an image, sound, a video or a document
=============  ====================================================================================
"""

Part = tuple[Sort, Any]


class ToolCall(NamedTuple):
    """A call of a tool. ``arguments`` is JSON text, or a value, as the provider writes it."""

    id: str | None
    name: Any
    arguments: Any


class ToolResult(NamedTuple):
    """The result of a tool call. OpenAI and Anthropic do not repeat the name of the tool."""

    id: str | None
    name: Any
    content: Any
    is_error: bool


class Thinking(NamedTuple):
    """The readable parts of a thinking part, and its encrypted form."""

    parts: list[Part]
    encrypted: str | None


class File(NamedTuple):
    """A file: its data, or where it is."""

    media_type: str
    """``image/*`` or the like if the part does not say more."""
    data: Any
    """Bytes, base64 text, a data URL, or nothing if the file is elsewhere."""
    url: str | None
    text: str | None
    """The contents of a document that is written as text."""
    is_low_detail: bool
    """Whether the model sees an image at low resolution."""


def contents_of(content: Any) -> list[Part]:
    """What a model is sent of the ``content`` of a message or part: text, parts, one part, or nothing."""
    parts: list[Part] = []
    add_contents(parts, content)
    return parts


def add_contents(parts: list[Part], content: Any) -> None:
    """Add the ``content`` of a message or part: text, parts, one part, or nothing."""
    if isinstance(content, str):
        parts.append(("text", content))
    elif isinstance(content, (list, tuple)):
        for part in content:
            add_part(parts, part)
    elif content is not None:
        add_part(parts, content)


def add_part(parts: list[Part], part: Any) -> None:
    """Add a part, or what is inside it."""
    if isinstance(part, str):
        parts.append(("text", part))
        return
    kind = _KINDS.get(kind_of(part))
    if kind is None or first(part, kind.members) is None:  # another format may use the same name
        parts.append(("data", part))
    elif isinstance(kind.reads_as, str):
        parts.append((kind.reads_as, part))
    else:
        kind.reads_as(parts, part)


_TEXTS = ("content", "text", "refusal")


def _add_texts(parts: list[Part], part: Any) -> None:
    for name in _TEXTS:
        add_contents(parts, get(part, name))


def _add_speech(parts: list[Part], part: Any) -> None:
    """What a user said is sent as sound if the sound was kept, otherwise as its transcript."""
    audio = get(part, "audio") if get(part, "speaker") == "user" else None
    add_contents(parts, get(part, "transcript") if audio is None else audio)


def _add_file(parts: list[Part], part: Any) -> None:
    """A file, or what is inside: the file of a response, the parts of a document."""
    content = get(_source(part), "content")
    if content is None:
        parts.append(("file", part))
    else:
        add_contents(parts, content)


def _add_nothing(parts: list[Part], part: Any) -> None:
    """A note of pydantic-ai for itself, which is not sent."""


def thinking_of(part: Any) -> Thinking:
    """The thinking that a part is."""
    parts: list[Part] = []
    for name in ("content", "thinking", "summary"):
        add_contents(parts, get(part, name))
    encrypted = first(part, ("signature", "encrypted_content", "data"))
    if encrypted is None:
        encrypted = get(get(part, "provider_details"), "encrypted_content")
    return Thinking(parts, encrypted if isinstance(encrypted, str) else None)


# Tool calls and tool results


TOOL_IDS = {
    "tool-call": (True, "tool_call_id"),
    "tool_use": (True, "id"),
    "function_call": (True, "call_id"),
    "custom_tool_call": (True, "call_id"),
    "tool-return": (False, "tool_call_id"),
    "retry-prompt": (False, "tool_call_id"),
    "tool_result": (False, "tool_use_id"),
    "function_call_output": (False, "call_id"),
    "custom_tool_call_output": (False, "call_id"),
}
"""The kinds of tool calls (``True``) and tool results, and the member that has the id of the call.

The tools that a provider runs itself are not in the table: the message of such a call also contains the result.
"""


def call_of(part: Any, call_id: str | None = None) -> ToolCall:
    """The tool call that a part is."""
    function = first(part, ("function", "custom")) or part
    name, arguments = first(function, ("tool_name", "name")), first(function, ("args", "arguments", "input"))
    return ToolCall(call_id, name, arguments)


def result_of(part: Any, call_id: str | None = None) -> ToolResult:
    """The tool result that a part, or a message, is."""
    name, content = first(part, ("tool_name", "name")), first(part, ("content", "output"))
    is_error = (
        kind_of(part) == "retry-prompt"
        or get(part, "is_error") is True
        or get(part, "status") == "error"
        or get(part, "outcome") not in (None, "success")
    )
    return ToolResult(call_id, name, content, is_error)


def result_parts(part: Any, sort: Sort) -> list[Part]:
    """What a model is sent of a tool result, without the name of the tool."""
    if sort == "result":
        return contents_of(first(part, ("content", "output")))
    content = get(part, "content")
    if content is None:
        return []
    is_list = isinstance(content, (list, tuple)) and any(map(_is_file, content))
    parts: list[Part] = []
    for item in content if is_list else [content]:
        if _is_file(item):
            _add_file(parts, item)
        else:
            parts.append(("data", item))
    return parts


# Files


MEDIA_TYPES_OF_PYDANTIC_AI = {
    "image-url": "image/*",
    "audio-url": "audio/*",
    "video-url": "video/*",
    "document-url": "application/*",
    "binary": "application/*",
    "uploaded-file": "application/*",
}
"""The kinds of pydantic-ai's files, and the media type of a file that does not say it."""

_MEDIA_TYPES = MEDIA_TYPES_OF_PYDANTIC_AI | {
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

_SOURCES = ("source", "image_url", "input_audio", "video_url", "file")


def file_of(part: Any) -> File:
    """The file that a part is: its bytes, a URL that contains them, or a place where they are."""
    source = _source(part)
    data = first(source, ("data", "file_data"))
    url = source if isinstance(source, str) else first(source, ("url", "file_url"))
    url = url if isinstance(url, str) else None
    if data is None and url is not None and url.startswith("data:"):
        data = url
    text = data if isinstance(data, str) and get(source, "type") == "text" else None
    details = (get(source, "detail"), get(part, "detail"), get(get(part, "vendor_metadata"), "detail"))
    return File(_media_type(part, source), data, url, text, "low" in details)


def _media_type(part: Any, source: Any) -> str:
    kind = kind_of(part)
    if kind == "input_audio":
        return f"audio/{get(source, 'format')}"
    if kind.endswith("-url"):  # pydantic-ai's URLs may not know their media type, and raise an error when asked
        return _MEDIA_TYPES[kind]
    return str(get(source, "media_type") or _MEDIA_TYPES[kind])


def _source(part: Any) -> Any:
    return first(part, _SOURCES) or part


def _is_file(value: Any) -> bool:
    return kind_of(value) in MEDIA_TYPES_OF_PYDANTIC_AI and first(value, ("data", "url", "file_id")) is not None


# Kinds


class _Kind(NamedTuple):
    """How the parts of a kind are read, if they have one of the members that are needed for that."""

    reads_as: Sort | Callable[[list[Part], Any], None]
    members: tuple[str, ...]


_NOTES = ("cache-point", "instruction-baseline", "capability-load-delta", "model-settings-delta")

SYSTEM_KINDS = {"system-prompt", "instruction-delta", *_NOTES} - {"cache-point"}
"""The kinds of pydantic-ai's parts by which the program, not the user, instructs the model."""

_TOOL_NAMES = ("tool_name", "name", "function", "custom")
_FILES = (*_SOURCES, "url", "data", "file_id", "content", "file_data", "file_url", "result")

_KINDS: dict[str, _Kind] = {
    kind: reading
    for reading, kinds in {
        _Kind(_add_texts, _TEXTS): (
            *("system-prompt", "user-prompt", "text", "text-content", "structured-content", "instruction-delta"),
            *("input_text", "output_text", "summary_text", "reasoning_text", "refusal"),
        ),
        _Kind("call", _TOOL_NAMES): (
            *("tool-call", "builtin-tool-call", "tool_use", "server_tool_use", "mcp_tool_use"),
            *("function", "custom", "function_call", "custom_tool_call"),
        ),
        _Kind("return", ("tool_name",)): ("tool-return", "builtin-tool-return"),
        _Kind("retry", ("content",)): ("retry-prompt", "retry-feedback"),
        _Kind("result", ("content", "output")): ("tool_result", "function_call_output", "custom_tool_call_output"),
        _Kind("thinking", ("content", "thinking", "summary", "data", "provider_details")): (
            *("thinking", "redacted_thinking", "reasoning", "compaction"),
        ),
        _Kind(_add_file, _FILES): _MEDIA_TYPES,
        _Kind(_add_speech, ("speaker",)): ("speech",),
        _Kind(_add_nothing, ("part_kind", "kind")): _NOTES,
    }.items()
    for kind in kinds
}


def kind_of(part: Any) -> str:
    """The kind that a part says it is; the empty text if it says none."""
    kind = first(part, ("part_kind", "kind", "type"))
    return kind if isinstance(kind, str) else ""


def get(value: Any, name: str) -> Any:
    """A member of a dict, or an attribute; ``None`` if it is missing."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def first(value: Any, names: tuple[str, ...]) -> Any:
    """The first of some members that is not ``None``."""
    if isinstance(value, dict):
        for name in names:
            if (found := value.get(name)) is not None:
                return found
        return None
    for name in names:  # not through get(): this is the innermost loop of counting tokens
        if (found := getattr(value, name, None)) is not None:
            return found
    return None
