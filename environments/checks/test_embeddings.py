"""Search by meaning where only the extra ``embeddings`` is installed, in a process that may open no socket."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys

def refuse_sockets(event, _):
    if event.startswith("socket."):
        raise ConnectionError(f"there is no network: {event}")

sys.addaudithook(refuse_sockets)

from firefly_memory import SQLiteStore
from firefly_memory.knowledge import KnowledgeStore

with SQLiteStore(sys.argv[1]) as store:
    knowledge = KnowledgeStore(store)
    knowledge.add("notes", ["We bought a dog", "The invoice is overdue"])
    for mode in ("semantic", "hybrid"):
        print(knowledge.search("notes", "the puppy", 1, mode)[0].text)
"""


def test_the_default_embedder_works_without_a_network(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path / "memory.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (["We bought a dog"] * 2, "")
