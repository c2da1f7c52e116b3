"""K7 and K8, knowledge: what a search finds, and that nothing in a question is syntax."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from firefly_memory.errors import ConfigurationError, InvalidEntryError
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.rows import scope_of
from firefly_memory.knowledge.types import Chunk
from firefly_memory.search.searchable import searchable
from firefly_memory.search.words import index_words, question_words
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped
from firefly_memory.testing.rules.knowledge_chunks import INSTANT, OPERATORS, chunks_in, found_in, somebody, texts_in


@check("K7", facet=KNOWLEDGE_LOG)
async def any_word_counts_and_more_of_them_count_more(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        both, one, other = "a boat on the lake", "my Boat", "lake, lake!"
        await knowledge.add("notes", [other, "a piano", one, both, "我在上海学习钢琴", "so 😀 it is", "CAFÉ noir"])
        assert (await found_in(knowledge, "notes", "which boat, which lake?"))[0] == both
        assert set(await found_in(knowledge, "notes", "which boat, which lake?")) == {both, one, other}
        assert set(await found_in(knowledge, "notes", "BOAT unheard-of")) == {one, both}
        for question, text in (("上海", "我在上海学习钢琴"), ("学习", "我在上海学习钢琴"), ("😀", "so 😀 it is")):
            assert await found_in(knowledge, "notes", question) == [text]
        assert await found_in(knowledge, "notes", "cafe\u0301") == ["CAFÉ noir"]
        for question in ("", " ", "?!", "boa", "oat", "unheard-of", "\x00"):
            assert await found_in(knowledge, "notes", question) == []
        assert await found_in(knowledge, "unknown", "boat") == []


@check("K7", facet=KNOWLEDGE_LOG)
async def dates_and_people_are_words_of_a_chunk(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        said = [
            Chunk("we went sailing", "Anna", date(2023, 5, 8)),
            Chunk("we went home", "Ben", INSTANT),
            Chunk("Anna went sailing", "Ben"),
        ]
        await knowledge.add("notes", said)
        assert await found_in(knowledge, "notes", "2023") == ["we went sailing"]
        assert await found_in(knowledge, "notes", "29 2024") == ["we went home"]
        assert set(await found_in(knowledge, "notes", "ben")) == {"we went home", "Anna went sailing"}
        assert (await found_in(knowledge, "notes", "who of Anna went sailing?"))[0] == "we went sailing"
        (hit, *_) = await knowledge.search("notes", "sailing Anna", 1, "text", explain=True)
        assert hit.explanation is not None
        assert hit.explanation.text is not None
        assert hit.explanation.text.person == "Anna"


@check("K7", facet=KNOWLEDGE_LOG)
async def any_name_of_a_person_is_known_in_a_question(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        for number, who in enumerate(("a\x00zoe", "\ud800", "\x10ben", "漢字", "O'Neil", '"quoted"')):
            collection = f"talk {number}"
            await knowledge.add(
                collection, [Chunk("we went sailing", who), Chunk("we went sailing", "Anna", group="g")]
            )
            hits = await knowledge.search(collection, f"sailing {who}", 5, "text", explain=True)
            words = question_words(who, "none")
            assert [hit.explanation.text.person for hit in hits] == ([who, None] if words else [None, None]), ascii(who)
            if words:
                (hit,) = await knowledge.search(collection, words[-1], 5, "text", explain=True)
                assert hit.explanation.text.person == who, ascii(who)


@check("K7", facet=KNOWLEDGE_LOG)
async def fuzzy_gives_the_newest_texts_that_have_the_question(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        with stopped(datetime(2024, 1, 1, tzinfo=UTC)) as clock:
            await knowledge.add("notes", Chunk("said last: boat-house", at=date(2025, 1, 1)))
            await knowledge.add("notes", Chunk("said first: Boat_House", at=INSTANT - timedelta(days=900)))
            clock.advance(hours=1)
            await knowledge.add("notes", ["added in between: a BOAT \n house", "another house"])
        newest_first = ["said last: boat-house", "added in between: a BOAT \n house", "said first: Boat_House"]
        for question in ("boat house", "oat  hou", "BOAT-HOUSE", "boat\thouse", " boat_house "):
            assert await found_in(knowledge, "notes", question, "fuzzy") == newest_first
        for most in (1, 2, 3):
            hits = await knowledge.search("notes", "boat house", most, "fuzzy")
            assert [each.text for each in hits] == newest_first[:most]
            assert [each.ranks for each in hits] == [{"fuzzy": rank} for rank in range(1, most + 1)]
        for question in ("", " ", "-", "house boat", "boat%house", "boa_house", "b.at"):
            assert await found_in(knowledge, "notes", question, "fuzzy") == []


@check("K7", facet=KNOWLEDGE_LOG)
async def a_search_gives_no_more_hits_than_it_was_asked_for(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        await knowledge.add("notes", [f"boat {number}" for number in range(12)])
        every = await knowledge.search("notes", "boat 7", 12, "text")
        assert every[0].text == "boat 7"
        assert sorted((each.score for each in every), reverse=True) == [each.score for each in every]
        assert [each.ranks for each in every] == [{"text": rank} for rank in range(1, 13)]
        for most in (1, 2, 11, 12, 13):
            assert await knowledge.search("notes", "boat 7", most, "text") == every[:most]
        assert all(each.explanation is None for each in every)
        for wrong in (0, -1, True, "3", None):
            await subject.refuses(ConfigurationError, knowledge.search("notes", "boat", wrong))
        for mode in ("", "TEXT", "like", None):
            await subject.refuses(ConfigurationError, knowledge.search("notes", "boat", 1, mode))
        for question in (None, 5, b"boat", ["boat"], {"$ne": ""}):
            await subject.refuses(InvalidEntryError, knowledge.search("notes", question))


@check("K7", facet=KNOWLEDGE_LOG)
async def chunks_of_a_group_lend_their_words_to_those_beside_them(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        turns = ["good day", "your piano", "since 1998", "very well", "that fine", "good bye", "well then"]
        ids = await knowledge.add("talks", [Chunk(text, group="first talk") for text in turns])
        await knowledge.add("talks", [Chunk(text, group="other talk") for text in ("hi you", "what now", "no idea")])
        await knowledge.add("talks", ["not grouped", "beside nobody"])
        hits = await knowledge.search("talks", "piano", 10, "text", explain=True)
        assert [each.id for each in hits] == [ids[1], ids[2], ids[0], ids[3], ids[4]]
        (own,) = hits[0].explanation.text.words.values()
        assert [hit.explanation.text.words for hit in hits] == [{"piano": own}, {}, {}, {}, {}]
        lent = [[(each.word, each.neighbour) for each in hit.explanation.text.lent] for hit in hits]
        assert lent == [[], *[[("piano", ids[1])]] * 4]
        weights = [round(each.weight / own, 9) for hit in hits for each in hit.explanation.text.lent]
        assert weights == [0.7, 0.5, 0.49, 0.343]


@check("K7", facet=KNOWLEDGE_LOG)
async def groups_of_one_name_in_two_collections_or_of_two_owners_lend_nothing(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge, chunks_in(subject) as of_another_space:
        ann = somebody()
        (piano,) = await knowledge.add("talks", Chunk("do you play the piano", group="talk", position=0))
        await knowledge.add("talks", Chunk("since 1998", group="talk", position=1), owner=ann)
        await knowledge.add("talks", Chunk("since 1999", group="talk", position=1), owner=somebody())
        await knowledge.add("others", Chunk("since 2000", group="talk", position=1))
        await of_another_space.add("talks", Chunk("since 2001", group="talk", position=1))
        for owner in (None, ann):
            assert await found_in(knowledge, "talks", "piano", owner=owner) == ["do you play the piano"]
        assert await found_in(knowledge, "others", "piano") == []
        violin, beside = await knowledge.add(
            "talks",
            [Chunk("the violin", group="talk", position=0), Chunk("since 1998", group="talk", position=1)],
            owner=ann,
        )
        assert await found_in(knowledge, "talks", "violin", owner=ann) == ["the violin", "since 1998"]
        hits = await knowledge.search("talks", "piano violin", 10, "text", owner=ann, explain=True)
        lent = {hit.id: [(each.word, each.neighbour) for each in hit.explanation.text.lent] for hit in hits}
        assert lent == {piano: [], violin: [], beside: [("violin", violin)]}


@check("K8", facet=KNOWLEDGE_LOG)
async def nothing_in_a_question_is_syntax(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        texts = ["alpha beta", "alpha", "gamma", "alphabet soup", "beta, then alpha", "and or not near", *OPERATORS]
        await knowledge.add("notes", texts)
        kept = await subject.view.log(KNOWLEDGE_LOG).language()
        assert kept is not None
        words = {text: set(index_words(text, kept.language)) for text in texts}
        for question in ("alpha", *OPERATORS):
            asked = set(question_words(question, kept.language))
            expected = {text for text in texts if asked & words[text]}
            assert set(await found_in(knowledge, "notes", question)) == expected, ascii(question)
            wanted = searchable(question)
            containing = {text for text in texts if wanted and wanted in searchable(text)}
            assert set(await found_in(knowledge, "notes", question, "fuzzy")) == containing, ascii(question)
        assert sorted(await texts_in(knowledge, "notes")) == sorted(texts)


@check("K8", facet=KNOWLEDGE_LOG)
async def a_word_of_a_scope_is_no_word_of_a_question(subject: Subject) -> None:
    async with chunks_in(subject) as knowledge:
        space, ann = knowledge.inner._options.space, somebody()  # noqa: SLF001 - made above
        await knowledge.add("notes", ["boat", "lake"])
        await knowledge.add("notes", "secret", owner=ann)
        for scope in (scope_of(space, "notes", None), scope_of(space, "notes", ann)):
            for question in (scope, scope[1:], f'"{scope}" OR "{scope}"', f"boat {scope}", f'" OR "{scope}" OR "'):
                for mode in ("text", "fuzzy"):
                    found = await found_in(knowledge, "notes", question, mode)
                    assert found == (["boat"] if question.startswith("boat") and mode == "text" else []), question
