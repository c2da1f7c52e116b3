"""How MongoDB does what it is asked, for tests of its query plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from tests.support.mongodb_chunks import Commands
from tests.support.mongodb_tombstones import Somewhere

_OF_SESSIONS = {
    "lsid", "$db", "$clusterTime", "$readPreference", "readConcern", "batchSize", "maxTimeMS", "txnNumber",
    "autocommit", "startTransaction", "writeConcern", "ordered",
}  # fmt: skip
_WITHOUT_PLAN = {"insert", "commitTransaction", "abortTransaction"}


@dataclass
class Plan:
    """How the server did the commands of one call."""

    indexes: set[str] = field(default_factory=set)
    stages: set[str] = field(default_factory=set)
    documents: int = 0
    keys: int = 0


class Planned:
    """Asks the log of a store, and then for the plans of what was asked."""

    def __init__(self, somewhere: Somewhere, log: Any, commands: Commands) -> None:
        self._somewhere = somewhere
        self._log = log
        self._commands = commands

    def __call__(self, ask: Callable[[Any], Any], *, sorts: bool = False) -> Plan:
        """``sorts`` says that the server may sort what it has found. It explains the first write of each command."""
        self._commands.sent.clear()
        run_without_loop(ask(self._log))
        plan = Plan()
        for name, command in self._commands.sent:
            if name not in _WITHOUT_PLAN:
                asked = {name: value for name, value in command.items() if name not in _OF_SESSIONS}
                for each in _single_writes(name, asked):
                    _look(self._somewhere.database.command("explain", each, verbosity="executionStats"), plan)
        assert plan.stages.isdisjoint({"COLLSCAN"} if sorts else {"COLLSCAN", "SORT"})
        return plan


def _single_writes(name: str, command: dict[str, Any]) -> list[dict[str, Any]]:
    """The server explains one write at a time."""
    writes = {"update": "updates", "delete": "deletes"}.get(name)
    return [command] if writes is None else [{**command, writes: [each]} for each in command[writes]]


def _look(found: Any, plan: Plan) -> None:
    if isinstance(found, dict):
        if "stage" in found:
            plan.stages.add(found["stage"])
        if "indexName" in found:
            plan.indexes.add(found["indexName"])
        plan.indexes.update(found.get("indexesUsed", ()))
        plan.documents += int(found.get("totalDocsExamined", 0))
        plan.keys += int(found.get("totalKeysExamined", 0))
        for name, each in found.items():
            if name not in ("rejectedPlans", "executionStages", "command"):
                _look(each, plan)
    elif isinstance(found, list):
        for each in found:
            _look(each, plan)
