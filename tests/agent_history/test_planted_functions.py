"""Operations on pydantic-ai's conversations run no planted functions and operators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationRecord
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import PostgreSQLStore
from firefly_memory.agents import SQLConversationStore
from tests.support.agent_histories import kept, message, messages, opened, texts
from tests.support.command_line import run
from tests.support.planted_functions import calls, planted_database


async def every_operation(conversations: SQLConversationStore) -> None:
    first = Conversation(conversation_id="a", messages=messages(4))
    line = await conversations.save(first)
    first.messages.append(message(4))
    await conversations.save(first)
    fork = ConversationRecord(conversation_id="b", head_id=line[1].id, forked_from="a", scope="s")
    await conversations.write_record(fork, expected_revision=None)
    assert texts(await conversations.load("b")) == ["0", "1"]
    assert len(await conversations.read_records(scope="s")) == 1
    assert len(await conversations.read_records(limit=1)) == 1
    assert (await conversations.read_entry(line[0].id)).id == line[0].id
    await conversations.delete("a")
    assert len(await kept(conversations)) == 2
    await conversations.delete("b")
    assert await kept(conversations) == {}


@pytest.mark.parametrize("kind", ["postgresql-asyncpg", "postgresql-psycopg", "asyncpg's engine"])
async def test_no_operation_on_conversations_runs_a_planted_function(
    kind: str, servers_of_the_session: dict[str, Callable[[], str]], tmp_path: Path
) -> None:
    with planted_database(servers_of_the_session["postgresql"](), f"planter_{uuid4().hex[:8]}") as url:
        if kind.startswith("postgresql"):
            async with opened(kind, f"{url}#own") as conversations:
                assert isinstance(conversations, SQLConversationStore)
                await every_operation(conversations)
                await conversations.save(Conversation(conversation_id="a", messages=messages(4)))
            for command in ("export", "import"):
                ended = run(command, "archive.jsonl", "--url", url, "--schema", "own", cwd=tmp_path)
                assert ended.returncode == 0, ended.stderr
        else:
            engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
            async with PostgreSQLStore(engine=engine, schema_name="own") as store:
                await every_operation(SQLConversationStore(store))
            await engine.dispose()
        assert calls(url) == 0
