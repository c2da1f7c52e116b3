"""Messages of feeds while the answers of the server get lost."""

from __future__ import annotations

import asyncio
from typing import Any

from firefly_memory import EntryStore
from firefly_memory.errors import ErasedError
from firefly_memory.feeds.log import FEED_LOG, Feed, feed_identity
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.identifiers import stored_text
from firefly_memory.tombstones.log import owner_identity
from tests.support.lost_reply_cases import Act, Meeting, Uses
from tests.support.turns import NOW


async def _append(uses: Uses, *contents: str, owner: str | None = None) -> int | None:
    form = MessageForm(uses.log_of(FEED_LOG))
    messages = [form.new({"content": content, "agent_key": "a"}) for content in contents]
    return await uses.log_of(FEED_LOG).append(stored_text(uses.name), messages, owner)


async def messages(uses: Uses) -> Any:
    """The numbers and contents of the messages, and the facts about the feed."""
    name, form = stored_text(uses.name), MessageForm(uses.log_of(FEED_LOG))
    items = [form.item(name, each) for each in await uses.log_of(FEED_LOG).after(name, 0, None)]
    feed = await uses.log_of(FEED_LOG).feed(name)
    facts = [] if feed is None else [(feed.newest, feed.dropped, feed.owner)]
    return [*facts, *[(each.number, each.message["content"]) for each in items]]


async def three_messages(uses: Uses) -> None:
    assert await _append(uses, "1", "2", "3") == 3


async def append_message(uses: Uses) -> Any:
    return await _append(uses, "4")


async def append_messages(uses: Uses) -> Any:
    return await _append(uses, "4", "5", "6")


async def append_first_message_of_an_owner(uses: Uses) -> Any:
    return await _append(uses, "1", "2", owner="Ann")


async def append_as_somebody_else(uses: Uses) -> Any:
    return await _append(uses, "4", owner="Ann")


async def append_refused_message(uses: Uses) -> Any:
    try:
        return await _append(uses, "1")
    except ErasedError:
        return "refused"


async def erased(uses: Uses) -> None:
    identities = [owner_identity(uses.name), feed_identity(stored_text(uses.name))]
    await uses.tombstones.add(identities, uses.name, NOW)


async def begin_feed(uses: Uses) -> Any:
    return await uses.log_of(FEED_LOG).begin(Feed(stored_text(uses.name), 7, 7, "Ann", NOW, NOW))


async def drop_messages(uses: Uses) -> Any:
    return await uses.log_of(FEED_LOG).drop(stored_text(uses.name), 2)


async def delete_feed(uses: Uses) -> Any:
    return await uses.log_of(FEED_LOG).delete(stored_text(uses.name))


async def append_another(uses: Uses) -> None:
    assert await _append(uses, "the other's") is not None


async def reading(store: EntryStore, *, is_bound: bool) -> None:
    log = store.suspending.log(FEED_LOG)
    new = MessageForm(log).new
    for notify in (False, True):
        calls = [log.append("job", [new({"type": "task", "agent_key": f"{n}"})], "Ann", notify) for n in range(3)]
        together = [asyncio.gather(*calls)] if not is_bound else calls
        for each in together:
            await each
    for limit in (None, 2):
        for which in ("conversation", "global"):
            assert await log.newest("job", which, (), limit) == []
        for keys in (["1"], ["1", "2"]):
            assert await log.newest("job", "agents", keys, limit)
        assert await log.after("job", 1, limit)
    assert await log.first_since("job", NOW) == 1
    assert [each.location for each in await log.of_owner("Ann", 9, "")][-1] == "job"
    assert await log.page(1, "")
    assert (await log.sizes()).messages >= 6


READINGS = [reading]

ERASURES = [Act(append_refused_message, messages, erased, doubts="never")]

ACTS = [
    Act(append_message, messages, three_messages, doubts="never"),
    Act(append_messages, messages, three_messages, doubts="never"),
    Act(append_first_message_of_an_owner, messages, doubts="never"),
    Act(append_as_somebody_else, messages, three_messages, doubts="never"),
    *ERASURES,
    Act(begin_feed, messages, doubts="never"),
    Act(drop_messages, messages, three_messages, doubts="always"),
    Act(delete_feed, messages, three_messages, doubts="always"),
]

_AFTER = [(5, 0, None), (1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "the other's")]

MEETINGS = [
    Meeting(append_message, append_another, messages, _AFTER, three_messages),
    Meeting(delete_feed, append_another, messages, [(1, 0, None), (1, "the other's")], three_messages),
]
