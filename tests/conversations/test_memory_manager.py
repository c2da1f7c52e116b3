"""``MemoryManager``: conversations and working memory in one object, configured by arguments or the environment."""

from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    ConversationTurn,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MemoryManager,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    StoreClosedError,
    WorkingMemory,
)
from firefly_memory.settings import EARLIER_PREFIX, MemorySettings, read_settings
from firefly_memory.target import target
from firefly_memory.testing import stopped
from tests.support.backends import Place

PREFIX = "FIREFLY_AGENTIC_MEMORY_"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("FIREFLY_AGENTIC_", "FIREFLY_GENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_the_shortcuts_lead_to_the_parts() -> None:
    manager = MemoryManager(max_conversation_tokens=32_000, summarize_threshold=10, working_scope_id="main-session")
    conversation = manager.new_conversation()
    turn = manager.add_turn(conversation, "hello", "hi", [{"role": "user", "content": "hello"}], idempotency_key="1")
    assert manager.conversation.get_turns(conversation) == [turn]
    assert manager.get_message_history(conversation) == [{"role": "user", "content": "hello"}]
    manager.set_fact("doc_type", "invoice", importance=0.9)
    assert manager.get_fact("doc_type") == manager.working.get("doc_type") == "invoice"
    assert manager.get_fact("nothing", "default") == "default"
    assert manager.get_working_context() == "Working Memory:\n- doc_type: invoice"
    assert isinstance(manager.store, InMemoryStore)
    manager.clear_conversation(conversation)
    assert manager.get_message_history(conversation) == []
    manager.clear_working()
    assert manager.get_working_context() == ""
    manager.new_conversation("a")
    manager.set_fact("b", 1)
    manager.clear_all()
    assert (manager.conversation.conversation_ids, manager.working.keys()) == ([], [])


async def test_a_fact_may_expire_after_a_timedelta_in_both_modes() -> None:
    manager = MemoryManager()
    with stopped() as clock:
        manager.set_fact("city", "Oslo", ttl=timedelta(hours=1))
        await manager.async_set_fact("name", "Ada", ttl=timedelta(hours=2))
        clock.advance(hours=1)
        assert (manager.get_fact("city"), manager.get_fact("name")) == (None, "Ada")
        clock.advance(hours=1)
        assert await manager.async_get_fact("name") is None
    with pytest.raises(InvalidEntryError, match=r"^ttl: must be longer than nothing, not -1 day"):
        manager.set_fact("city", "Oslo", ttl=timedelta(days=-1))
    with pytest.raises(InvalidEntryError, match=r"^ttl: must be longer than nothing"):
        await manager.async_set_fact("city", "Oslo", ttl=-5)


async def test_the_shortcuts_have_asynchronous_forms(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "memory.db") as store, MemoryManager(store=store) as manager:
        conversation = await manager.async_new_conversation("chat")
        await manager.async_add_turn(conversation, "hello", "hi", ["m"])
        assert await manager.async_get_message_history(conversation) == ["m"]
        await manager.async_set_fact("k", 1, ttl=60)
        assert await manager.async_get_fact("k") == 1
        assert await manager.async_get_working_context() == "Working Memory:\n- k: 1"
        await manager.async_clear_working()
        await manager.async_clear_conversation(conversation)
        await manager.async_clear_all()
        assert await manager.async_get_message_history(conversation) == []


@pytest.mark.parametrize("cls", [ConversationMemory, WorkingMemory, MemoryManager])
def test_both_modes_have_the_same_signature_and_docstring(cls: type) -> None:
    members = vars(cls)
    counterparts = [name for name in members if name.startswith("async_")]
    assert len(counterparts) > 8
    for name in counterparts:
        one, other = members[name.removeprefix("async_")], members[name]
        assert inspect.iscoroutinefunction(getattr(other, "__func__", other)), name
        function: Any = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
        assert not inspect.iscoroutinefunction(function), name
        assert inspect.signature(function) == inspect.signature(getattr(other, "__func__", other)), name
        assert one.__doc__, name
        assert one.__doc__ == getattr(other, "__func__", other).__doc__, name
    for name, member in members.items():
        if not name.startswith("_") and inspect.isfunction(member) and name not in counterparts:
            assert f"async_{name}" in members or name in {
                "fork",
                "with_strategies",
                "initialize",
                "initialize_sync",
                "close",
                "close_sync",
            }


def test_a_fork_shares_conversations_and_has_facts_of_its_own(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        parent = MemoryManager(store=store, working_scope_id="parent")
        child = parent.fork(working_scope_id="sub-agent-classify")
        child.set_fact("classification", "invoice")
        assert parent.get_fact("classification") is None
        conversation = parent.new_conversation()
        child.add_turn(conversation, "p", "a")
        assert len(parent.conversation.get_turns(conversation)) == 1
        assert child.conversation is parent.conversation
        assert child.store is parent.store
        assert MemoryManager(store=store, working_scope_id="sub-agent-classify").get_fact("classification") == "invoice"
        nameless = [parent.fork(), parent.fork()]
        nameless[0].set_fact("k", 1)
        assert nameless[1].get_fact("k") is None
        child.close_sync()
        parent.close_sync()
        assert store.count("working:sub-agent-classify") == 1, "whoever opens, closes"


def test_a_manager_closes_what_it_opened() -> None:
    with MemoryManager() as manager:
        child = manager.fork()
        child.close_sync()
        manager.set_fact("k", 1)
    with pytest.raises(StoreClosedError):
        manager.get_fact("k")


def test_everything_survives_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        with SQLiteStore(tmp_path / "memory.db") as store:
            manager = MemoryManager(store=store, working_scope_id="session")
            manager.add_turn("chat", "hello", "hi", ["m"])
            manager.working.increment("runs")
    with SQLiteStore(tmp_path / "memory.db") as store:
        manager = MemoryManager(store=store, working_scope_id="session")
        assert manager.get_message_history("chat") == ["m", "m"]
        assert manager.get_fact("runs") == 2


def test_without_settings_everything_is_in_memory() -> None:
    manager = MemoryManager.from_config()
    assert isinstance(manager.store, InMemoryStore)
    assert manager.conversation.max_tokens == 128_000
    assert manager.conversation.summarize_threshold == 10
    manager.close_sync()


def _summary(turns: list[ConversationTurn]) -> str:
    return f"{len(turns)} turns"


def test_a_summarizer_with_the_default_threshold_warns() -> None:
    """The documented default is so small that ten short turns are nine calls of a model."""
    words = f"more than 10 tokens together.* set {PREFIX}SUMMARIZE_THRESHOLD, for instance to 3000"
    with pytest.warns(UserWarning, match=words) as warned:
        manager = MemoryManager.from_config(summarizer=_summary)
    assert {each.filename for each in warned} == {__file__}
    assert manager.conversation.summarize_threshold == 10, "the documented default holds"
    manager.close_sync()


async def test_an_asynchronous_summarizer_warns_too() -> None:
    with pytest.warns(UserWarning, match=f"{PREFIX}SUMMARIZE_THRESHOLD"):
        manager = await MemoryManager.async_from_config(summarizer=_summary)
    await manager.close()


def test_an_explicit_threshold_or_an_own_manager_does_not_warn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    MemoryManager.from_config().close_sync()
    MemoryManager.from_config(summarizer=_summary, summarize_threshold=10).close_sync()
    (tmp_path / ".env").write_text(f"{PREFIX}SUMMARIZE_THRESHOLD=10\n")
    MemoryManager.from_config(summarizer=_summary).close_sync()
    (tmp_path / ".env").unlink()
    monkeypatch.setenv(f"{PREFIX}SUMMARIZE_THRESHOLD", "10")
    MemoryManager.from_config(summarizer=_summary).close_sync()
    with MemoryManager(summarizer=lambda _: pytest.fail("called")) as manager:
        for _ in range(10):
            manager.add_turn("chat", "how are you?", "fine, thank you")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_backend_can_be_configured(asynchronous: bool, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    configured: list[tuple[dict[str, str], type]] = [
        ({"BACKEND": "in_memory"}, InMemoryStore),
        ({"BACKEND": "file", "FILE_DIR": "files"}, FileStore),
        ({"BACKEND": "sqlite", "SQLITE_PATH": "memory.db"}, SQLiteStore),
        (
            {
                "BACKEND": "postgres",
                "POSTGRES_URL": place.postgresql(),
                "POSTGRES_POOL_SIZE": "3",
                "POSTGRES_POOL_MIN_SIZE": "1",
                "POSTGRES_SCHEMA": "configured",
            },
            PostgreSQLStore,
        ),
        (
            {
                "BACKEND": "mongodb",
                "MONGODB_URL": place.mongodb(),
                "MONGODB_DATABASE": "configured",
                "MONGODB_COLLECTION": "memories",
                "MONGODB_POOL_SIZE": "3",
            },
            MongoDBStore,
        ),
        ({"URL": "sqlite:///by-url.db"}, SQLiteStore),
        ({"URL": place.postgresql(), "POSTGRES_POOL_SIZE": "3", "POSTGRES_SCHEMA": "configured"}, PostgreSQLStore),
        ({"URL": place.mongodb(), "MONGODB_DATABASE": "configured", "MONGODB_POOL_SIZE": "3"}, MongoDBStore),
    ]

    async def use() -> Any:
        async with await MemoryManager.async_from_config(working_scope_id="s") as manager:
            await manager.async_set_fact("k", 1)
            assert await manager.async_get_fact("k") == 1
            return manager

    for variables, kind in configured:
        with monkeypatch.context() as patch:
            for name, value in {**variables, "MAX_CONVERSATION_TOKENS": "5000", "SUMMARIZE_THRESHOLD": "3000"}.items():
                patch.setenv(PREFIX + name, value)
            if asynchronous:
                manager = asyncio.run(use())
            else:
                with MemoryManager.from_config(working_scope_id="s") as manager:
                    manager.set_fact("k", 1)
                    assert manager.get_fact("k") == 1
            assert isinstance(manager.store, kind)
            assert (manager.conversation.max_tokens, manager.conversation.summarize_threshold) == (5000, 3000)
            if "configured" in variables.values():
                assert "configured" in repr(manager.store)


def test_variables_of_the_process_override_a_settings_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"{PREFIX}BACKEND=file\n{PREFIX}FILE_DIR=from-file\nOTHER=1\n")
    assert (read_settings().backend, read_settings().file_dir) == ("file", "from-file")
    monkeypatch.setenv(f"{PREFIX}FILE_DIR", "from-process")
    assert read_settings().file_dir == "from-process"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"BACKEND": "redis"}, f"{PREFIX}BACKEND: must be one of in_memory, file, sqlite, postgres, mongodb"),
        ({"BACKEND": "postgres"}, f"{PREFIX}POSTGRES_URL"),
        ({"BACKEND": "mongodb"}, f"{PREFIX}MONGODB_URL"),
        ({"BACKEND": "sqlite"}, f"{PREFIX}SQLITE_PATH"),
        ({"MAX_CONVERSATION_TOKENS": "many"}, f"{PREFIX}MAX_CONVERSATION_TOKENS"),
        ({"MAX_CONVERSATION_TOKENS": "0"}, f"{PREFIX}MAX_CONVERSATION_TOKENS"),
        ({"POSTGRES_POOL_SIZE": "-1"}, f"{PREFIX}POSTGRES_POOL_SIZE"),
        ({"BACKEND": "mongodb", "MONGODB_URL": "nonsense:secret"}, "mongodb://"),
        ({"URL": "redis://user:secret@host"}, f"{PREFIX}URL: no store has a URL that starts with 'redis'"),
        ({"BACKEND": "postgres", "POSTGRES_URL": "mysql://user:secret@host/x"}, f"{PREFIX}POSTGRES_URL: no store"),
        ({"POSTGRES_POOLER": "statement"}, f"{PREFIX}POSTGRES_POOLER: must be one of transaction, session"),
    ],
    ids=str,
)
def test_an_invalid_setting_is_named_and_no_secret_is_shown(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError) as caught:
        MemoryManager.from_config()
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("in_file", [False, True], ids=["process", ".env"])
@pytest.mark.parametrize("prefix", [PREFIX, EARLIER_PREFIX])
def test_an_empty_variable_counts_as_unset(
    prefix: str, in_file: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [f"{prefix}{name.upper()}" for name in MemorySettings.model_fields]
    if in_file:
        (tmp_path / ".env").write_text("".join(f"{name}=\n" for name in names))
    else:
        for name in names:
            monkeypatch.setenv(name, "")
    settings = read_settings()
    assert settings == MemorySettings.model_validate({})
    assert settings.model_fields_set == set()
    assert target(settings) is None


def test_an_empty_variable_does_not_hide_another_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"{PREFIX}SUMMARIZE_THRESHOLD=3000\n")
    monkeypatch.setenv(f"{PREFIX}SUMMARIZE_THRESHOLD", "")
    assert read_settings().summarize_threshold == 3000
    monkeypatch.setenv(f"{PREFIX}BACKEND", "")
    monkeypatch.setenv(f"{EARLIER_PREFIX}BACKEND", "nonsense")
    with (
        pytest.warns(DeprecationWarning, match=PREFIX),
        pytest.raises(ConfigurationError, match=f"^{EARLIER_PREFIX}BACKEND"),
    ):
        read_settings()


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}POSTGRES_URL", "postgresql://user:secret@host/name")
    assert "secret" not in repr(read_settings())
    found = target(read_settings())
    assert found is not None
    assert found.url == "postgresql://user:secret@host/name"
    assert "secret" not in repr(found)


def test_the_first_names_of_variables_work_with_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIREFLY_GENAI_MEMORY_BACKEND", "file")
    (tmp_path / ".env").write_text("FIREFLY_GENAI_MEMORY_FILE_DIR=old\nFIREFLY_GENAI_MEMORY_UNKNOWN=1\n")
    with pytest.warns(DeprecationWarning, match=PREFIX) as warned:
        settings = read_settings()
    assert (settings.backend, settings.file_dir) == ("file", "old")
    assert sorted(str(each.message) for each in warned) == [
        f"FIREFLY_GENAI_MEMORY_BACKEND is now called {PREFIX}BACKEND",
        f"FIREFLY_GENAI_MEMORY_FILE_DIR is now called {PREFIX}FILE_DIR",
    ]
    monkeypatch.setenv(f"{PREFIX}BACKEND", "in_memory")
    with pytest.warns(DeprecationWarning, match=PREFIX):
        assert read_settings().backend == "in_memory", "the present name wins"
    monkeypatch.setenv("FIREFLY_GENAI_MEMORY_SUMMARIZE_THRESHOLD", "-1")
    with (
        pytest.warns(DeprecationWarning, match=PREFIX),
        pytest.raises(ConfigurationError, match="FIREFLY_GENAI_MEMORY_SUMMARIZE_THRESHOLD"),
    ):
        read_settings()


def test_the_warning_of_an_earlier_name_points_at_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIREFLY_GENAI_MEMORY_BACKEND", "in_memory")
    with pytest.warns(DeprecationWarning, match=PREFIX) as warned:
        MemoryManager.from_config().close_sync()
    assert {each.filename for each in warned} == {__file__}


def test_an_unusable_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"OTHER=\xe9\n")
    with pytest.raises(ConfigurationError, match=r"the file \.env is not UTF-8"):
        read_settings()
    (tmp_path / ".env").write_text("FIREFLY_GENAI_MEMORY_POSTGRES_POOL_SIZE=many\n")
    with (
        pytest.warns(DeprecationWarning, match=PREFIX),
        pytest.raises(ConfigurationError, match=r"^FIREFLY_GENAI_MEMORY_POSTGRES_POOL_SIZE"),
    ):
        read_settings()


def test_from_config_takes_no_store() -> None:
    with pytest.raises(ConfigurationError, match=r"MemoryManager\(store=…\)"):
        MemoryManager.from_config(store=InMemoryStore())  # type: ignore[call-arg]


def test_invalid_arguments_are_refused() -> None:
    for arguments in ({"max_conversation_tokens": 0}, {"summarize_threshold": -1}, {"summarizer": "gpt"}):
        with pytest.raises(ConfigurationError):
            MemoryManager(**arguments)
    with pytest.raises(ConfigurationError, match="is no store"):
        MemoryManager(store=object())  # type: ignore[arg-type]
    for scope_id in ("", "x" * 510, None):
        with pytest.raises(ValueError, match="scope_id"):
            WorkingMemory(scope_id=scope_id)  # type: ignore[arg-type]
