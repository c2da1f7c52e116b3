"""The mode ``fuzzy`` on a PostgreSQL database that has pg_trgm switched on, on a server that has the extension."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from firefly_memory import InMemoryStore, PostgreSQLStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.sql.schema.commands import grants
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.knowledge.log import CHUNKS
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.rows import Filters
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.search.scopes import scope_word
from firefly_memory.search.sql.statements import statements_of
from firefly_memory.service import accelerators, disable_accelerator, enable_accelerator
from tests.support.accelerated import DebianPostgreSQL, debian
from tests.support.databases import empty_postgresql, execute
from tests.support.sql_statements import on_postgresql

__all__ = ["debian"]

TEXTS = [
    "The invoice 4711-B of April", "100% wool", "100 wool", "a_b", "a b", "axb", r"back\slash", r"back\\slash", "it's",
    'say "hello"', "Straße", "STRASSE", "naïve café", "日本語の文", "a*b", "$where", "\U0001f600 smile", "ab", "x" * 3_000,
]  # fmt: skip
QUESTIONS = [
    "4711", "voice", "%", "_", "100%", "0% w", "a_b", "a b", "\\", r"k\s", r"\\", "'", '"', "strasse", "ß", "café", "本語",
    "a*b", "$w", "\U0001f600", "b", "xxxx", "not there", "%%%", r"\%", "._%",
]  # fmt: skip


@pytest.fixture
def url(debian: DebianPostgreSQL) -> Iterator[str]:
    with empty_postgresql(debian.url) as url:
        yield url


def hits(knowledge: KnowledgeStore, question: str) -> set[str]:
    return {hit.text for hit in knowledge.search("notes", question, 100, "fuzzy")}


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_the_hits_are_the_same_with_and_without_it(driver: str, url: str) -> None:
    memory = KnowledgeStore(InMemoryStore(), embedder=None)
    memory.add("notes", TEXTS)
    expected = {question: hits(memory, question) for question in QUESTIONS}
    async with PostgreSQLStore(url.replace("postgresql:", f"postgresql+{driver}:")) as store:
        knowledge = KnowledgeStore(store, embedder=None)
        await knowledge.async_add("notes", TEXTS)
        for is_enabled in (False, True):
            if is_enabled:
                enable_accelerator(store, "pg_trgm")
                execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET enable_seqscan = off")
            for question in QUESTIONS:
                found = await knowledge.async_search("notes", question, 100, "fuzzy")
                assert {hit.text for hit in found} == expected[question], question


def test_a_large_scope_is_searched_by_the_index(url: str) -> None:
    with PostgreSQLStore(url) as store:
        KnowledgeStore(store, embedder=None).add("notes", "the first")
        enable_accelerator(store, "pg_trgm")
        execute(url, _MANY)
        execute(url, "VACUUM ANALYZE")
        statement = on_postgresql(statements_of(CHUNKS), "firefly_memory").containing
        scope = scope_word("", "notes")
        values = {"scopes": [scope], "wanted": "77777", "limit": 10}
        with psycopg.connect(url) as connection:
            asked = {**values, "scopes": "{" + scope + "}"}
            plan = "\n".join(
                row[0] for row in connection.execute(f"EXPLAIN {statement.sql}".encode(), statement.parameters(asked))
            )
        assert "idx_chunks_trigrams" in plan, plan


_MANY = """INSERT INTO firefly_memory.memory_chunks
    (id, space, collection, text, created_at, scope, position, searchable, words, newest)
    SELECT 'i' || n, '', 'notes', 'text', now(), scope, 0, 'text ' || n || ' of many others', words, now()
    FROM generate_series(1, 100000) AS n, (SELECT scope, words FROM firefly_memory.memory_chunks LIMIT 1) AS one"""


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_facts_are_the_same_with_and_without_it(driver: str, url: str) -> None:
    memory = MemoryService(InMemoryStore(), embedder=None)
    async with PostgreSQLStore(url.replace("postgresql:", f"postgresql+{driver}:")) as store:
        stored = MemoryService(store, embedder=None)
        for number, text in enumerate(TEXTS):
            memory.set_fact(f"key {number} of {text[:9]}", text, confidence=number % 2)
            await stored.async_set_fact(f"key {number} of {text[:9]}", text, confidence=number % 2)
        for is_enabled in (False, True):
            if is_enabled:
                enable_accelerator(store, "pg_trgm", kind="facts")
                execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET enable_seqscan = off")
                execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET enable_indexscan = off")
            for query in (*QUESTIONS, "key invoice", "invoice april", "april invoice", "1 2", "key", ""):
                for least in (None, 0.5):
                    found = await stored.async_search_facts(query, limit=100, min_confidence=least)
                    expected = memory.search_facts(query, limit=100, min_confidence=least)
                    assert [hit.text for hit in found] == [hit.text for hit in expected], query


_MANY_FACTS = """INSERT INTO firefly_memory.memory_facts
    (id, space, fact_scope, scope_id, key, value, fact_type, confidence, times_confirmed, times_contradicted, versions,
     written_by, access_count, valid_from, created_at, newest, scope, position, searchable, words)
    SELECT 'i' || n, space, 'global', '', 'key ' || n, '1', fact_type, 1, 1, 0, 0, 'w', 0, now(), now(), now(), scope, 0,
      'key ' || n || ' of many others' || chr(10) || '1', words
    FROM generate_series(1, 100000) AS n, (SELECT * FROM firefly_memory.memory_facts LIMIT 1) AS one"""


def test_a_query_that_few_of_many_facts_have_is_searched_by_the_index(url: str) -> None:
    with PostgreSQLStore(url) as store:
        memory = MemoryService(store, embedder=None)
        first = memory.set_fact("the first", 1)
        assert main(["index", "enable", "pg_trgm", "--kind", "facts", "--url", url]) == Exit.DONE
        execute(url, _MANY_FACTS)
        execute(url, "VACUUM ANALYZE")
        (scope,) = execute(url, f"SELECT scope FROM firefly_memory.memory_facts WHERE id = '{first.id}'")[0]
        statements = on_postgresql(ListStatements, "firefly_memory")
        for places in ([scope], [scope, "another"]):
            wanted = Filters(pattern=("key", "77777"), min_confidence=0.5)
            statement, values = statements.asked(places, wanted, 11, None)
            with psycopg.connect(url) as connection:
                found = connection.execute(f"EXPLAIN {statement.sql}".encode(), statement.parameters(values))
                plan = "\n".join(row[0] for row in found)
            assert "idx_facts_trigrams" in plan, plan
        assert [hit.fact.key for hit in memory.search_facts("key_77777")] == ["key 77777"]


def test_it_is_checked_dumped_and_switched_off(
    url: str, debian: DebianPostgreSQL, capsys: pytest.CaptureFixture[str]
) -> None:
    with PostgreSQLStore(url) as store:
        KnowledgeStore(store, embedder=None).add("notes", TEXTS)
        assert main(["index", "enable", "pg_trgm", "--url", url]) == Exit.DONE
        dump = subprocess.run(
            [str(debian.bin / "pg_dump"), "-d", url],
            check=True,
            capture_output=True,
            text=True,
            env=dict(debian.environment),
        )
        assert "gin_trgm_ops" in dump.stdout
        assert main(["db", "check", "--url", url]) == Exit.DONE
        execute(
            url,
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'firefly_memory.idx_chunks_trigrams'::regclass",
        )
        assert main(["db", "check", "--url", url]) == Exit.DRIFT
        assert "accelerator pg_trgm of chunks is without a complete index" in capsys.readouterr().out
        enable_accelerator(store, "pg_trgm")
        assert main(["index", "status", "--url", url]) == Exit.DONE
        said = capsys.readouterr().out
        assert "chunks: pg_trgm is enabled\n" in said
        assert "chunks: pgvector is not offered" in said
        disable_accelerator(store, "pg_trgm")
        assert {each.name: each.state.value for each in accelerators(store)} == {
            "pgvector": "not offered",
            "pg_trgm": "disabled",
        }


def test_a_role_that_may_create_nothing_searches_with_it(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(url, "CREATE SCHEMA extensions; CREATE EXTENSION pg_trgm SCHEMA extensions; CREATE ROLE reader LOGIN")
    execute(url, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
    try:
        with PostgreSQLStore(url) as store:
            enable_accelerator(store, "pg_trgm")
        for statement in grants("reader", "firefly_memory"):
            execute(url, statement)
        service = url.replace("postgres@", "reader@")
        with PostgreSQLStore(service, migrate=False) as store:
            knowledge = KnowledgeStore(store, embedder=None)
            knowledge.add("notes", TEXTS)
            assert hits(knowledge, "4711") == {TEXTS[0]}
        assert main(["index", "disable", "pg_trgm", "--url", service]) == Exit.FAILED
        assert "must be owner" in capsys.readouterr().err
    finally:
        execute(url, "DROP OWNED BY reader; DROP ROLE reader")
