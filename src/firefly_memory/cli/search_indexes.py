"""What ``firefly-memory index`` does: :mod:`firefly_memory.service.indexes`, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firefly_memory.cli.accelerator_states import as_json, in_words, states_in
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import Where
from firefly_memory.databases.sql.schema.accelerators import AcceleratorState
from firefly_memory.search.embedders.default import DEFAULT, Default
from firefly_memory.search.embedders.named import embedder_at
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.keeping import IndexState
from firefly_memory.service import delete_vectors, embed_missing, index_states, rebuild_indexes
from firefly_memory.service.indexes import Progress
from firefly_memory.target import changing


def show_states(where: Where, embedder: str | None) -> Exit:
    target = where.target()
    with changing(target, timeout=where.timeout) as store:
        states = index_states(store, embedder=embedder_named(embedder))
    accelerators = states_in(target, where.timeout)
    details = [
        {
            "kind": each.kind,
            "rows": each.rows,
            "language": each.language,
            "outdated": each.outdated,
            "without_vector": each.without_vector,
            "problems": list(each.problems),
            "vectors": dict(each.vectors),
        }
        for each in states
    ]
    lines = [line for each in states for line in _in_words(each)] or ["nothing here is searched by an index"]
    lines += in_words(accelerators)
    right = all(each.is_right for each in states)
    if not right:
        lines.append(where.advised("run `firefly-memory index rebuild` to make it right"))
    broken = [each for each in accelerators if each.state is AcceleratorState.BROKEN]
    lines += [where.advised(f"run `{each.command}` to make it complete") for each in broken]
    right = right and not broken
    show({"indexes": details, "accelerators": as_json(accelerators)}, lines)
    return Exit.DONE if right else Exit.DRIFT


def run_rebuild(where: Where, language: str | None, *, quiet: bool) -> None:
    with changing(where.target(), timeout=where.timeout) as store, progress_of("rebuilding", quiet=quiet) as progress:
        looked_at = rebuild_indexes(store, language, progress=progress)
    lines = [f"looked at {rows:,} {kind}, and made again what was not right" for kind, rows in looked_at.items()]
    _show(looked_at, lines, quiet=quiet)


def run_embed(where: Where, embedder: str | None, *, quiet: bool) -> None:
    used = embedder_named(embedder)
    with changing(where.target(), timeout=where.timeout) as store, progress_of("embedding", quiet=quiet) as progress:
        made = embed_missing(store, embedder=used, progress=progress)
    _show(made, [f"made the vectors of {rows:,} {kind}" for kind, rows in made.items()], quiet=quiet)


def run_delete_vectors(where: Where, name: str, *, quiet: bool) -> None:
    with changing(where.target(), timeout=where.timeout) as store, progress_of("deleting", quiet=quiet) as progress:
        deleted = delete_vectors(store, name, progress=progress)
    _show(deleted, [f"deleted the vectors of {rows:,} {kind}" for kind, rows in deleted.items()], quiet=quiet)


def embedder_named(name: str | None) -> Embedder | Default:
    """The embedder that ``--embedder`` stands for; by default the local one."""
    return DEFAULT if name is None else embedder_at(name)


def _in_words(state: IndexState) -> Iterator[str]:
    language = "no language yet" if state.language is None else state.language
    vectors = "no embedder is installed"
    if state.without_vector is not None:
        vectors = f"{state.without_vector:,} without a vector" if state.without_vector else "each with a vector"
    yield f"{state.kind}: {state.rows:,} rows, {language}, {vectors}"
    if state.outdated:
        yield f"  {state.outdated:,} rows have words that are not those of their texts"
    yield from (f"  {each}" for each in state.problems)
    yield from (f"  {count:,} vectors of {embedder}" for embedder, count in sorted(state.vectors.items()))


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
def progress_of(step: str, *, quiet: bool) -> Iterator[Progress | None]:
    with progress_bar(step, quiet=quiet or current().json, total=lambda _: None, unit="row") as bar:
        yield None if bar is None else lambda kind, rows: bar(step, _SoFar(kind, rows))
