"""The checker of histories finds each violation that is planted, says what it is, and finds none in what is right."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from firefly_memory.testing.histories import facts
from firefly_memory.testing.histories.checker import verdict_on
from firefly_memory.testing.histories.operation import Kind, Operation, Outcome
from firefly_memory.testing.histories.recorder import read_history
from tests.support.histories import add, append, done, failed, get, lost, overdue, put, read, simulated, unknown, won

END = 1000, 1001

PLANTED = {
    "lost append": ([append("a", 0, 1, 2), read("", *END)], "'a' was acknowledged as number 0; there is no such turn"),
    "append at another number": (
        [append("a", 1, 1, 2), append("b", 0, 3, 4), read("a b", *END)],
        "'a' was acknowledged as number 1; there is 'b'",
    ),
    "append stored twice": ([append("a", 0, 1, 2), read("a a", *END)], "'a' is stored 2 times"),
    "unknown append stored twice": ([unknown(Kind.APPEND, 1, text="a"), read("a a", *END)], "'a' is stored 2 times"),
    "failed append that is there": (
        [failed(Kind.APPEND, (1, 2), text="a"), read("a", *END)],
        "'a' is stored, though its append failed",
    ),
    "turn of nobody": ([read("a", *END)], "'a' is stored, and nobody appended it"),
    "gap": (
        [append("a", 0, 1, 2), done(Kind.READ, END, {"turns": [(0, "a"), (2, "b")], "total": 3}, first=0)],
        "have a gap or are out of order: [0, 2]",
    ),
    "retry at a second number": (
        [
            append("a", 0, 1, 2, idempotency_key="a"),
            append("b", 1, 3, 4),
            append("a", 2, 5, 6, idempotency_key="a"),
            read("a b", *END),
        ],
        "'a' was acknowledged as number 2; there is no such turn",
    ),
    "append with other expected turns": (
        [append("a", 0, 1, 2), append("b", 1, 3, 4, expected_turns=0), read("a b", *END)],
        "expects 0 turns was acknowledged as number 1",
    ),
    "append refused without reason": (
        [append("a", 0, 1, 2), failed(Kind.APPEND, (3, 4), turns_seen=1, text="b", expected_turns=1), read("a", *END)],
        "expects 1 turns was refused, and there were as many",
    ),
    "read in another order": (
        [append("a", 0, 1, 2), append("b", 1, 1, 2), read("b a", 3, 4), read("a b", *END)],
        "no prefix of what is stored: as turn 0 there is 'a'",
    ),
    "read of a turn that vanishes": (
        [unknown(Kind.APPEND, 1, text="a"), read("a", 3, 4), read("", *END)],
        "no prefix of what is stored: as turn 0 there is 'nothing'",
    ),
    "read with a gap": (
        [
            *[append(text, number, 1, 2) for number, text in enumerate("abc")],
            done(Kind.READ, (3, 4), {"turns": [(0, "a"), (2, "c")], "total": 3}, first=0),
            read("a b c", *END),
        ],
        "a read from turn 0 on has a gap or is out of order: [0, 2]",
    ),
    "window that ends too early": (
        [
            append("a", 0, 1, 2),
            append("b", 1, 1, 2),
            done(Kind.READ, (3, 4), {"turns": [(0, "a")], "total": 2}),
            read("a b", *END),
        ],
        "a read of 2 turns ends with turn 0",
    ),
    "appends against real time": (
        [append("a", 1, 1, 2), append("b", 0, 3, 4), read("b a", *END)],
        "an append has a lower number than an operation that had ended when it began",
    ),
    "unknown append against real time": (
        [append("a", 1, 1, 2), unknown(Kind.APPEND, 3, text="b"), read("b a", *END)],
        "an append has a lower number than",
    ),
    "stale read": ([append("a", 0, 1, 2), read("", 3, 4), read("a", *END)], "a read does not see an append"),
    "refusal that is stale": (
        [append("a", 0, 1, 2), failed(Kind.APPEND, (3, 4), turns_seen=0, text="b", expected_turns=5), read("a", *END)],
        "a read does not see an append",
    ),
    "reads that go back": (
        [append("a", 0, 1, 20), read("a", 3, 4), read("", 5, 6), read("a", *END)],
        "a read sees less than a read that had ended when it began",
    ),
    "page that goes back": (
        [
            append("a", 0, 1, 20),
            append("b", 1, 1, 20),
            read("a b", 3, 4, total=None),
            read("a", 5, 6),
            read("a b", *END),
        ],
        "a read sees less than a read that had ended when it began",
    ),
    "read of the future": (
        [read("a", 1, 2), append("a", 0, 3, 4), read("a", *END)],
        "an append is before what was seen by an operation that had ended when it began",
    ),
    "stale read after a read of the beginning": (
        [append("a", 0, 1, 2), append("b", 1, 1, 3), read("a", 1, 4, total=None), read("a", 5, 6), read("a b", *END)],
        "a read does not see an append",
    ),
    "stale read before a retry": (
        [append("a", 0, 1, 2), read("", 3, 4), append("a", 0, 5, 6), read("a", *END)],
        "a read does not see an append",
    ),
    "retry after a failure against real time": (
        [failed(Kind.APPEND, (1, 2), text="a"), append("b", 1, 3, 4), append("a", 0, 5, 6), read("a b", *END)],
        "an append has a lower number than",
    ),
    "damage": (
        [replace(failed(Kind.READ, (1, 2), first=0), error="CorruptDataError: turn 3 is damaged"), read("", *END)],
        "what is stored is damaged",
    ),
    "two winners": (
        [put(1, 1, 2), won(1, 2, 3, 9), won(1, 3, 3, 9), get(3, *END)],
        "2 calls of compare_and_set that expect 1 have won",
    ),
    "two winners of nothing": (
        [won(None, 2, 3, 9), won(None, 3, 3, 9)],
        "2 calls of compare_and_set that expect None have won",
    ),
    "two winners after increments": (
        [add(1, 1, 2), won(1, 7, 3, 9), won(1, 8, 3, 9)],
        "no order of these",
    ),
    "loser that had to win": ([put(1, 1, 2), lost(1, 2, 3, 4)], "no order of these operations on a fact"),
    "lost increment": ([add(1, 1, 5), add(1, 2, 6)], "no order of these operations on a fact"),
    "increment that was lost later": ([add(1, 1, 5), add(2, 2, 6), get(1, *END)], "no order of these operations"),
    "stale fact": ([put(1, 1, 2), put(2, 3, 4), get(1, 5, 6)], "no order of these operations on a fact"),
    "fact that goes back": ([put(1, 1, 2), put(2, 3, 9), get(2, 4, 5), get(1, 6, 7)], "no order of these operations"),
    "lost fact": ([put(1, 1, 2), get(None, 5, 6)], "no order of these operations on a fact"),
    "value of nobody": ([get(7, 5, 6)], "a read gives 7, which nobody set"),
    "value of nobody after increments": ([add(1, 1, 2), get(7, 5, 6)], "no order of these operations on a fact"),
    "failed write that is there": (
        [failed(Kind.SET, (1, 2), value=1), get(1, 5, 6)],
        "a read gives 1, which nobody set",
    ),
    "failed increment that was done": (
        [add(1, 1, 2), failed(Kind.INCREMENT, (3, 4), by=1), get(2, 5, 6)],
        "no order of these operations",
    ),
    "deletion that was lost": ([put(1, 1, 2), done(Kind.DELETE, (3, 4)), get(1, 5, 6)], "no order of these operations"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_violation_is_found_and_named(name: str) -> None:
    history, problem = PLANTED[name]
    found = verdict_on(history).violations
    assert any(problem in str(each) for each in found), found
    assert all(shown in history for each in found for shown in each.operations), "what is shown is what happened"


RIGHT = {
    "concurrent appends in either order": [append("a", 1, 1, 4), append("b", 0, 2, 3), read("b a", *END)],
    "unknown append that is there": [unknown(Kind.APPEND, 1, text="a"), read("a", *END)],
    "unknown append that is not there": [unknown(Kind.APPEND, 1, text="a"), read("", *END)],
    "retry after a failure": [failed(Kind.APPEND, (1, 2), text="a"), append("a", 0, 3, 4), read("a", *END)],
    "retry that is acknowledged again": [append("a", 0, 1, 2), append("b", 1, 3, 4), append("a", 0, 5, 6), read("a b", *END)],
    "read while an append is under way": [append("a", 0, 1, 5), read("", 2, 3), read("a", 2, 4), read("a", *END)],
    "empty window of a long turn": [append("a", 0, 1, 2), done(Kind.READ, (3, 4), {"turns": [], "total": 1}), read("a", *END)],
    "append that ends after the last look": [append("a", 0, 1, 1500), read("", *END)],
    "read that sees more than the last look": [unknown(Kind.APPEND, 1, text="a"), read("a", 999, 1002), read("", *END)],
    "append of unknown outcome that is done late": [overdue(Kind.APPEND, (1, 2), text="a"), read("", 3, 4), read("a", *END)],
    "set of unknown outcome that is done late": [overdue(Kind.SET, (1, 2), value=1), get(None, 3, 4), get(1, 5, 6)],
    "increments in either order": [add(2, 1, 5), add(1, 2, 6), get(2, *END)],
    "unknown set that is seen late": [unknown(Kind.SET, 1, value=1), get(None, 2, 3), get(1, 4, 5)],
    "unknown swap that lost": [put(1, 1, 2), unknown(Kind.COMPARE_AND_SET, 3, expected=7, value=8), get(1, 4, 5)],
    "swap of the same value twice": [put(1, 1, 2), won(1, 2, 3, 4), put(1, 5, 6), won(1, 3, 7, 8)],
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_may_happen_is_no_violation(name: str) -> None:
    assert not verdict_on(RIGHT[name]).violations


@pytest.mark.parametrize("seed", range(60))
def test_the_history_of_a_model_that_is_right_has_no_violation(seed: int) -> None:
    verdict = verdict_on(simulated(seed))
    assert (verdict.violations, verdict.undecided) == ((), ())


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_result_in_a_long_history_is_found_and_shown_with_a_part_of_it(seed: int) -> None:
    history = simulated(seed)
    place = next(place for place, each in enumerate(history) if place > 20 and each.is_done and each.kind is Kind.GET)
    history[place] = replace(history[place], result="a value that nobody set")
    (violation,) = verdict_on(history).violations
    assert history[place] in violation.operations
    assert len(violation.operations) < len(history) / 3


def test_the_explanation_of_a_lost_increment_is_the_two_that_have_the_same_sum() -> None:
    others = [put(5, 1, 2), won(5, 0, 3, 4), *[get(0, 5, 6 + n) for n in range(4)], get(1, 30, 31)]
    (violation,) = verdict_on([*others, add(1, 10, 20), add(1, 11, 21)]).violations
    assert [each.kind for each in violation.operations].count(Kind.INCREMENT) == 2
    assert len(violation.operations) <= 4


def test_the_explanation_has_the_answer_that_nothing_explains() -> None:
    history = [put(1, 1, 2), get(None, 5, 6)]
    (violation,) = verdict_on(history).violations
    assert violation.operations == tuple(history)


def test_a_violation_shows_each_operation_with_its_instants() -> None:
    history = [append("a", 0, 2_000_000, 3_500_000), read("", 5_000_000, 6_000_000)]
    violation = verdict_on(history).violations[0]
    assert str(violation).splitlines()[1:] == [
        "  [  0.000   1.500]  somebody: append(text='a') on talk -> 0",
        "  [  3.000   4.000]  somebody: read(first=0) on talk -> {'turns': [], 'total': 0}",
    ]


def test_a_history_without_a_last_read_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="does not end with a read of all turns"):
        verdict_on([append("a", 0, 1, 2)])


def test_a_search_that_takes_too_long_is_given_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MOST_STATES", 100)
    history = [
        *[unknown(Kind.SET, 1, value=number) for number in range(30)],
        unknown(Kind.INCREMENT, 1, by=1),
        get("a value of nobody", 5, 6),
    ]
    verdict = verdict_on(history)
    assert (verdict.violations, verdict.undecided) == ((), ("fact",))


def test_the_time_for_appends_grows_with_their_number_only() -> None:
    def seconds(count: int) -> float:
        appends = [append(f"t{number}", number, 2 * number, 2 * number + 5) for number in range(count)]
        history: list[Operation] = [*appends, read(" ".join(f"t{number}" for number in range(count)), 10**9, 10**9 + 1)]
        begin = time.process_time()
        assert not verdict_on(history).violations
        return time.process_time() - begin

    assert min(seconds(20_000) for _ in range(3)) < 40 * min(seconds(2_000) for _ in range(3))


def test_the_recording_of_a_killed_process_is_read_up_to_where_it_ends(tmp_path: Path) -> None:
    begun = {"number": 1, "worker": "w", "kind": "append", "target": "talk", "arguments": {"text": "a"}, "begin": 5}
    ended = {"number": 1, "result": 0, "outcome": "done", "end": 7}
    lines = [begun, ended, {**begun, "number": 2, "begin": 8}]
    whole = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "w.jsonl").write_text(whole + '{"number": 3, "wor')
    first, second = read_history(tmp_path)
    assert (first.outcome, first.result, first.end) == (Outcome.DONE, 0, 7)
    assert (second.outcome, second.arguments) == (Outcome.UNKNOWN, {"text": "a"})
