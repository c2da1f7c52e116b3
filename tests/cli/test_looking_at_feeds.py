"""``ls``, ``show``, ``rm`` and ``stats`` with the messages of agents, on every backend that has a URL."""

from __future__ import annotations

import json

import pytest

from firefly_memory import MemoryEntry
from firefly_memory.cli.exits import Exit
from firefly_memory.testing.rules.feed_stores import message_store
from tests.support.stores_by_options import Options, opened, ran


def test_feeds_and_their_messages_are_listed_shown_and_deleted(
    options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    if options[1].startswith("file"):
        with opened(options) as files:
            files.save("notes", MemoryEntry(content=1))
        _, said = ran(capsys, ["ls", "feeds"], options, Exit.FAILED)
        assert "messages of agents cannot be kept in FileStore" in said
        return
    with opened(options) as store:
        feeds = message_store(store)
        for location in ("job/1", "job/2"):
            feeds.append_many(location, [{"type": "task", "content": n, "agent_key": "a"} for n in range(3)], "ann")
    (titles, *rows), _ = ran(capsys, ["ls", "feeds", "--where", "owner=ann"], options)
    assert titles.split() == ["id", "owner", "messages", "created_at", "updated_at"]
    assert [row.split()[:3] for row in rows] == [["job/1", "ann", "3"], ["job/2", "ann", "3"]]
    _, said = ran(capsys, ["ls", "feed-messages"], options, Exit.USAGE)
    assert "location" in said
    lines, said = ran(capsys, ["ls", "feed-messages", "--where", "location=job/1", "--limit", "2", "--json"], options)
    assert [json.loads(line).get("id") for line in lines] == ["job%2F1/1", "job%2F1/2", None]
    (line,), _ = ran(capsys, ["show", "feed-messages", "job%2F1/3", "--json"], options)
    assert json.loads(line)["message"] == {"type": "task", "content": 2, "agent_key": "a"}
    _, said = ran(capsys, ["rm", "feed-messages", "job%2F1/3", "--yes"], options, Exit.FAILED)
    assert "a message goes with its feed" in said
    ran(capsys, ["rm", "feeds", "job/1", "--yes"], options)
    (line,), _ = ran(capsys, ["stats", "--json"], options)
    counted = {each["kind"]: each["rows"] for each in json.loads(line)["kinds"]}
    assert (counted["feeds"], counted["feed-messages"]) == (1, 3)
