"""How many documents have a word: exact where it matters, and about right where counting would take long."""

from __future__ import annotations

from firefly_memory import EntryStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.testing import Mode
from tests.knowledge import Chunks, row
from tests.support.knowledge_stores import IN_ONE_SERVER


@IN_ONE_SERVER
async def test_counts_are_exact_up_to_a_number_and_about_right_above_it(new_store: EntryStore, mode: Mode) -> None:
    texts = [f"often {'half' if number % 2 else ''} {'late' if number >= 290 else ''}" for number in range(300)]
    rows = [row(text, source=number) for number, text in enumerate(texts)]
    other = row("often", collection="others")
    await Chunks(new_store, mode).add(*rows, other)
    scope = rows[0].scope
    asked = [scope, "_nobody", "often", "half", "late", "none"]

    async def counts(most: int | None) -> dict[str, int]:
        if mode is Mode.BLOCKING:
            index = new_store.blocking.log(KNOWLEDGE_LOG).index
            return dict(run_without_loop(index.counts([scope, "_nobody"], asked, most)))
        return dict(await new_store.suspending.log(KNOWLEDGE_LOG).index.counts([scope, "_nobody"], asked, most))

    exact = {scope: 300, "_nobody": 0, "often": 300, "half": 150, "late": 10, "none": 0}
    assert await counts(None) == exact
    assert await counts(301) == exact
    about = await counts(20)
    for name, count in exact.items():
        if name in (scope, "_nobody") or count < 20:
            assert about[name] == count, name
        else:
            assert count / 2 <= about[name] <= count * 2, name
