"""Each sentence of the specification of facts, people, tools and search, and the tests that show it.

A rule of ``firefly_memory.testing.rules`` runs on every backend, in both modes. So do the tests of this folder whose
subject is not the arguments alone.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from firefly_memory.longterm import FACT_TYPES
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.testing import checks
from firefly_memory.testing.checks import Memory
from tests.support.documentation import ROOT
from tests.support.long_term_stores import IN_EACH

_PAGE = ROOT / "tests" / "data" / "long_term_memory.md"
_HERE = Path(__file__)

_VALUES = "L1-every_json_value_of_a_fact_comes_back_the_same"
_FIELDS = "L1-every_field_of_a_fact_comes_back"
_ONCE = "L2-a_new_value_confirms_the_fact_that_is_there"
_FIRST = "L3-the_most_specific_scope_wins_with_falsy_values_as_well"
_LOOKUP = "L3-a_lookup_takes_the_scopes_of_the_given_ids_and_counts_the_winner_only"
_EXACT = "L4-confirming_and_contradicting_are_exact"
_LISTED = "L6-facts_are_listed_by_confidence_then_the_newest_first_each_once"
_PERSON = "L7-an_id_of_a_channel_is_one_person"
_MERGED = "L8-a_merged_person_stands_for_the_target_everywhere"
_JOINED = "L8-the_records_of_two_people_are_joined"
_CHAINS = "L8-chains_of_merged_people_are_followed_and_cycles_refused"
_PREFERENCES = "L9-preferences_are_facts_and_every_view_of_them_is_the_same"
_CONTEXT = "L9-the_context_says_what_is_known_of_a_person"
_FUZZY = "L14-fuzzy_finds_the_words_of_a_query_in_their_order"
_REFUSED = "L11-what_is_refused_changes_nothing"
_ANSWERS = "test_the_answers_are_those_of_the_specification"
_SEEN = "test_a_tool_sees_what_is_global_and_what_its_agent_and_user_have"
_TYPES = "test_procedures_and_episodes_are_types_without_anything_in_them_yet"
_OVERWRITTEN = "test_overwriting_confirms_a_fact_and_skipping_leaves_it"
_IDENTIFIED = "test_a_person_is_met_counted_and_told_with_what_is_known"
_EXAMPLES = "test_each_specified_fact_is_stored_and_found"

SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "Facts": {
        "Facts are the agent's semantic memory -- extracted knowledge not tied to a specific episode.": (
            _ONCE,
            _FIELDS,
        ),
        'Like knowing "Paris is the capital of France."': (_EXAMPLES,),
        'key: Human-readable identifier (e.g., "user_timezone")': (_FIELDS, _EXAMPLES),
        "value: JSON value (string, number, object, etc.)": (_VALUES,),
        "fact_type: Classification of the fact (see table below)": (_FIELDS, _EXAMPLES),
        "scope: Visibility level: session, user, agent, or global": (_LOOKUP, _LISTED, _REFUSED),
        "confidence: Float 0.0 -- 1.0, tracking how reliable the fact is": (_EXACT, _REFUSED),
        "times_confirmed: How many times the fact has been re-asserted": (_ONCE, _EXACT),
        "times_contradicted: How many times contradictory information was seen": (_EXACT,),
        'user_preference: "User likes concise answers"': (_EXAMPLES, _PREFERENCES),
        'world_knowledge: "API endpoint is https://api.example.com"': (_EXAMPLES,),
        'self_knowledge: "My success rate for code review is 73%"': (_EXAMPLES,),
        'correction: "Don\'t use deprecated API v1, use v2 instead"': (_EXAMPLES,),
        'relationship: "User works at Acme Corp"': (_EXAMPLES,),
    },
    "Scope hierarchy": {
        "Facts follow a scope hierarchy where the most specific scope wins during lookup:": (_FIRST, _LOOKUP),
        "session (this conversation)": (_LOOKUP, _LISTED),
        "user (this user, all conversations)": (_LOOKUP, _LISTED),
        "agent (this agent, all users)": (_LOOKUP, _LISTED),
        "global (all agents, all users)": (_LOOKUP, _LISTED),
        "When looking up a fact by key, the MemoryService checks scopes from most specific (session) to least specific "
        "(global), returning the first match.": (_FIRST, _LOOKUP),
    },
    "Memory users": {
        "Memory users provide cross-channel identity tracking.": (_PERSON, _MERGED),
        "They allow the same person on Telegram, email, or other channels to be recognized as a single identity.": (
            _MERGED,
            _CHAINS,
        ),
        "A canonical_id (e.g., telegram:12345)": (_PERSON, "test_a_specified_person_is_met"),
        "Channel-specific identifiers (telegram_id, email)": (_PERSON, _JOINED),
        "A display_name": (_PERSON, _JOINED),
        "Cached preferences (denormalized from facts for fast lookup)": (_PREFERENCES,),
        "Conversation statistics": (_PERSON, _JOINED),
        "Users can be merged when the same person is identified across multiple channels via the merged_into_id "
        "field.": (_MERGED, _JOINED, _CHAINS),
    },
    "memory_read (recall)": {
        "The memory_read component gives agents a tool called recall that retrieves information from global memory.": (
            _ANSWERS,
            "test_a_tool_has_a_name_and_a_description_for_a_model",
            _SEEN,
        ),
        "recall(key='timezone') gives \"timezone = Australia/Adelaide\"": (_ANSWERS,),
        "No arguments: lists all facts visible to the agent": (_ANSWERS, _SEEN),
        "key argument: exact key lookup, falls back to fuzzy search if no exact match": (
            _ANSWERS,
            "test_a_key_that_no_fact_has_is_searched_for",
        ),
        "query argument: searches across facts, procedures, and/or episodes depending on memory_type": (
            "test_a_query_searches_keys_and_values",
            _TYPES,
        ),
        'memory_type: "facts": Which memory types to search: facts, procedures, episodes, or all': (_TYPES,),
        "limit: 10: Maximum number of results to return": ("test_no_more_facts_are_found_than_the_limit",),
        "min_confidence: 0.5: Minimum confidence score for fact results": (
            "test_doubtful_facts_are_found_by_their_key_and_in_the_list_but_by_no_search",
        ),
    },
    "memory_write (remember)": {
        "The memory_write component gives agents a tool called remember that stores facts in global memory.": (
            _ANSWERS,
            "test_a_tool_has_a_name_and_a_description_for_a_model",
        ),
        "remember(key='color', value='blue') gives \"Remembered: color = blue (created)\"": (_ANSWERS,),
        "Stores a key-value fact in global scope": (
            _ANSWERS,
            "test_a_tool_writes_to_its_scope_and_says_whose_data_it_is",
        ),
        "If the key already exists and overwrite is true, updates the value and increments times_confirmed": (
            _OVERWRITTEN,
            _ONCE,
        ),
        "If the key already exists and overwrite is false, skips the write": (_OVERWRITTEN, _ONCE),
        'fact_type: "world_knowledge": Default fact type for new facts': (
            "test_a_type_is_that_of_the_call_or_else_for_new_facts_that_of_the_tool",
        ),
        "overwrite: true: Whether to overwrite existing facts with the same key": (_OVERWRITTEN,),
    },
    "identify_user": {
        "The identify_user component is a graph node (not an agent tool) that identifies who is interacting with the "
        "workflow and loads their full context from memory.": (
            _IDENTIFIED,
            "test_it_is_made_for_a_service",
        ),
        "Extracting the channel and user identifier from the trigger payload": (
            "test_a_payload_says_who_speaks",
            "test_a_connected_node_wins_over_the_trigger",
        ),
        "Looking up or creating a MemoryUser record": (_IDENTIFIED, _PERSON),
        "Loading all user-scoped facts and recent episodes": (_IDENTIFIED, _CONTEXT),
        "Patching the workflow state with user_context for downstream nodes": (_IDENTIFIED,),
        "Place the identify_user node immediately after your trigger so that downstream agents have access to user "
        "context, preferences, and history via {{ identify_user.user_context }}.": (_IDENTIFIED, _CONTEXT),
    },
    "Search implementation": {
        "Memory search currently uses SQL ILIKE pattern matching with fuzzy normalization.": (_FUZZY,),
        "The search query is preprocessed so that spaces, underscores, and hyphens are treated as equivalent.": (
            _FUZZY,
        ),
        'For example, a search for "local time" will match a fact with the key "lesson_local_time_command".': (_FUZZY,),
        'query: "local time"': (_FUZZY,),
        "pattern: %local%time%": (_FUZZY,),
        "matches: lesson_local_time_command, local_time_zone, get-local-time": (_FUZZY,),
        "Facts are filtered by confidence score (min_confidence) and ordered by confidence descending.": (
            _FUZZY,
            _LISTED,
        ),
    },
}
"""By section and sentence, rules and tests of this folder."""


def _sentences() -> dict[str, list[str]]:
    """Of each section of the page; a row of a table is a sentence."""
    sections = re.split(r"^## ", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {}
    for section in sections:
        title, _, text = section.partition("\n")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found[title] = [each for number, line in enumerate(lines) for each in _of_line(line, lines[number + 1 :])]
    return found


def _of_line(line: str, following: list[str]) -> list[str]:
    if line.startswith("|"):
        is_heading = bool(following) and following[0].startswith("|---")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        return [] if is_heading or line.startswith("|---") else [": ".join(cells)]
    if line.startswith("- "):
        return [line.removeprefix("- ")]
    return re.split(r"(?<=[.:]) (?=[A-Z])", line)


def test_every_sentence_of_the_specification_is_in_the_table() -> None:
    assert {title: list(shown) for title, shown in SHOWN.items()} == _sentences()


def test_every_sentence_is_shown_by_tests_that_are_there() -> None:
    rules = {str(each) for each in checks()}
    tests = {
        each.name
        for path in _HERE.parent.glob("test_*.py")
        for each in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name.startswith("test_")
    }
    for shown in SHOWN.values():
        for sentence, names in shown.items():
            assert names, sentence
            assert {*names} - rules - tests == set(), sentence


_FACTS: list[tuple[str, Any, str]] = [
    ("capital_of_France", "Paris", "world_knowledge"),
    ("user_timezone", "Australia/Adelaide", "user_preference"),
    ("style", "User likes concise answers", "user_preference"),
    ("endpoint", "API endpoint is https://api.example.com", "world_knowledge"),
    ("success", "My success rate for code review is 73%", "self_knowledge"),
    ("api", "Don't use deprecated API v1, use v2 instead", "correction"),
    ("employer", "User works at Acme Corp", "relationship"),
]


@IN_EACH
async def test_each_specified_fact_is_stored_and_found(service: Memory) -> None:
    for key, value, fact_type in _FACTS:
        await service.set_fact(key, value, fact_type=fact_type)
    assert {fact_type for *_, fact_type in _FACTS} == set(FACT_TYPES)
    for key, value, fact_type in _FACTS:
        assert await service.get_fact(key) == value
        assert (await service.find_fact(key, "global")).fact_type == fact_type
        hits = await service.search_facts(value, fact_types=[fact_type])
        assert [each.fact.key for each in hits] == [key]


@IN_EACH
async def test_a_specified_person_is_met(service: Memory) -> None:
    person = await service.get_or_create_user("telegram", "12345", "Ann")
    assert (person.canonical_id, person.telegram_id, person.display_name) == ("telegram:12345", "12345", "Ann")


def test_the_reference_has_every_rule() -> None:
    page = (ROOT / "docs" / "reference" / "long-term.md").read_text(encoding="utf-8")
    rules = {each.rule for each in checks() if each.facet is LONG_TERM_LOG}
    assert re.findall(r"^\| (L\d+) \|", page, flags=re.MULTILINE) == [f"L{n}" for n in range(1, len(rules) + 1)]
    assert rules == {f"L{n}" for n in range(1, len(rules) + 1)}
