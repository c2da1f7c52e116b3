"""Whether the turns of one conversation are strictly serializable: the stored order is the only one that can be right.

The order of a conversation is what its last complete read shows. Every append has its place there, and every read must
fit one. What is left to check is that no operation comes before another that had ended when it began. All of it takes
about as long as sorting the operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from firefly_memory.testing.histories.operation import NEVER, Kind, Operation, Outcome, Violation


def violations_of_turns(operations: list[Operation]) -> Iterator[Violation]:
    """What is wrong with the operations on one conversation. The last of them to begin must read all of it."""
    final = _final_read(operations)
    stored = [(int(number), str(text)) for number, text in final.result["turns"]]
    appends = _appends_by_text(operations)
    yield from _wrong_numbers(final, stored)
    yield from _wrong_contents(final, stored, appends)
    yield from _wrong_acknowledgements(final, dict(stored), appends)
    yield from _refused_appends_with_the_expected_turns(operations)
    for read in operations:
        if read.kind is Kind.READ and read.is_done:
            yield from _wrong_read(read, final, dict(stored))
    yield from _out_of_order(_placed(operations, {text: number for number, text in stored}))


def _final_read(operations: list[Operation]) -> Operation:
    last = max(operations, key=lambda each: each.begin)
    whole = last.kind is Kind.READ and last.is_done and last.arguments.get("first") == 0
    if not whole or last.result["total"] is None:
        raise ValueError(f"the history of {last.target} does not end with a read of all turns")
    return last


def _appends_by_text(operations: list[Operation]) -> dict[str, list[Operation]]:
    """The tries of each append: texts are unique but for retries."""
    found: dict[str, list[Operation]] = {}
    for each in operations:
        if each.kind is Kind.APPEND:
            found.setdefault(each.arguments["text"], []).append(each)
    return found


def _wrong_numbers(final: Operation, stored: list[tuple[int, str]]) -> Iterator[Violation]:
    numbers = [number for number, _ in stored]
    if numbers != list(range(len(numbers))):
        yield Violation(f"the numbers of the stored turns have a gap or are out of order: {numbers}", (final,))


def _wrong_contents(
    final: Operation, stored: list[tuple[int, str]], appends: dict[str, list[Operation]]
) -> Iterator[Violation]:
    for text, times in Counter(text for _, text in stored).items():
        tries = tuple(appends.get(text, ()))
        if not tries:
            yield Violation(f"the turn {text!r} is stored, and nobody appended it", (final,))
        elif not any(each.may_have_been_done for each in tries):
            yield Violation(f"the turn {text!r} is stored, though its append failed", (*tries, final))
        if times > 1:
            yield Violation(f"the turn {text!r} is stored {times} times", (*tries, final))


def _wrong_acknowledgements(
    final: Operation, stored: dict[int, str], appends: dict[str, list[Operation]]
) -> Iterator[Violation]:
    for text, tries in appends.items():
        for each in tries:
            if each.is_done and each.end < final.begin and stored.get(each.result) != text:
                there = f"there is {stored[each.result]!r}" if each.result in stored else "there is no such turn"
                yield Violation(f"the turn {text!r} was acknowledged as number {each.result}; {there}", (each, final))


def _refused_appends_with_the_expected_turns(operations: list[Operation]) -> Iterator[Violation]:
    for each in operations:
        expected = each.arguments.get("expected_turns")
        if expected is None:
            continue
        if each.is_done and each.result != expected:
            yield Violation(
                f"an append that expects {expected} turns was acknowledged as number {each.result}", (each,)
            )
        if each.turns_seen == expected:
            yield Violation(f"an append that expects {expected} turns was refused, and there were as many", (each,))


def _wrong_read(read: Operation, final: Operation, stored: dict[int, str]) -> Iterator[Violation]:
    turns, total = read.result["turns"], read.result["total"]
    numbers = [number for number, _ in turns]
    first = read.arguments.get("first")
    if first is None:  # a window begins anywhere
        first = numbers[0] if numbers else 0
    if numbers != list(range(first, first + len(numbers))):
        yield Violation(f"a read from turn {first} on has a gap or is out of order: {numbers}", (read,))
    elif numbers and total is not None and numbers[-1] != total - 1:
        yield Violation(f"a read of {total} turns ends with turn {numbers[-1]}", (read,))
    # What was stored after the last read had begun is not in it.
    other = [number for number, text in turns if stored.get(number) != text and read.end < final.begin]
    if other:
        there = stored.get(other[0], "nothing")
        yield Violation(f"a read is no prefix of what is stored: as turn {other[0]} there is {there!r}", (read, final))


@dataclass(frozen=True, slots=True)
class _Placed:
    """An operation in the order of the conversation: append ``n`` is at ``2n + 1``, a read of ``n`` turns at ``2n``."""

    operation: Operation
    begin: int
    end: int
    at_least: int
    at_most: int


_ANYWHERE = 2**63


def _placed(operations: list[Operation], numbers: dict[str, int]) -> Iterator[_Placed]:
    for each in operations:
        if each.turns_seen is not None:
            yield _Placed(each, each.begin, each.end, 2 * each.turns_seen, 2 * each.turns_seen)
        if each.kind is Kind.READ and each.is_done:
            turns, total = each.result["turns"], each.result["total"]
            if total is not None:
                yield _Placed(each, each.begin, each.end, 2 * total, 2 * total)
            elif turns:
                yield _Placed(each, each.begin, each.end, 2 * (turns[-1][0] + 1), _ANYWHERE)
    for text, tries in _appends_by_text(operations).items():
        if text in numbers:
            yield from _placed_tries(tries, 2 * numbers[text] + 1)


def _placed_tries(tries: list[Operation], place: int) -> Iterator[_Placed]:
    """One of several tries appended the turn: not before the first began, and before the first acknowledgement."""
    possible = [each for each in tries if each.may_have_been_done]
    if not possible:
        return
    first = min(possible, key=lambda each: each.begin)
    acknowledged = min((each for each in tries if each.is_done), key=lambda each: each.end, default=first)
    yield _Placed(acknowledged, first.begin, acknowledged.end if acknowledged.is_done else NEVER, place, place)


def _out_of_order(placed: Iterator[_Placed]) -> Iterator[Violation]:
    """Operations that come, in the order of the conversation, before one that had ended when they began."""
    by_begin = sorted(placed, key=lambda each: each.begin)
    ended = iter(sorted((each for each in by_begin if each.end != NEVER), key=lambda each: each.end))
    following, latest = next(ended, None), None
    for each in by_begin:
        while following is not None and following.end < each.begin:
            if latest is None or following.at_least > latest.at_least:
                latest = following
            following = next(ended, None)
        if latest is not None and each.at_most < latest.at_least:
            yield Violation(_words_for(latest.operation, each.operation), (latest.operation, each.operation))


def _words_for(earlier: Operation, later: Operation) -> str:
    if later.kind is Kind.APPEND and later.outcome is not Outcome.FAILED:
        what = "has a lower number than" if earlier.kind is Kind.APPEND else "is before what was seen by"
        return f"real time is not kept: an append {what} an operation that had ended when it began"
    what = "does not see an append" if earlier.kind is Kind.APPEND else "sees less than a read"
    return f"real time is not kept: a read {what} that had ended when it began"
