"""The outcome of an import."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

_EXAMPLES = 5
_REASONS = 50

_OTHERS = "other reasons"


@dataclass(slots=True)
class Refusals:
    """How often a reason occurred, and its first few rows."""

    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """The numbers of imported, present, expired and refused entries."""

    taken: int = 0
    there_already: int = 0
    expired: int = 0
    superseded: int = 0
    """Earlier values of facts: only the last value was taken."""
    refused: int = 0
    reasons: dict[str, Refusals] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.taken + self.there_already + self.expired + self.superseded + self.refused

    def in_words(self) -> str:
        return f"{self.taken} taken, {self.refused} refused"

    def refuse(self, reason: str, namespace: Any, entry_id: Any) -> None:
        self.refused += 1
        known = reason in self.reasons or len(self.reasons) < _REASONS  # memory stays bounded
        refusals = self.reasons.setdefault(reason if known else _OTHERS, Refusals())
        refusals.count += 1
        if len(refusals.examples) < _EXAMPLES:
            refusals.examples.append({"namespace": _shown(namespace), "entry_id": _shown(entry_id)})

    def as_json(self) -> dict[str, Any]:
        reasons = [{"reason": reason, **asdict(refusals)} for reason, refusals in self.reasons.items()]
        return {
            name: getattr(self, name) for name in ("taken", "there_already", "expired", "superseded", "refused")
        } | {"reasons": reasons}


def _shown(name: Any) -> str | None:
    return name if name is None or isinstance(name, str) else repr(name)
