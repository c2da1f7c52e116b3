"""What ``firefly-memory index`` does: :mod:`firefly_memory.service.indexes`, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import Where
from firefly_memory.search.keeping import IndexState
from firefly_memory.service import embed_missing, index_states, rebuild_indexes
from firefly_memory.service.indexes import Progress
from firefly_memory.target import changing


def show_states(where: Where) -> Exit:
    with changing(where.target(), timeout=where.timeout) as store:
        states = index_states(store)
    details = [
        {
            "kind": each.kind,
            "rows": each.rows,
            "language": each.language,
            "outdated": each.outdated,
            "without_vector": each.without_vector,
            "problems": list(each.problems),
        }
        for each in states
    ]
    lines = [line for each in states for line in _in_words(each)] or ["nothing here is searched by an index"]
    right = all(each.is_right for each in states)
    if not right:
        lines.append(where.advised("run `firefly-memory index rebuild` to make it right"))
    show({"indexes": details}, lines)
    return Exit.DONE if right else Exit.DRIFT


def run_rebuild(where: Where, language: str | None, *, quiet: bool) -> None:
    with changing(where.target(), timeout=where.timeout) as store, _progress("rebuilding", quiet=quiet) as progress:
        looked_at = rebuild_indexes(store, language, progress=progress)
    lines = [f"looked at {rows:,} {kind}, and made again what was not right" for kind, rows in looked_at.items()]
    _show(looked_at, lines, quiet=quiet)


def run_embed(where: Where, *, quiet: bool) -> None:
    with changing(where.target(), timeout=where.timeout) as store, _progress("embedding", quiet=quiet) as progress:
        made = embed_missing(store, progress=progress)
    _show(made, [f"made the vectors of {rows:,} {kind}" for kind, rows in made.items()], quiet=quiet)


def _in_words(state: IndexState) -> Iterator[str]:
    language = "no language yet" if state.language is None else state.language
    vectors = "no embedder is installed"
    if state.without_vector is not None:
        vectors = f"{state.without_vector:,} without a vector" if state.without_vector else "each with a vector"
    yield f"{state.kind}: {state.rows:,} rows, {language}, {vectors}"
    if state.outdated:
        yield f"  {state.outdated:,} rows have words that are not those of their texts"
    yield from (f"  {each}" for each in state.problems)


def _show(rows: dict[str, int], lines: list[str], *, quiet: bool) -> None:
    if not quiet or current().json:
        show({"rows": rows}, lines or ["nothing here is searched by an index"])


class _SoFar:
    """Rows as a progress bar counts them."""

    def __init__(self, kind: str, rows: int) -> None:
        self.total = rows
        self._kind = kind

    def in_words(self) -> str:
        return f"{self.total:,} {self._kind}"


@contextmanager
def _progress(step: str, *, quiet: bool) -> Iterator[Progress | None]:
    with progress_bar(step, quiet=quiet or current().json, total=lambda _: None, unit="row") as bar:
        yield None if bar is None else lambda kind, rows: bar(step, _SoFar(kind, rows))
