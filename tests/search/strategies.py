"""Texts, questions and candidates as they may come."""

from __future__ import annotations

from hypothesis import strategies as st

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.ranking import ScopeCounts
from tests.support.value_strategies import any_text

HARD_TEXTS = [
    "",
    "\0",
    "\ud800",
    'NEAR(a b, 3) OR title:x* AND NOT "y"',
    "'a' & !b | c:* <-> d",
    '{"$where": "1"} -minus "phrase"',
    "100%_\\%",
    "'; DROP TABLE x; --",
    "שלום עולם",
    "مرحبا\u200fبالعالم",
    "👩‍👩‍👧 ❤️ 1️⃣ 🇩🇪",
    "我在北京大学",
    "ที่บ้าน",
    "e\u0301\u0323 İı ẞß ﬁ ①",
]

texts = any_text | st.sampled_from(HARD_TEXTS)
languages = st.sampled_from(["english", "german", "turkish", "arabic", "none"])

WORDS = ["boat", "lake", "piano", "may", "2023"]
people = st.sampled_from(["Anna", "Ben", "user"])


@st.composite
def candidate_lists(draw: st.DrawFn) -> list[Candidate]:
    ids = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), unique=True, max_size=12))
    return [
        Candidate(
            id=each,
            words=draw(st.sampled_from([[], ["_is_a"], ["_is_ant"], ["_is_p"]]))
            + draw(st.lists(st.sampled_from(WORDS), max_size=6)),
            who=draw(st.none() | people),
            about=draw(st.lists(people, max_size=2)),
            group=draw(st.sampled_from([None, "first", "second"])),
            position=draw(st.integers(0, 8)),
        )
        for each in ids
    ]


questions = st.lists(st.sampled_from([*WORDS, "nowhere"]), max_size=5)
scope_counts = st.builds(
    ScopeCounts, st.integers(0, 1000), st.dictionaries(st.sampled_from(WORDS), st.integers(0, 2000))
)
