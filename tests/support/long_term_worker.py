"""A process that writes facts of a person until the person is erased."""

from __future__ import annotations

import json
import sys

from firefly_memory import ErasedError, connect
from firefly_memory.longterm import MemoryService
from tests.support.workers import Worker


def start(url: str, options: dict[str, str], *people: str) -> Worker:
    """It prints ``ready`` when it has written something of each, and at the end how much it wrote of the last one."""
    return Worker(__name__, url, json.dumps(options), *people)


def main() -> None:
    url, options, *people = sys.argv[1:]
    with connect(url, **json.loads(options)) as store:
        memory, written = MemoryService(store, embedder=None), 0
        left = people
        while left:
            for person in left:
                try:
                    channel, _, known_as = person.partition(":")
                    memory.get_or_create_user(channel, known_as, f"name of {person}")
                    memory.set_fact("colour", [person, written], scope="user", user_id=person)
                    memory.set_fact("told", [person, written], user_id=person)
                    memory.update_preferences(person, {f"preference {written % 9}": person})
                    memory.count_conversation(person)
                except ErasedError:
                    left = [each for each in left if each != person]
            written += 1
            if written == 1:
                print("ready", flush=True)
    print(written, flush=True)
