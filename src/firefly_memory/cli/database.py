"""What ``firefly-memory db`` does with the schema of a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from firefly_memory.cli import indexes
from firefly_memory.cli.consent import require_consent
from firefly_memory.cli.differences import as_json, in_words
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import show
from firefly_memory.cli.target import Where
from firefly_memory.databases.sql.schema import revisions
from firefly_memory.errors import ConfigurationError
from firefly_memory.target import Target, migrations_of

if TYPE_CHECKING:
    from firefly_memory.databases.sql.schema.commands import Administration, Downgrade, Loss, Status


@contextmanager
def _administration(
    where: Where, *, reading: bool = False, lock_timeout: float | None = None
) -> Iterator[Administration]:
    found = where.target()
    if found.row.indexes is not None:
        raise ConfigurationError(
            f"{found.row.in_words} has no revisions; `upgrade` makes its indexes, `current` and `check` look for them"
        )
    if not found.row.has_schema:
        raise ConfigurationError(_no_schema(found))
    with migrations_of(found, timeout=where.timeout, lock_timeout=lock_timeout, reading=reading) as migrations:
        yield migrations


def _no_schema(found: Target) -> str:
    return f"a store in {found.row.in_words} has no schema: there is nothing to migrate"


def run_upgrade(where: Where, revision: str, lock_timeout: float) -> Exit:
    found = where.target()
    if found.row.indexes is not None:
        return indexes.make(where)
    if not found.row.has_schema:
        show({"ran": [], "revision": None}, [_no_schema(found)])
        return Exit.DONE
    with _administration(where, lock_timeout=lock_timeout) as database:
        ran = database.upgrade(revision)
        now = database.status().revision
    words = [f"ran {', '.join(ran)}"] if ran else ["nothing to do"]
    show({"ran": ran, "revision": now}, [*words, f"at {now}"])
    return Exit.DONE


def run_downgrade(where: Where, revision: str, *, yes: bool, dry_run: bool, lock_timeout: float) -> Exit:
    if dry_run or not yes:
        with _administration(where, reading=True, lock_timeout=lock_timeout) as database:
            plan = database.downgrade_plan(revision)
        if dry_run:
            lost = [{"table": loss.table, "rows": loss.rows} for loss in plan.losses]
            show({"would_undo": plan.undone, "would_drop": lost}, _plan_in_words(plan))
            return Exit.DONE
        if plan.losses:
            _require_consent(plan)
    with _administration(where, lock_timeout=lock_timeout) as database:
        undone = database.downgrade(revision)
        now = database.status().revision
    words = [f"undid {', '.join(undone)}"] if undone else ["nothing to do"]
    show({"undone": undone, "revision": now}, [*words, f"at {now or 'base'}"])
    return Exit.DONE


def _plan_in_words(plan: Downgrade) -> Iterator[str]:
    if not plan.undone:
        yield "nothing to do"
        return
    yield f"would undo {', '.join(plan.undone)} in {plan.database}"
    yield f"which is {plan.where}"
    for loss in plan.losses:
        yield f"would drop {_loss(loss)}"


def _require_consent(plan: Downgrade) -> None:
    require_consent(
        yes=False,
        name=plan.database,
        of="the database",
        would=_plan_in_words(plan),
        lost=f"drop {', '.join(map(_loss, plan.losses))}",
        is_to=f"{plan.database} ({plan.where}) is to lose that",
        or_else="; --dry-run only looks",
    )


def _loss(loss: Loss) -> str:
    return f"{loss.table} with {loss.rows:,} {'row' if loss.rows == 1 else 'rows'}"


def run_current(where: Where) -> Exit:
    found = where.target()
    if found.row.indexes is not None:
        return indexes.say_whether_there(where)
    if not found.row.has_schema:
        return _nothing_to_compare(found)
    with _administration(where, reading=True) as database:
        status = database.status()
    show(_as_json(status), [_in_words(status)])
    return _code(status)


def run_check(where: Where) -> Exit:
    found = where.target()
    if found.row.indexes is not None:
        return indexes.check(where)
    if not found.row.has_schema:
        return _nothing_to_compare(found)
    with _administration(where, reading=True) as database:
        status, differences = database.differences()
    lines = [_in_words(status), *in_words(differences)]
    if status.state.value == "current" and not differences:
        lines.append("every table, column, default, check and index is as it should be")
    show({**_as_json(status), "differences": as_json(differences)}, lines)
    return Exit.DRIFT if differences else _code(status)


def run_stamp(where: Where, revision: str) -> Exit:
    with _administration(where) as database:
        database.stamp(revision)
        now = database.status().revision
    show({"revision": now}, [f"stamped {now or 'base'}"])
    return Exit.DONE


def _nothing_to_compare(found: Target) -> Exit:
    nothing: dict[str, Any] = {"revision": None, "head": None, "state": "no schema", "pending": [], "differences": []}
    show(nothing, [_no_schema(found)])
    return Exit.DONE


def _as_json(status: Status) -> dict[str, Any]:
    return {
        "revision": status.revision,
        "head": revisions.head(),
        "state": status.state.value,
        "pending": list(status.pending),
    }


def _in_words(status: Status) -> str:
    match status.state.value:
        case "current":
            return f"{status.revision} (head)"
        case "behind":
            return f"{status.revision or 'no schema'}; missing: {', '.join(status.pending)}"
        case "ahead, compatible":
            return f"{status.revision} ({status.state.value}): this version of firefly-memory works with it"
        case _:
            return f"{status.revision}; this version of firefly-memory knows revisions up to {revisions.head()}"


def _code(status: Status) -> Exit:
    return {"behind": Exit.BEHIND, "ahead": Exit.AHEAD}.get(status.state.value, Exit.DONE)
