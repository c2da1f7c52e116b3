"""``firefly-memory db``: the schema of a database, for deployment pipelines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from firefly_memory.cli import legacy
from firefly_memory.cli.consent import ask_for_consent, in_words
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import show
from firefly_memory.cli.target import add_target, advised, settings_of, target_if_any, target_of
from firefly_memory.cli.values import a_time_out
from firefly_memory.databases.diagnostics import MISSING, Difference
from firefly_memory.databases.sql.schema import revisions
from firefly_memory.errors import ConfigurationError
from firefly_memory.target import Target, migrations_of, store_of

if TYPE_CHECKING:
    from firefly_memory.databases.sql.schema.commands import Administration, Status

_CODES = f"""
exit codes:
  {Exit.DONE}  done; for current and check: the schema is at the newest revision, or ahead and compatible
  {Exit.FAILED}  it could not be done
  {Exit.USAGE}  the command was called wrongly
  {Exit.BEHIND}  the schema is missing or behind, or there is no SQLite file: run `firefly-memory db upgrade`
  {Exit.AHEAD}  the schema is ahead, and this version cannot use it: a newer firefly-memory migrated it
  {Exit.DRIFT}  something is not as it should be (check, doctor)
  {Exit.UNREACHABLE}  the database cannot be reached
  {Exit.BUSY}  somebody else holds a lock for too long; nothing was changed, try again
"""


def add_to(commands: Any) -> None:
    db = commands.add_parser(
        "db",
        help="bring the schema of a database up to date, check it, print it",
        description="The schema of a SQLite or PostgreSQL database, and the indexes of a MongoDB one.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = db.add_subparsers(required=True, metavar="ACTION")

    upgrade = _action(actions, "upgrade", _upgrade, "run the revisions that are missing")
    upgrade.add_argument("revision", nargs="?", default="head", help="how far, by default to the newest")
    _add_waiting(upgrade)
    downgrade = _action(actions, "downgrade", _downgrade, "undo revisions, with the data in what they made")
    downgrade.add_argument("revision", help="the revision to go back to, or base for an empty schema")
    downgrade.add_argument("--yes", action="store_true", help="do not ask for the name of the database first")
    downgrade.add_argument("--dry-run", action="store_true", help="only say what goes: revisions, tables, their rows")
    _add_waiting(downgrade)
    _action(actions, "current", _current, "say which revision the database is at")
    _action(actions, "history", _history, "list the revisions this version knows", database=False)
    _action(actions, "check", _check, "compare the database, object by object, with what this version needs")
    sql = _action(
        actions, "sql", _sql, "print a migration as SQL, for review or for somebody else to run", database=False
    )
    sql.add_argument("range", nargs="?", default="base:head", metavar="FROM:TO", help="by default base:head")
    sql.add_argument("--dialect", choices=("postgresql", "sqlite"), help="by default that of the URL, or postgresql")
    grants = _action(actions, "grants", _grants, "print the rights that the role of a service needs", database=False)
    grants.add_argument("role", help="the role of the service, which needs no right to create anything")
    stamp = _action(actions, "stamp", _stamp, "write down a revision without running anything")
    stamp.add_argument("revision", help="the revision that the database is at, or base")
    legacy.add_to(actions)


def _action(
    actions: Any, name: str, run: Callable[[argparse.Namespace], int], words: str, *, database: bool = True
) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name,
        help=words,
        description=f"{words[0].upper()}{words[1:]}.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target(action)
    action.add_argument("--json", action="store_true", help="print a JSON object")
    if database:
        action.add_argument(
            "--timeout",
            type=a_time_out,
            default=60.0,
            metavar="SECONDS",
            help="for the server and other migrators (60)",
        )
    action.set_defaults(run=run)
    return action


def _add_waiting(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--lock-timeout",
        type=a_time_out,
        default=5.0,
        metavar="SECONDS",
        help="how long a statement waits for a table that a transaction holds, before all gives up (5)",
    )


@contextmanager
def _administration(arguments: argparse.Namespace, *, reading: bool = False) -> Iterator[Administration]:
    found = target_of(arguments)
    if found.row.indexes is not None:
        raise ConfigurationError(
            f"{found.row.in_words} has no revisions; `upgrade` makes its indexes, `current` and `check` look for them"
        )
    if not found.row.has_schema:
        raise ConfigurationError(_no_schema(found))
    lock_timeout = getattr(arguments, "lock_timeout", None)
    with migrations_of(found, timeout=arguments.timeout, lock_timeout=lock_timeout, reading=reading) as migrations:
        yield migrations


def _no_schema(found: Target) -> str:
    return f"a store in {found.row.in_words} has no schema: there is nothing to migrate"


def _upgrade(arguments: argparse.Namespace) -> int:
    found = target_of(arguments)
    if found.row.indexes is not None:
        return _make_indexes(arguments)
    if not found.row.has_schema:
        show(arguments, {"ran": [], "revision": None}, [_no_schema(found)])
        return Exit.DONE
    with _administration(arguments) as database:
        ran = database.upgrade(arguments.revision)
        revision = database.status().revision
    words = [f"ran {', '.join(ran)}"] if ran else ["nothing to do"]
    show(arguments, {"ran": ran, "revision": revision}, [*words, f"at {revision}"])
    return Exit.DONE


def _downgrade(arguments: argparse.Namespace) -> int:
    if arguments.dry_run or not arguments.yes:
        with _administration(arguments, reading=True) as database:
            plan = database.downgrade_plan(arguments.revision)
        if arguments.dry_run:
            lost = [{"table": loss.table, "rows": loss.rows} for loss in plan.losses]
            show(arguments, {"would_undo": plan.undone, "would_drop": lost}, in_words(plan))
            return Exit.DONE
        if plan.losses:
            ask_for_consent(plan)
    with _administration(arguments) as database:
        undone = database.downgrade(arguments.revision)
        revision = database.status().revision
    words = [f"undid {', '.join(undone)}"] if undone else ["nothing to do"]
    show(arguments, {"undone": undone, "revision": revision}, [*words, f"at {revision or 'base'}"])
    return Exit.DONE


def _current(arguments: argparse.Namespace) -> int:
    found = target_of(arguments)
    if found.row.indexes is not None:
        return _current_indexes(arguments)
    if not found.row.has_schema:
        return _nothing_to_compare(arguments)
    with _administration(arguments, reading=True) as database:
        status = database.status()
    show(arguments, _as_json(status), [_in_words(status)])
    return _code(status)


def _history(arguments: argparse.Namespace) -> int:
    from firefly_memory.databases.sql.schema.commands import history

    known, head = history(), revisions.head()
    lines = [f"{each.revision}  {each.title}{'  (head)' if each.revision == head else ''}" for each in known]
    show(arguments, {"revisions": [{"revision": r.revision, "title": r.title} for r in known]}, lines)
    return Exit.DONE


def _check(arguments: argparse.Namespace) -> int:
    found_store = target_of(arguments)
    if found_store.row.indexes is not None:
        return _check_indexes(arguments)
    if not found_store.row.has_schema:
        return _nothing_to_compare(arguments)
    with _administration(arguments, reading=True) as database:
        status, found = database.differences()
    lines = [_in_words(status), *_differences_in_words(found)]
    if status.state.value == "current" and not found:
        lines.append("every table, column, default, check and index is as it should be")
    show(arguments, {**_as_json(status), "differences": _differences_as_json(found)}, lines)
    return Exit.DRIFT if found else _code(status)


def _nothing_to_compare(arguments: argparse.Namespace) -> int:
    nothing: dict[str, Any] = {"revision": None, "head": None, "state": "no schema", "pending": [], "differences": []}
    show(arguments, nothing, [_no_schema(target_of(arguments))])
    return Exit.DONE


def _sql(arguments: argparse.Namespace) -> int:
    from firefly_memory.databases.sql.schema.commands import script

    start, colon, end = arguments.range.partition(":")
    if not colon:
        raise ConfigurationError(f"{arguments.range!r} is no range; write FROM:TO, such as base:head or 0001:0002")
    dialect, schema_name = _written_for(arguments)
    text = script(dialect, schema_name, start or "base", end or "head")
    show(arguments, {"sql": text}, [text.rstrip()])
    return Exit.DONE


def _grants(arguments: argparse.Namespace) -> int:
    from firefly_memory.databases.sql.schema.commands import grants

    dialect, schema_name = _written_for(arguments)
    if dialect != "postgresql":
        raise ConfigurationError("only PostgreSQL has roles to grant to; whoever may write the SQLite file may use it")
    statements = grants(arguments.role, schema_name)
    show(arguments, {"statements": statements}, statements)
    return Exit.DONE


def _stamp(arguments: argparse.Namespace) -> int:
    with _administration(arguments) as database:
        database.stamp(arguments.revision)
        revision = database.status().revision
    show(arguments, {"revision": revision}, [f"stamped {revision or 'base'}"])
    return Exit.DONE


def _written_for(arguments: argparse.Namespace) -> tuple[str, str]:
    """The dialect and the schema that statements are printed for: PostgreSQL's, unless something else is named."""
    chosen = getattr(arguments, "dialect", None)
    if chosen is not None and arguments.url is None and arguments.url_file is None:
        return chosen, arguments.schema or settings_of(arguments).postgres_schema
    found = target_if_any(arguments)
    if found is None:
        return "postgresql", arguments.schema or settings_of(arguments).postgres_schema
    if found.row.dialect is None:
        raise ConfigurationError(f"statements are for SQLite and PostgreSQL, and the store is {found.row.in_words}")
    return chosen or found.row.dialect, found.schema_name


def _make_indexes(arguments: argparse.Namespace) -> int:
    with store_of(target_of(arguments), timeout=arguments.timeout, migrate=True):
        pass
    show(arguments, {"indexes": "there"}, ["every index is there"])
    return Exit.DONE


def _check_indexes(arguments: argparse.Namespace) -> int:
    found = _index_differences(arguments)
    is_behind = bool(found) and all(each.found == MISSING for each in found)
    lines = _differences_in_words(found) or ["every index is as it should be"]
    if is_behind:
        lines.append(advised("run `firefly-memory db upgrade` to make them", arguments))
    show(arguments, {**_of_indexes(found), "differences": _differences_as_json(found)}, lines)
    return Exit.BEHIND if is_behind else Exit.DRIFT if found else Exit.DONE


def _current_indexes(arguments: argparse.Namespace) -> int:
    found = _index_differences(arguments)
    state = _of_indexes(found)
    is_behind = state["state"] == "behind"
    missing = advised("indexes are missing; run `firefly-memory db upgrade` to make them", arguments)
    show(arguments, state, [missing if is_behind else "every index is there"])
    return Exit.BEHIND if is_behind else Exit.DONE


def _index_differences(arguments: argparse.Namespace) -> list[Difference]:
    found = target_of(arguments)
    store: Any = store_of(found, timeout=arguments.timeout, migrate=False)
    try:
        differences: list[Difference] = found.row.load("indexes")(store.database)
        return differences
    finally:
        store.close_sync()


def _of_indexes(found: list[Difference]) -> dict[str, Any]:
    """As :func:`_as_json` says it of a schema."""
    is_behind = any(each.found == MISSING for each in found)
    return {"revision": None, "head": None, "state": "behind" if is_behind else "current", "pending": []}


def _differences_in_words(found: list[Difference]) -> list[str]:
    return [line for each in found for line in (str(each), *(f"  {line}" for line in each.mend.splitlines()))]


def _differences_as_json(found: list[Difference]) -> list[dict[str, str]]:
    return [{"what": each.what, "found": each.found, "expected": each.expected, "mend": each.mend} for each in found]


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


def _code(status: Status) -> int:
    return {"behind": Exit.BEHIND, "ahead": Exit.AHEAD}.get(status.state.value, Exit.DONE)
