"""`python -m evaluation`: recall@5, recall@10 and MRR of each mode, over lists in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluation.corpus import Conversation, Question, conversations
from evaluation.figures import Figures, figures
from evaluation.in_memory import InMemorySearch
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder

MODES = ("fuzzy", "text", "semantic", "hybrid")

Search = Callable[[str, str], list[str]]
"""The ids of the hits for a question in a mode."""


def evaluated(scopes: Sequence[tuple[Search, Sequence[Question]]], mode: str) -> Figures:
    """The figures of a mode over all questions, each asked in its scope."""
    every = [(question, search) for search, questions in scopes for question in questions]
    by_text = {question.text: search for question, search in every}
    return figures([question for question, _ in every], lambda text: by_text[text](text, mode))


def table(title: str, scopes: Sequence[tuple[Search, Sequence[Question]]]) -> None:
    """Print the figures of each mode."""
    print(f"\n{title}: {sum(len(questions) for _, questions in scopes)} questions")
    print(f"{'':10}recall@5  recall@10  MRR")
    for mode in MODES:
        found = evaluated(scopes, mode)
        print(f"{mode:10}{found.recall_5:8.1f}  {found.recall_10:9.1f}  {found.mrr:4.1f}")


def main() -> None:
    corpus = conversations()
    embedder = WordLlamaEmbedder()
    apart = [(InMemorySearch(each.turns, embedder), each.questions) for each in corpus]
    table(f"{len(corpus)} conversations, each by itself", apart)
    together = InMemorySearch([turn for each in corpus for turn in each.turns], embedder)
    everything = [(together, [question for each in corpus for question in each.questions])]
    table("All conversations in one scope", everything)
    for shares, name in ((True, "a word"), (False, "no word")):
        table(f"Questions with {name} of their evidence, in one scope", [(together, _those(corpus, shares=shares))])


def _those(corpus: Sequence[Conversation], *, shares: bool) -> list[Question]:
    return [question for each in corpus for question in each.questions if question.shares_words == shares]


if __name__ == "__main__":
    main()
