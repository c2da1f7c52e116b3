"""Facts as the library stores them, many in one write."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.long_term_facts import Known
from firefly_memory import EntryStore, clock
from firefly_memory.codec import TEXT
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.longterm.fact_form import NewFact
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.places import Place
from firefly_memory.longterm.rows import FactRow, FactWrite
from firefly_memory.search.index_language import ENGLISH, IndexLanguage
from firefly_memory.search.words import FORM


def put_facts(store: EntryStore, some: Sequence[Known]) -> None:
    """Store new facts in one write."""
    writes = [FactWrite(row_of(each), None, overwrite=True, sets_type=True, sets_confidence=True) for each in some]
    run_without_loop(store.blocking.log(LONG_TERM_LOG).facts.set(writes, IndexLanguage(ENGLISH, FORM)))


def row_of(known: Known) -> FactRow:
    is_personal = known.whose.scope == "user"
    return NewFact(
        place=Place("default", known.whose.scope, known.whose.id),  # type: ignore[arg-type]
        key=known.key,
        value=str(TEXT.encode(known.value, "value")),
        fact_type="user_preference" if is_personal else "world_knowledge",
        confidence=known.confidence,
        source_episode_id=None,
        owner=known.whose.id if is_personal else None,
        now=clock.now(),
    ).row(ENGLISH)
