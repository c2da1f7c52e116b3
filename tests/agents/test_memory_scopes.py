"""The scopes of facts: which facts a model reads, where it writes, and when facts are deleted. Users are separate."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory import (
    ConfigurationError,
    EntryStore,
    FileStore,
    InvalidEntryError,
    MemoryManager,
    StaleConversationError,
    WorkingMemory,
)
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.agents.delegation import DelegationRouter
from firefly_memory.pipeline import AgentStep, Parallel, PipelineContext, PipelineEngine
from tests.support.folder_backend import FolderStore
from tests.support.scripted_model import TOLD, Scripted


def remembering(key: str = "is_admin", value: str = "true", answer: str = "noted") -> Scripted:
    return Scripted({"remember": {"key": key, "value": value}}, answer)


def agents_of(manager: MemoryManager) -> list[Any]:
    """All kinds, with the defaults."""
    return [
        Agent(capabilities=[Memory(manager, tools=True)]),
        FireflyAgent(name="ours", memory=manager, memory_tools=True),
        FireflyAgent(name="ours", memory=Memory(manager, tools=True)),
    ]


async def ran(agent: Any, way: str, scripted: Scripted, conversation_id: str | None) -> str:
    """A run in one of the ways that there are; the id of its conversation."""
    if way == "stream":
        async with agent.run_stream("go", model=scripted.model, conversation_id=conversation_id) as stream:
            await stream.get_output()
            return str(stream.all_messages()[-1].conversation_id)
    if way == "sync":
        result = await asyncio.to_thread(run_sync, agent, scripted, conversation_id)
    else:
        result = await agent.run("go", model=scripted.model, conversation_id=conversation_id)
    return str(result.conversation_id)


def run_sync(agent: Any, scripted: Scripted, conversation_id: str | None) -> Any:
    loop = asyncio.new_event_loop()  # pydantic-ai would make one and leave it open
    asyncio.set_event_loop(loop)
    try:
        return agent.run_sync("go", model=scripted.model, conversation_id=conversation_id)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.parametrize("kind", range(3), ids=["Agent", "FireflyAgent", "FireflyAgent of Memory"])
@pytest.mark.parametrize("way", ["run", "stream", "sync"])
@pytest.mark.parametrize("conversation_id", ["of mallory", None], ids=["named", "new"])
async def test_facts_of_one_user_do_not_reach_another_user(kind: int, way: str, conversation_id: str | None) -> None:
    manager = MemoryManager()
    manager.set_fact("language", "Portuguese")
    agent = agents_of(manager)[kind]
    mallorys = remembering()
    conversation = await ran(agent, way, mallorys, conversation_id)
    assert mallorys.instructions == [f"{TOLD}- language: Portuguese", f"{TOLD}- language: Portuguese\n- is_admin: true"]
    for other in ("of ada", None):
        adas = Scripted({"recall": {"key": "is_admin"}}, "no")
        await ran(agent, way, adas, other)
        assert adas.instructions == [f"{TOLD}- language: Portuguese"] * 2
        assert "true" not in str(adas.texts)
    again = Scripted({"recall": {"key": "is_admin"}}, "yes")
    await ran(agent, way, again, conversation)
    assert "true" in again.texts[-1], "it is hers in her conversation"
    assert manager.working.to_dict() == {"language": "Portuguese"}


async def test_no_export_contains_facts_of_another_conversation(manager: MemoryManager) -> None:
    agent = Agent(capabilities=[Memory(manager, tools=True)])
    await agent.run("go", model=remembering("mallorys", "poison").model, conversation_id="mallory")
    await agent.run("go", model=Scripted().model, conversation_id="ada")
    assert "poison" not in str(manager.conversation.export_conversation("ada", raw_messages=True))
    assert manager.store.load("working:default") == []
    assert [entry.content for entry in manager.store.load("working:conversation:mallory")] == ["poison"]


async def test_the_facts_of_the_manager_come_first_and_hide_the_same_key(manager: MemoryManager) -> None:
    own = manager.fork(conversation_id="c")
    own.set_fact("is_admin", "true")
    own.set_fact("city", "Lyon")
    manager.set_fact("is_admin", "false")
    scripted = Scripted({"recall": {"key": "is_admin"}}, {"recall": {"key": "city"}}, "done")
    agent = Agent(scripted.model, capabilities=[Memory(manager, tools=True)])
    await agent.run("go", conversation_id="c")
    assert scripted.instructions[0] == f"{TOLD}- is_admin: false\n- city: Lyon"
    answers = [text for text in scripted.texts[-1] if text != "go"]
    assert answers == ["false", "Lyon"]


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_key_of_the_managers_is_not_written_by_a_model_in_a_conversation(
    manager: MemoryManager, overwrite: bool
) -> None:
    manager.set_fact("is_admin", "false")
    scripted = remembering()
    agent = Agent(scripted.model, capabilities=[Memory(manager, tools=True, overwrite=overwrite)])
    await agent.run("go", conversation_id="c")
    assert "'is_admin' is a fact of the application" in str(scripted.texts[-1])
    assert manager.get_fact("is_admin") == "false"
    assert manager.fork(conversation_id="c").working.to_dict() == {}


async def test_a_model_may_write_to_the_managers_scope_if_allowed(manager: MemoryManager) -> None:
    manager.set_fact("is_admin", "false")
    shared: dict[str, Any] = {"tools": True, "working_scope": "manager"}
    first = Scripted(
        {"remember": {"key": "is_admin", "value": "true"}}, {"remember": {"key": "city", "value": "Lyon"}}, "done"
    )
    await Agent(first.model, capabilities=[Memory(manager, **shared)]).run("go", conversation_id="c")
    assert "'is_admin' is a fact of the application" in str(first.texts[-1])
    assert manager.working.to_dict() == {"is_admin": "false", "city": "Lyon"}
    second = remembering("city", "Paris")
    await Agent(second.model, capabilities=[Memory(manager, **shared)]).run("go", conversation_id="d")
    assert manager.get_fact("city") == "Paris", "what a model wrote, a model may replace"
    assert second.instructions[0] == f"{TOLD}- is_admin: false\n- city: Lyon", "all conversations are told"
    manager.set_fact("city", "Rome")
    for overwrite, city in ((False, "Rome"), (True, "Oslo")):
        model = remembering("city", "Oslo").model
        await Agent(model, capabilities=[Memory(manager, overwrite=overwrite, **shared)]).run("go")
        assert manager.get_fact("city") == city
    entries = {entry.key: entry.metadata for entry in manager.store.load("working:default")}
    assert entries == {"is_admin": {}, "city": {"written_by": "model"}}


async def test_a_fact_that_the_application_sets_at_the_same_moment_is_not_replaced(manager: MemoryManager) -> None:
    memory = Memory(manager, tools=True, working_scope="manager")
    for number in range(6):
        # A model wrote the very value that the application then sets: who wrote it is what counts.
        key = f"key {number}"
        await Agent(remembering(key, "same").model, capabilities=[memory]).run("go")
        runs = [Agent(remembering(key, f"of {each}").model, capabilities=[memory]).run("go") for each in "ab"]
        await asyncio.gather(*runs, manager.async_set_fact(key, "same"))
        (entry,) = [entry for entry in manager.store.load("working:default") if entry.key == key]
        assert (entry.content, entry.metadata) == ("same", {})


async def test_of_two_models_that_write_a_fact_at_once_one_wins(manager: MemoryManager) -> None:
    memory = Memory(manager, tools=True, working_scope="manager")
    scripts = [remembering("k", f"of {number}") for number in range(8)]
    await asyncio.gather(*(Agent(each.model, capabilities=[memory]).run("go") for each in scripts))
    (entry,) = manager.store.load("working:default")
    assert entry.content in [f"of {number}" for number in range(8)]
    assert not [each for each in scripts if "remembered" not in str(each.texts[-1])]


# The names of scopes


async def test_no_other_scope_equals_the_scope_of_a_conversation() -> None:
    for name in ("conversation:", "conversation:c", "conversation:sha256:" + "0" * 64):
        for make in (
            lambda scope_id: WorkingMemory(scope_id=scope_id),
            lambda scope_id: MemoryManager(working_scope_id=scope_id),
            MemoryManager().fork,
        ):
            with pytest.raises(InvalidEntryError, match="conversation_id= names"):
                make(name)
        by_user = Memory(MemoryManager(), working_scope=lambda _, name=name: name)  # type: ignore[misc]
        with pytest.raises(InvalidEntryError, match="scopes of conversations"):
            await Agent(Scripted().model, capabilities=[by_user]).run("go")
    by_user = Memory(MemoryManager(), working_scope=lambda _: "default")
    with pytest.raises(ConfigurationError, match="the manager's own scope"):
        await Agent(Scripted().model, capabilities=[by_user]).run("go")
    with pytest.raises(ConfigurationError, match="not both"):
        MemoryManager().fork("a scope", conversation_id="c")


def test_each_conversation_has_a_scope_of_its_own_however_long_its_name_is() -> None:
    long = ["x" * 512, "x" * 511 + "y", "x" * 491, "x" * 492]
    hashed = [WorkingMemory(conversation_id=name).scope_id.removeprefix("conversation:") for name in long]
    names = [*long, *hashed, "default", "conversation:c", "c", "\x00", "\ud800", "sha256:", "sha256:x"]
    scopes = [WorkingMemory(conversation_id=name).namespace for name in dict.fromkeys(names)]
    assert len(set(scopes)) == len(dict.fromkeys(names))
    assert all(len(scope) <= 512 for scope in scopes)
    assert WorkingMemory(conversation_id="c").namespace == "working:conversation:c"
    for wrong in ("", "x" * 513, 5):
        with pytest.raises(InvalidEntryError, match="conversation_id"):
            WorkingMemory(conversation_id=wrong)  # type: ignore[arg-type]


# Forks


async def test_in_a_fork_the_model_writes_into_the_fork(store: EntryStore) -> None:
    manager = MemoryManager(store=store, working_scope_id="main")
    for agent in agents_of(manager):
        scripted = remembering()
        router = DelegationRouter([agent], memory=manager)
        await router.route("go", conversation_id="c", model=scripted.model)
        assert scripted.instructions == ["", f"{TOLD}- is_admin: true"]
        child = manager.fork("research")
        await router.route("go", conversation_id="c", model=remembering().model, memory=child)
        assert child.working.to_dict() == {"is_admin": "true"}
        child.clear_working()
    assert store.namespaces("working:") == [], "what a route's own fork had has ended with it"


@pytest.mark.parametrize("door", ["Memory", "FireflyAgent", "remembering", "with Memory", "route"])
@pytest.mark.parametrize("scope", ["default", "callable"])
async def test_every_way_to_pass_a_fork_writes_into_the_fork(door: str, scope: str) -> None:
    manager = MemoryManager()
    fork = manager.fork("user:ada")
    options: dict[str, Any] = {"tools": True}
    if scope == "callable":
        options["working_scope"] = lambda _: "user:mallory"
    model = remembering("k", "v").model
    ours: Any = FireflyAgent(name="a", model=model, memory=Memory(manager, **options))
    run: dict[str, Any] = {"conversation_id": "c"}
    match door:
        case "Memory":
            await Agent(model, capabilities=[Memory(fork, **options)]).run("go", **run)
        case "FireflyAgent":
            given: Any = Memory(fork, **options) if scope == "callable" else fork
            tools: dict[str, Any] = {} if scope == "callable" else {"memory_tools": True}
            await FireflyAgent(name="a", model=model, memory=given, **tools).run("go", **run)
        case "remembering":
            await ours.run("go", capabilities=[ours.remembering(fork)], **run)
        case "with Memory":
            await ours.run("go", capabilities=[Memory(fork, **options)], **run)
        case _:
            await DelegationRouter([ours]).route("go", memory=fork, **run)
    assert manager.store.namespaces("working:") == ["working:user:ada"]


def test_no_fork_has_the_scope_of_its_own_manager() -> None:
    for manager, own in ((MemoryManager(), "default"), (MemoryManager(working_scope_id="bank"), "bank")):
        child = manager.fork("research")
        for forked, names in ((manager, [own]), (child, [own, "research"]), (manager.fork(conversation_id="c"), [own])):
            for name in names:
                with pytest.raises(ConfigurationError, match="the manager's own scope"):
                    forked.fork(name)
        assert child.fork().fork("more").working.scope_id == "more"
        of_one = manager.fork(conversation_id="c")
        assert of_one.fork(conversation_id="c").working.scope_id == of_one.working.scope_id


async def test_a_route_or_step_with_an_unforked_manager_writes_to_the_conversation(store: EntryStore) -> None:
    manager = MemoryManager(store=store, working_scope_id="main")
    agent = FireflyAgent(name="a", memory_tools=True)
    await DelegationRouter([agent]).route(
        "go", conversation_id="c", model=remembering("k", "of a route").model, memory=manager
    )
    assert manager.fork(conversation_id="c").get_fact("k") == "of a route"
    steps = [AgentStep(agent, "go", name="step", model=remembering("l", "of a step").model)]
    await PipelineEngine(steps).run(PipelineContext(memory=manager, conversation_id="c"))
    assert manager.fork(conversation_id="c").get_fact("l") == "of a step"
    assert manager.working.to_dict() == {}


async def test_a_branch_of_a_pipeline_has_facts_that_end_with_it(store: EntryStore) -> None:
    manager = MemoryManager(store=store, working_scope_id="main")
    agent = FireflyAgent(name="a", memory_tools=True)
    models = {name: remembering("k", name) for name in ("one", "two")}
    branches = {name: AgentStep(agent, "go", name=name, model=each.model) for name, each in models.items()}
    both = Parallel(branches, merge=lambda _, done: {name: each.output for name, each in done.items()})
    await PipelineEngine([both]).run(PipelineContext(memory=manager))
    assert [each.instructions[-1] for each in models.values()] == [f"{TOLD}- k: one", f"{TOLD}- k: two"]
    assert store.namespaces("working:") == []


# Deleting


async def test_deleting_a_conversation_deletes_its_facts(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    names = ["c", "c2", "x" * 512, "a\x00b"]
    for name in names:
        manager.add_turn(name, "p", "a")
        manager.fork(conversation_id=name).set_fact("k", name)
    manager.set_fact("k", "the manager's")
    manager.clear_conversation("c")
    await manager.async_clear_conversation("x" * 512)
    left = {name: manager.fork(conversation_id=name).get_fact("k") for name in names}
    assert left == {"c": None, "c2": "c2", "x" * 512: None, "a\x00b": "a\x00b"}
    manager.conversation.clear("a\x00b")
    assert manager.fork(conversation_id="a\x00b").working.to_dict() == {}
    manager.fork("conversations").set_fact("k", "another scope")
    manager.conversation.clear_all()
    assert store.namespaces("working:") == ["working:conversations", "working:default"]
    manager.fork(conversation_id="of facts only").set_fact("k", 1)
    manager.add_turn("c", "p", "a")
    manager.clear_all()
    assert store.namespaces("working:") == ["working:conversations"]


@pytest.mark.parametrize("kind", ["file", "custom"])
def test_files_and_custom_stores_delete_the_facts_of_a_conversation_too(kind: str, tmp_path: Path) -> None:
    manager = MemoryManager(store=FileStore(tmp_path) if kind == "file" else FolderStore(tmp_path))
    for name in ("c", "d", "e"):
        manager.add_turn(name, "p", "a")
        manager.fork(conversation_id=name).set_fact("k", name)
    manager.clear_conversation("c")
    assert manager.fork(conversation_id="c").working.to_dict() == {}
    assert manager.fork(conversation_id="d").working.to_dict() == {"k": "d"}
    manager.fork("conversations").set_fact("k", "another scope")
    names = ["without turns", "x" * 512, "A/b:c"] if kind == "file" else []  # five methods list no namespaces
    for name in names:
        manager.fork(conversation_id=name).set_fact("k", name)
    manager.clear_all()
    assert [manager.fork(conversation_id=name).working.to_dict() for name in names] == [{}] * len(names)
    assert manager.fork("conversations").get_fact("k") == "another scope"
    assert manager.fork(conversation_id="d").working.to_dict() == {}
    assert manager.fork(conversation_id="e").working.to_dict() == {}


@pytest.mark.parametrize("way", ["run", "stream", "fails"])
@pytest.mark.parametrize("on_conflict", ["append", "reject", "branch"])
async def test_a_fact_remembered_after_its_conversation_was_deleted_is_never_read(
    store: EntryStore, on_conflict: Any, way: str
) -> None:
    manager = MemoryManager(store=store)
    manager.add_turn("c", "p", "a")
    answers: list[str | Exception] = [RuntimeError("no answer")] if way == "fails" else ["noted"]
    scripted = Scripted({"forget": {}}, {"remember": {"key": "diagnosis", "value": "secret"}}, *answers)
    agent = Agent(capabilities=[Memory(manager, tools=True, on_conflict=on_conflict)])

    @agent.tool_plain
    async def forget() -> str:
        await manager.async_clear_conversation("c")
        return "forgotten"

    with suppress(StaleConversationError, RuntimeError):
        await ran(agent, "run" if way == "fails" else way, scripted, "c")
    left = store.namespaces("working:")
    assert "secret" in str(scripted.asked[-1]), "it was remembered"
    assert left == (["working:conversation:c"] if "c" in manager.conversation.conversation_ids else [])
    assert ("c" in manager.conversation.conversation_ids) == (on_conflict == "append")


async def test_a_failed_run_keeps_the_facts_of_a_conversation_without_turns(
    manager: MemoryManager,
) -> None:
    manager.fork(conversation_id="c").set_fact("k", "of the application")
    agent = Agent(Scripted(RuntimeError("no")).model, capabilities=[Memory(manager, on_conflict="reject")])
    with pytest.raises(RuntimeError):
        await agent.run("go", conversation_id="c")
    assert manager.fork(conversation_id="c").get_fact("k") == "of the application"
