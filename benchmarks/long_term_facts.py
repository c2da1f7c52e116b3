"""Facts of a space and its people, as many as are wanted, and what is asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

AGENTS = [f"agent_{number}" for number in range(10)]
OF_A_PERSON, OF_A_SESSION = 10, 5

FEW, MANY, NONE = "zircon terms", "paid within days", "quartzite"
"""Queries of words in their order: three global facts have the first, half of all facts have the second."""

_TOPICS = (
    "timezone", "language", "currency", "address", "contact", "supplier", "invoice", "delivery", "account", "discount",
)  # fmt: skip
_CONFIDENCES = (1.0, 0.8, 1.0, 0.6, 0.9, 1.0, 1.0, 0.7, 1.0, 0.4)


class Ids(NamedTuple):
    """Whose facts are looked up, beside the global ones."""

    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None


class Whose(NamedTuple):
    """One scope, and the id that it names."""

    scope: str
    id: str = ""

    @property
    def word(self) -> str:
        """The scope as the bare drivers know it."""
        return f"{self.scope}/{self.id}"

    @property
    def ids(self) -> Ids:
        return Ids() if self.scope == "global" else Ids(**{f"{self.scope}_id": self.id})


EVERYBODY = Whose("global")


class Known(NamedTuple):
    whose: Whose
    key: str
    value: str
    confidence: float


@cache
def people(size: int) -> list[str]:
    """The people of so many facts. Half of these are theirs."""
    return [f"telegram:{number}" for number in range(size // (2 * OF_A_PERSON))]


@cache
def sessions(size: int) -> list[str]:
    """The sessions that have an eighth of the facts."""
    return [f"session_{number}" for number in range(size // (8 * OF_A_SESSION))]


def global_key(number: int) -> str:
    return _key(number)


def personal_key(number: int) -> str:
    return f"preferred_{_TOPICS[number % OF_A_PERSON]}"


def global_count(size: int) -> int:
    return size // 4


def facts(size: int) -> Iterator[Known]:
    """Half of them are people's, a quarter is global, an eighth each is of agents and of sessions."""
    for person in people(size):
        for number in range(OF_A_PERSON):
            yield _known(Whose("user", person), personal_key(number), number)
    rare = {(third * 2 + 1) * global_count(size) // 6 for third in range(3)}
    for number in range(global_count(size)):
        known = _known(EVERYBODY, _key(number), number)
        yield known._replace(value="The zircon has terms of its own.", confidence=1.0) if number in rare else known
    for number in range(size // 8):
        yield _known(Whose("agent", AGENTS[number % len(AGENTS)]), _key(number), number)
    for session in sessions(size):
        for number in range(OF_A_SESSION):
            yield _known(Whose("session", session), f"step_{number}", number)


def _key(number: int) -> str:
    return f"{_TOPICS[number % len(_TOPICS)]}_of_{number:06}"


def _known(whose: Whose, key: str, number: int) -> Known:
    return Known(whose, key, value_of(number), _CONFIDENCES[number // 2 % len(_CONFIDENCES)])


def value_of(number: int) -> str:
    """A sentence; every second one is about payments."""
    if number % 2:
        return f"Bills of customer {number} are paid within {number % 60} days after the delivery of the goods."
    return f"Customer {number} wants a call on Tuesdays, and the papers of each order in an e-mail."
