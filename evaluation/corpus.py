"""The conversations and their questions, one file each in `conversations/tuning` and `conversations/held_out`.

Settings of the search are chosen with those for tuning only. Nothing is chosen by those held out, whose questions and
misses nobody reads: they tell how good the search is for texts that it has not seen.

A line ``= 2023-05-08`` begins a session, ``Anna: text`` is a turn, ``Anna [boat]: text`` a turn with a label. A line
``? question -> boat, lake`` is a question with the turns that answer it. A new file is found without a change here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from firefly_memory.search.words import question_words

TUNING = Path(__file__).parent / "conversations" / "tuning"
HELD_OUT = Path(__file__).parent / "conversations" / "held_out"
LANGUAGE = "english"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation."""

    id: str
    session: str
    position: int
    day: date
    who: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the ids of the turns that answer it."""

    text: str
    evidence: tuple[str, ...]
    shares_words: bool
    """Whether it has a word of its evidence, names of people left aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation over several sessions."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def conversations(folder: Path) -> list[Conversation]:
    """Those of a folder, by name."""
    return [_read(path) for path in sorted(folder.glob("*.txt"))]


_LINE = re.compile(r"(?P<who>\w+)(?: \[(?P<label>\w+)\])?: (?P<text>.+)")


def _read(path: Path) -> Conversation:
    turns: list[Turn] = []
    labels: dict[str, str] = {}
    asked: list[tuple[str, list[str]]] = []
    day, session, position = date.min, "", 0
    for number, line in enumerate(filter(None, path.read_text(encoding="utf-8").splitlines())):
        if line.startswith("= "):
            day, session, position = date.fromisoformat(line[2:]), f"{path.stem} {line[2:]}", 0
        elif line.startswith("? "):
            text, _, evidence = line[2:].partition(" -> ")
            asked.append((text, evidence.split(", ")))
        elif found := _LINE.fullmatch(line):
            position += 1
            id = f"{path.stem}-{number:04}"  # noqa: A001
            turn = Turn(id=id, session=session, position=position, day=day, who=found["who"], text=found["text"])
            turns.append(turn)
            if found["label"]:
                assert found["label"] not in labels, f"{path}: [{found['label']}] stands twice"
                labels[found["label"]] = turn.id
        else:
            raise ValueError(f"{path}: {line!r} is no session, turn or question")
    by_id = {turn.id: turn for turn in turns}
    names = {word for turn in turns for word in question_words(turn.who, LANGUAGE)}
    questions = []
    for text, found_labels in asked:
        ids = tuple(labels[label] for label in found_labels)
        words = {word for id in ids for word in question_words(by_id[id].text, LANGUAGE)}  # noqa: A001
        shares = bool(words.intersection(question_words(text, LANGUAGE)) - names)
        questions.append(Question(text=text, evidence=ids, shares_words=shares))
    return Conversation(name=path.stem, turns=tuple(turns), questions=tuple(questions))
