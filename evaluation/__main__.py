"""`python -m evaluation`: recall@5, recall@10 with its standard error (±) and MRR of each mode, on each store.

The names of stores leave out the others: `python -m evaluation memory`. `python -m evaluation memory tuning` reads the
conversations for tuning only: it is for trying another setting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from evaluation.corpus import HELD_OUT, TUNING, Question, conversations
from evaluation.figures import Figures, figures
from evaluation.searching import MODES, Corpus, Scope
from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.hits import Mode
from tests.support import servers


def evaluated(scopes: Sequence[Scope], mode: Mode) -> Figures:
    """The figures of a mode over all questions, each asked in its scope."""
    searches = {question.text: search for search, questions in scopes for question in questions}
    every = [question for _, questions in scopes for question in questions]
    return figures(every, lambda text: searches[text](text, mode))


def table(title: str, scopes: Sequence[Scope]) -> None:
    """Print the figures of each mode."""
    print(f"\n{title}: {sum(len(questions) for _, questions in scopes)} questions")
    print(f"{'':10}recall@5  recall@10    ±   MRR")
    for mode in MODES:
        found = evaluated(scopes, mode)
        print(f"{mode:10}{found.recall_5:8.1f}  {found.recall_10:9.1f}  {found.error_10:3.1f}  {found.mrr:4.1f}")


def those(scopes: Sequence[Scope], wanted: Callable[[Question], bool]) -> list[Scope]:
    """Some of the questions."""
    return [(search, [each for each in questions if wanted(each)]) for search, questions in scopes]


def stores(running: ExitStack, directory: Path) -> dict[str, Callable[[], EntryStore]]:
    """Each store that has a search: makes an empty one."""
    return {
        "memory": InMemoryStore,
        "sqlite": lambda: SQLiteStore(directory / "memory.db"),
        "postgresql": lambda: PostgreSQLStore(running.enter_context(servers.postgresql())),
        "mongodb": lambda: MongoDBStore(running.enter_context(servers.mongodb())),
    }


def main(names: Sequence[str]) -> None:
    """``names`` are those of the stores, all of them without any; and ``tuning``, to read no other conversations."""
    parts = {"for tuning": conversations(TUNING)}
    if "tuning" not in names:
        parts["held out"] = conversations(HELD_OUT)
    wanted, embedder = {*names} - {"tuning"}, WordLlamaEmbedder()
    with TemporaryDirectory() as directory, ExitStack() as running:
        for name, open_store in stores(running, Path(directory)).items():
            if wanted and name not in wanted:
                continue
            with open_store() as store:
                stored = Corpus(store, embedder, [each for part in parts.values() for each in part])
                for part, asked in parts.items():
                    title = f"{name}, {len(asked)} conversations {part}"
                    table(f"{title}, each by itself", stored.each_by_itself(asked))
                    one_scope = stored.in_one_scope(asked)
                    table(f"{title}, in one scope with the others", one_scope)
                    if name == "memory":
                        for shares, what in ((True, "a word"), (False, "no word")):
                            chosen = those(one_scope, lambda each, shares=shares: each.shares_words == shares)  # type: ignore[misc]
                            table(f"{title}, in one scope, questions with {what} of their evidence", chosen)


if __name__ == "__main__":
    main([each.lower() for each in sys.argv[1:]])
