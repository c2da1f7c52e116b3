"""The examples run as their readers run them; the server example runs over real HTTP."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConversationMemory, SQLiteStore, connect
from tests.support import command_line
from tests.support.backends import Place
from tests.support.databases import empty_postgresql

pytestmark = pytest.mark.thorough

EXAMPLES = Path(__file__).parents[2] / "examples"


def environment(model: str | None = None) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name != "FIREFLY_EXAMPLE_MODEL"}
    return given if model is None else {**given, "FIREFLY_EXAMPLE_MODEL": model}


def run(name: str, *arguments: object, model: str | None = None) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, env=environment(model), capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_demonstration_kills_a_process_and_goes_on_in_another(tmp_path: Path, place: Place) -> None:
    printed = run("demo.py", tmp_path / "memory.db")
    first, second = re.findall(r"^Process (\d+) ", printed, re.MULTILINE)
    assert first != second
    before, after = printed.split(f"kill -9 {first}")
    assert before.rstrip().endswith("You need 4 times 89.90 EUR, together")
    assert (before.count("calls the tool"), after.count("calls the tool")) == (1, 0)
    assert "together 359.60 EUR, on the train NJ 467." in after
    with SQLiteStore(tmp_path / "memory.db") as store:
        assert len(ConversationMemory(store=store).get_turns("ada")) == 2

    (line,) = re.findall(r"^  \S*firefly-memory (copy .*)$", printed, re.MULTILINE)
    target = "postgresql://USER:PASSWORD@HOST/DATABASE"
    with empty_postgresql(place.postgresql()) as url:
        copied = command_line.run(*line.replace(target, url).split(), cwd=tmp_path)
        assert (copied.returncode, target in line) == (0, True), copied.stderr
        with connect(url, migrate=False) as store:
            assert len(ConversationMemory(store=store).get_turns("ada")) == 2


def test_the_example_with_two_agents_runs() -> None:
    printed = run("two_agents.py")
    assert "Translate: Hello, world!\n  Bonjour, le monde !\n" in printed
    assert "Now write it in Python.\n  print('Hello, world!')\n" in printed
    assert "2 turns in the conversation, and the facts are {'customer': 'Ada'}" in printed


def test_the_pipeline_example_runs() -> None:
    printed = run("pipeline.py")
    assert "checks: sum: plausible; sender: known to us\nwriter: Your invoice will be paid.\n" in printed
    assert "extract --> checks//fork" in printed


OWN = {
    "manager": {"task", "action", "observation", "final"},
    "worker_1": {"task", "action", "observation", "final"},
    "worker_2": {"task", "action", "observation", "final"},
    "orchestrator": set[str](),
}
"""What each agent of the team adds that only some see."""

SEEN = {
    "manager": ["manager", "worker_1", "worker_2"],
    "worker_1": ["conversation", "worker_1"],
    "worker_2": ["conversation", "worker_2"],
    "orchestrator": ["conversation", "orchestrator"],
}
"""Whose messages each agent sees, beside those for all."""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_example_with_a_team_shows_each_role_what_it_sees(kind: str, tmp_path: Path, place: Place) -> None:
    if kind == "sqlite":
        printed = run("team.py", tmp_path / "team.db")
    else:
        with empty_postgresql(place.postgresql()) as url:
            printed = run("team.py", url)
    seen = {
        key: [tuple(line.split(maxsplit=2)) for line in lines.splitlines()]
        for key, lines in re.findall(r"^(\w+) sees:\n((?:  .*\n)+)", printed, re.MULTILINE)
    }
    conversation = {("-", "user_message"), ("-", "assistant_message")}
    for_all = {("orchestrator", "global_observation")}
    assert seen.keys() == SEEN.keys()
    for key, whose in SEEN.items():
        visible = {(each, kind) for each in whose for kind in OWN.get(each, ())} | for_all
        visible |= conversation if "conversation" in whose else set()
        assert {(who, kind) for who, kind, _ in seen[key]} == visible, key
    assert seen["manager"].count(("worker_1", "final", "orders has 1200 rows.")) == 1
    assert ("manager", "final", "orders has 1200 rows. customers has 85 rows.") in seen["manager"]


def test_the_example_with_a_team_accepts_the_name_of_a_model(tmp_path: Path) -> None:
    assert "manager sees:" in run("team.py", tmp_path / "team.db", model="test")


def test_the_example_with_preferences_knows_in_a_process_what_another_one_learned(tmp_path: Path) -> None:
    printed = run("preferences.py", tmp_path / "memory.db")
    assert len(set(re.findall(r"^Process (\d+)$", printed, re.MULTILINE))) == 3
    assert re.findall(r"^  Agent: +(.*)\n  Known: +(.*)$", printed, re.MULTILINE) == [
        ("I will remember that.", "{'units': 'metric'}"),
        ("Take 454 g of butter.", "{'units': 'metric'}"),
        ("Take a pound of butter.", "{}"),
    ]
    assert "recall" in run("preferences.py", tmp_path / "memory.db", "chat:eve", "Hello", model="test")


@pytest.mark.parametrize("name", ["two_agents.py", "pipeline.py"])
def test_an_example_accepts_the_name_of_a_model(name: str) -> None:
    assert "success (no tool calls)" in run(name, model="test")


ENDLESS = """
import asyncio, sys
import examples.fastapi_chat as example, uvicorn

async def answer(messages, info):
    yield "one "
    yield "two "
    await asyncio.Event().wait()

example.answer = answer
uvicorn.run(example.application(sys.argv[1]), port=0)
"""


@contextmanager
def serving(*command: str) -> Iterator[int]:
    """The port on which a server listens, which ends in an orderly way."""
    process = subprocess.Popen(
        [sys.executable, *command], env=environment(), cwd=EXAMPLES.parent, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said = ""
        while not (running := re.search(r"running on http://127.0.0.1:(\d+)", said)):
            line = process.stderr.readline()
            assert line, f"it has not come up: {said}"
            said += line
        yield int(running[1])
    finally:
        process.terminate()
        _, rest = process.communicate(timeout=60)
    assert "Traceback" not in rest, rest
    assert "Application shutdown complete" in rest


@contextmanager
def asking(port: int, prompt: str) -> Iterator[http.client.HTTPResponse]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", "/chat/ada", json.dumps({"prompt": prompt}), {"content-type": "application/json"})
        with connection.getresponse() as response:
            yield response


def turns(port: int) -> Any:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/chat/ada")
        return json.loads(connection.getresponse().read())


def test_a_chat_over_http_streams_and_remembers_also_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    for times in (1, 2):
        with serving(str(EXAMPLES / "fastapi_chat.py"), path, "0") as port:
            with asking(port, "Hello") as response:
                assert response.getheader("transfer-encoding") == "chunked"
                assert response.read().decode() == f"I was sent {2 * times - 1} messages. "
            assert [turn["user"] for turn in turns(port)] == ["Hello"] * times


def test_an_abandoned_answer_is_stored_up_to_where_it_came(tmp_path: Path) -> None:
    with serving("-c", ENDLESS, str(tmp_path / "memory.db")) as port:
        with asking(port, "Hello") as response:
            assert response.read(8) == b"one two "
        while not (stored := turns(port)):
            """The server has yet to find out that the other end is gone."""
        assert stored == [{"user": "Hello", "assistant": "one two "}]
