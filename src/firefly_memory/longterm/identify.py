"""``identify_user``: who speaks, as a step of a graph. It is no tool of a model, which could name anybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import MAX_LENGTH, new_entry_id
from firefly_memory.longterm.log import Met
from firefly_memory.longterm.people_flows import Context, PeopleFlows, stranger
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.tools import checked_service

Identified: TypeAlias = dict[str, Any]


def identify_user(service: MemoryService) -> Callable[[Mapping[str, Any]], Identified]:
    """A function for a step of a graph: ``identify({"trigger": …, "node_outputs": …, "execution_id": …})``.

    It finds out who speaks, stores a person who was never seen, counts the conversation, and returns ``user_id``,
    ``user_context``, ``is_new_user`` and ``_state_patch``: ``{"user_context": …}`` for the state of the graph, with
    ``canonical_id``, ``display_name`` and ``channel`` in it as well.

    The trigger is the payload, unless a connected node has a ``trigger_input`` among its outputs; the ``channel`` of a
    node wins over that of the payload. ``message.from`` is somebody on Telegram. With a ``webhook_id``, the ``user_id``
    or else the ``email`` names a person of the channel ``webhook``. With the ``source`` ``"chat"`` or ``"manual"``,
    this is the channel of the ``user_id``. In other payloads ``channel`` and ``user_id`` name the person.

    Without an id, or with one that cannot be stored, it is nobody: ``user_id`` is ``None``, the context is that of a
    stranger, and nothing is stored. An execution that is repeated with its ``execution_id`` is not counted again,
    unless the person began another one meanwhile. ``ErasedError`` for a person who was erased; errors of the database
    are raised.
    """
    people = checked_service("identify_user", service)._blocking_people  # noqa: SLF001 - a part of the service
    return lambda state: run_without_loop(_identified(people, state))


def async_identify_user(service: MemoryService) -> Callable[[Mapping[str, Any]], Awaitable[Identified]]:
    """A function for a step of a graph: ``identify({"trigger": …, "node_outputs": …, "execution_id": …})``.

    It finds out who speaks, stores a person who was never seen, counts the conversation, and returns ``user_id``,
    ``user_context``, ``is_new_user`` and ``_state_patch``: ``{"user_context": …}`` for the state of the graph, with
    ``canonical_id``, ``display_name`` and ``channel`` in it as well.

    The trigger is the payload, unless a connected node has a ``trigger_input`` among its outputs; the ``channel`` of a
    node wins over that of the payload. ``message.from`` is somebody on Telegram. With a ``webhook_id``, the ``user_id``
    or else the ``email`` names a person of the channel ``webhook``. With the ``source`` ``"chat"`` or ``"manual"``,
    this is the channel of the ``user_id``. In other payloads ``channel`` and ``user_id`` name the person.

    Without an id, or with one that cannot be stored, it is nobody: ``user_id`` is ``None``, the context is that of a
    stranger, and nothing is stored. An execution that is repeated with its ``execution_id`` is not counted again,
    unless the person began another one meanwhile. ``ErasedError`` for a person who was erased; errors of the database
    are raised.
    """
    people = checked_service("async_identify_user", service)._suspending_people  # noqa: SLF001 - as above

    async def identify(state: Mapping[str, Any]) -> Identified:
        return await _identified(people, state)

    return identify


class Speaker(NamedTuple):
    """Who a payload says it is from."""

    channel: str | None
    id: str | None
    name: str | None = None


def speaker_in(state: Any) -> Speaker:
    """Who speaks in the state of a graph. A part of another type is as good as none."""
    outputs = [each for each in _mapping(_mapping(state).get("node_outputs")).values() if isinstance(each, Mapping)]
    inputs = (_mapping(each.get("trigger_input")) for each in outputs)
    payload = next(filter(None, inputs), None) or _mapping(_mapping(state).get("trigger"))
    said = _said(payload)
    channel = next(filter(None, (_word(each.get("channel")) for each in outputs)), None)
    return said if channel is None else said._replace(channel=channel)


def _said(payload: Mapping[str, Any]) -> Speaker:
    sender = _mapping(_mapping(payload.get("message")).get("from"))
    if "id" in sender:
        return Speaker("telegram", _text(sender["id"]), _name(sender.get("first_name"), sender.get("last_name")))
    user_id, name = _text(payload.get("user_id")), _name(payload.get("user_name"))
    if "webhook_id" in payload:
        return Speaker("webhook", user_id or _text(payload.get("email")), name)
    source = payload.get("source")
    if isinstance(source, str) and source in ("manual", "chat"):
        return Speaker(source, user_id, name)
    return Speaker(_word(payload.get("channel")), user_id, name)


async def _identified(people: PeopleFlows, state: Any) -> Identified:
    speaker = speaker_in(state)
    met = await _met(people, speaker)
    if met is None:
        return _answer(stranger(None), speaker.channel)
    mark = _mark(_mapping(state).get("execution_id"))
    # A write with the same id changes nothing: an execution that is repeated is not counted again.
    row = await people.counted(met.row.word, mark or new_entry_id()) or met.row
    is_repeated = mark is not None and met.row.written_by == mark
    is_new = met.is_new or (is_repeated and met.row.total_conversations == 1)
    return _answer(await people.context_of(row, is_new=is_new), speaker.channel)


async def _met(people: PeopleFlows, speaker: Speaker) -> Met | None:
    if speaker.channel is None or speaker.id is None:
        return None
    with suppress(InvalidEntryError):  # no such person can be stored, so there is none
        return await people.meet(speaker.channel, speaker.id, speaker.name)
    return None


def _answer(context: Context, channel: str | None) -> Identified:
    found = {"canonical_id": context["user_id"], "display_name": context.get("display_name"), "channel": channel}
    return {
        "user_id": context["user_id"],
        "user_context": context,
        "is_new_user": context["is_new"],
        "_state_patch": {"user_context": {**context, **found}},
    }


def _mark(execution_id: Any) -> str | None:
    """What a person's row notes of an execution; of any length, it stays short."""
    text = _text(execution_id)
    return None if text is None else f"execution {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _word(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value.strip() else None


def _text(value: Any) -> str | None:
    """An id as text; ``None`` for what is none."""
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        with suppress(ValueError):  # more digits than Python writes
            return str(value)
    return _word(value)


def _name(*parts: Any) -> str | None:
    return " ".join(part.strip() for part in map(_word, parts) if part is not None)[:MAX_LENGTH] or None
