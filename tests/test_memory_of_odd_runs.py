"""Runs of agents that pause, resume, say nothing or strange things: what the next run is told is true."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic_ai import (
    Agent,
    AgentRunResult,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolReturn,
)
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    ConversationTurn,
    EntryStore,
    InvalidEntryError,
    MemoryManager,
    SQLiteStore,
    TokenEstimator,
)
from firefly_memory.agents import FireflyAgent, Memory
from tests.interrupting import cancelled_at, tasks_left
from tests.scripted import Scripted


def stored(manager: MemoryManager, conversation_id: str = "c") -> list[tuple[str, str]]:
    return [(turn.user_prompt, turn.assistant_response) for turn in manager.conversation.get_turns(conversation_id)]


def kinds(messages: list[ModelMessage]) -> list[list[str]]:
    return [[part.part_kind for part in message.parts] for message in messages]


class Office:
    """An agent with a tool that answers, one that somebody has to answer, and one that somebody has to approve."""

    def __init__(self, manager: MemoryManager, scripted: Scripted, **options: Any) -> None:
        self.paid: list[str] = []
        self.scripted = scripted
        self.agent: Agent[None, Any] = Agent(
            scripted.model, output_type=[str, DeferredToolRequests], capabilities=[Memory(manager)], **options
        )

        @self.agent.tool_plain
        def look() -> str:
            return "seen"

        @self.agent.tool_plain
        def ask(question: str = "") -> str:
            raise CallDeferred

        @self.agent.tool_plain(requires_approval=True)
        def pay(what: str = "") -> str:
            self.paid.append(what)
            return "payment 17 made"

    async def run(self, prompt: str | None = None, **options: Any) -> Any:
        return (await self.agent.run(prompt, conversation_id="c", **options)).output

    async def paused(self, prompt: str) -> DeferredToolResults:
        requests = await self.run(prompt)
        assert isinstance(requests, DeferredToolRequests)
        return DeferredToolResults(
            calls={call.tool_call_id: "yes" for call in requests.calls},
            approvals={call.tool_call_id: True for call in requests.approvals},
        )

    @property
    def last_asked(self) -> list[tuple[str, str]]:
        parts = [part for message in self.scripted.asked[-1] for part in message.parts]
        return [(part.part_kind, str(getattr(part, "content", ""))) for part in parts]


# Pauses


async def test_a_deferred_call_beside_another_one_can_be_answered(manager: MemoryManager) -> None:
    office = Office(manager, Scripted({"look": {}, "ask": {"question": "a"}}, "done", "later"))
    results = await office.paused("do")
    assert await office.run(deferred_tool_results=results) == "done"
    assert office.last_asked[-2:] == [("tool-return", "seen"), ("tool-return", "yes")]
    await office.run("and")
    assert [text for kind, text in office.last_asked if kind == "tool-return"] == ["seen", "yes"]
    assert stored(manager) == [("do", ""), ("", "done"), ("and", "later")]


async def test_a_paused_turn_is_there_whatever_the_budget_is(store: EntryStore) -> None:
    manager = MemoryManager(store=store, max_conversation_tokens=30)
    office = Office(manager, Scripted({"pay": {"what": "word " * 100}}, "done"))
    results = await office.paused("do")
    assert await office.run(deferred_tool_results=results) == "done"


async def test_what_an_approved_tool_did_is_known_though_the_run_failed(manager: MemoryManager) -> None:
    office = Office(manager, Scripted({"pay": {}}, RuntimeError("503"), "fine"))
    results = await office.paused("do")
    with pytest.raises(RuntimeError, match="503"):
        await office.run(deferred_tool_results=results)
    await office.run("did you pay?")
    assert office.paid == [""]
    assert office.last_asked == [
        ("user-prompt", "do"),
        ("tool-call", ""),
        ("tool-return", "payment 17 made"),
        ("user-prompt", "did you pay?"),
    ]


async def test_a_new_prompt_abandons_what_was_paused(manager: MemoryManager) -> None:
    office = Office(manager, Scripted({"pay": {}}, "never mind it is", "more"))
    await office.paused("do")
    assert await office.run("never mind") == "never mind it is"
    assert "interrupted" in office.last_asked[2][1]
    assert await office.run("and") == "more"
    assert office.paid == []


async def test_a_new_prompt_abandons_a_response_that_its_provider_suspended(manager: MemoryManager) -> None:
    parts: list[Any] = [TextPart("let me think"), ToolCallPart("look", {})]
    said = [ModelRequest(parts=[UserPromptPart("do")]), ModelResponse(parts=parts, state="suspended")]
    await manager.async_add_turn("c", "do", "let me think", said)
    scripted = Scripted("fine")
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("never mind", conversation_id="c")
    assert scripted.texts[0][:2] == ["do", "let me think"]
    assert scripted.texts[0][-1] == "never mind"


async def test_tools_that_had_returned_when_a_run_was_cancelled_have_returned(manager: MemoryManager) -> None:
    scripted = Scripted({"fast": {}, "rich": {}, "slow": {}}, "fine")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])
    begun = asyncio.Event()

    @agent.tool_plain
    async def fast() -> str:
        return "payment made"

    @agent.tool_plain
    async def rich() -> ToolReturn:
        return ToolReturn("the value", content=["look at this", BinaryContent(b"\xff", media_type="image/png")])

    @agent.tool_plain
    async def slow() -> None:
        begun.set()
        await asyncio.Event().wait()

    run = asyncio.ensure_future(agent.run("do", conversation_id="c"))
    await begun.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await agent.run("what happened?", conversation_id="c")
    parts = [part for message in scripted.asked[-1] for part in message.parts if part.part_kind == "tool-return"]
    assert [str(part.content)[:20] for part in parts] == ["payment made", "the value", "The tool call was in"]
    assert any("look at this" in text for text in scripted.texts[-1])
    assert tasks_left() == set()


# Cancelled at the end


async def test_a_run_that_is_cancelled_while_it_is_stored_is_stored_whole(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    at_the_end = 0
    for wait in range(1, 200):
        name = f"c{wait}"
        agent = Agent(Scripted("the answer").model, capabilities=[Memory(manager)])
        whole = agent.run("one", conversation_id=name)
        try:
            await cancelled_at(wait, whole)
            break
        except asyncio.CancelledError:
            at_the_end += stored(manager, name) == [("one", "the answer")]
    assert stored(manager, name) == [("one", "the answer")]
    assert at_the_end


async def test_a_scope_of_anyio_that_was_cancelled_waits_without_spinning(
    store: EntryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = asyncio.Event()
    real = ConversationMemory.async_add_turn

    async def slow(memory: ConversationMemory, *arguments: Any, **options: Any) -> ConversationTurn:
        await released.wait()
        return await real(memory, *arguments, **options)

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    def shield(work: Any) -> Any:
        shielded.append(work)
        return real_shield(work)

    waiting, shielded, real_shield = asyncio.Event(), list[Any](), asyncio.shield
    monkeypatch.setattr(ConversationMemory, "async_add_turn", slow)
    monkeypatch.setattr(asyncio, "shield", shield)
    manager = MemoryManager(store=store)
    agent = Agent(FunctionModel(respond), capabilities=[Memory(manager)])
    with anyio.CancelScope() as scope:

        async def cancel_and_release() -> None:
            await waiting.wait()
            scope.cancel()
            for _ in range(1000):
                await asyncio.sleep(0)
            released.set()

        releasing = asyncio.ensure_future(cancel_and_release())
        await agent.run("one", conversation_id="c")
    await releasing
    assert stored(manager) == [("one", "")]
    assert len(shielded) < 100


async def test_a_slow_summarizer_can_be_cancelled_and_the_turn_is_there(store: EntryStore) -> None:
    begun = asyncio.Event()

    async def summarize(turns: list[ConversationTurn]) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    manager = MemoryManager(store=store, summarize_threshold=10, summarizer=summarize)
    await manager.async_add_turn("c", "word " * 20, "yes", summarize=False)
    agent = Agent(Scripted("the answer").model, capabilities=[Memory(manager)])
    run = asyncio.ensure_future(agent.run("one", conversation_id="c"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert stored(manager)[-1] == ("one", "the answer")
    again = ConversationMemory(store=store, summarize_threshold=10, summarizer=lambda turns: f"{len(turns)} turn")
    again.summarize("c")
    assert again.get_summary("c") == "1 turn"


# Nothing, and strange things


async def test_runs_that_say_nothing_harm_nobody(manager: MemoryManager) -> None:
    greeting = Agent(Scripted().model, instructions="Greet the user.", capabilities=[Memory(manager)])
    await greeting.run(conversation_id="c")
    assert (await greeting.run("hi", conversation_id="c")).output == "answer 2"
    prompted = Agent(Scripted().model, system_prompt="Greet the user.", capabilities=[Memory(manager)])
    for _ in range(2):
        await prompted.run(conversation_id="d")
    assert stored(manager, "d") == [("", "answer 1")], "nothing was said the second time"
    assert (await prompted.run("hi", conversation_id="d")).output == "answer 2"


def circular() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: b"\xff\xfe", '"__4="'),
        (circular, "{'self': {...}}"),
        (lambda: {"a": "\ud800"}, "{'a': '\\ud800'}"),
        (Shy, "<Shy>"),
        (lambda: None, "null"),
    ],
)
async def test_any_output_is_the_callers_and_has_a_text(
    make: Callable[[], Any], text: str, manager: MemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(word: str) -> Any:
        return make()

    scripted = Scripted({"final_result": {"word": "a"}})
    agent: Agent[None, Any] = Agent(scripted.model, output_type=answer, capabilities=[Memory(manager)])
    result = await agent.run("go", conversation_id="c")
    assert type(result.output) is type(make())
    assert stored(manager) == [("go", text)]
    assert caplog.record_tuples == []


async def test_a_warning_that_is_an_error_costs_no_turn(store: EntryStore, caplog: pytest.LogCaptureFixture) -> None:
    class Hesitant(TokenEstimator):
        def estimate_turn(self, *arguments: Any) -> int:
            if not warned:
                warned.append(True)
                raise UserWarning("tokens are estimated")
            return 1

    warned: list[bool] = []
    manager = MemoryManager(store=store, estimator=Hesitant())
    await Agent(Scripted().model, capabilities=[Memory(manager)]).run("one", conversation_id="c")
    assert stored(manager) == [("one", "answer 1")]
    assert "tokens are estimated" in caplog.text


async def test_turns_of_other_forms_are_told_by_their_texts(manager: MemoryManager) -> None:
    dicts = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    await manager.async_add_turn("c", "hi", "hello", dicts)
    await manager.async_add_turn("c", "and", "so on")
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("next", conversation_id="c")
    assert scripted.texts == [["hi", "hello", "and", "so on", "next"]]


async def test_what_was_asked_is_kept_though_nobody_was_asked(manager: MemoryManager) -> None:
    def broken(ctx: RunContext[None]) -> str:
        raise ArithmeticError("no instructions today")

    with pytest.raises(ArithmeticError):
        await Agent(Scripted().model, instructions=broken, capabilities=[Memory(manager)]).run(
            "one", conversation_id="c"
        )
    with pytest.raises(UsageLimitExceeded):
        await Agent(Scripted().model, capabilities=[Memory(manager)]).run(
            ["two", BinaryContent(b"\xff", media_type="image/png")],
            conversation_id="c",
            usage_limits=UsageLimits(request_limit=0),
        )
    assert stored(manager) == [("one", ""), ("two", "")]
    scripted = Scripted("fine")
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("three", conversation_id="c")
    assert [text for text in scripted.texts[0] if "BinaryContent" not in text] == ["one", "three"]


async def test_a_run_id_that_is_used_again_costs_no_turn(
    manager: MemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(Scripted().model, capabilities=[Memory(manager)])
    for prompt in ("one", "two"):
        assert (await agent.run(prompt, conversation_id="c", run_id="r")).output
    assert stored(manager) == [("one", "answer 1"), ("two", "answer 2")]
    assert [len(turn.raw_messages) for turn in manager.conversation.get_turns("c")] == [2, 2]
    assert "was stored before" in caplog.text


@pytest.mark.parametrize("conversation_id", ["\ud800", 5])
async def test_ids_that_cannot_be_stored_are_refused_before_the_model_is_asked(
    conversation_id: Any, manager: MemoryManager
) -> None:
    scripted = Scripted()
    with pytest.raises(InvalidEntryError, match="conversation_id"):
        await Agent(scripted.model, capabilities=[Memory(manager)]).run("one", conversation_id=conversation_id)
    assert scripted.asked == []


async def test_another_capability_may_recover_a_run(manager: MemoryManager) -> None:
    class Apologetic(AbstractCapability[Any]):
        async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> Any:
            return AgentRunResult(output="sorry", _state=AgentRunResult(output="")._state)

    agent = Agent(Scripted(RuntimeError("down"), "fine").model, capabilities=[Memory(manager), Apologetic()])
    assert (await agent.run("one", conversation_id="c")).output == "sorry"
    assert (await agent.run("two", conversation_id="c")).output == "fine"


async def test_messages_that_json_does_not_have_leave_their_texts(
    manager: MemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(Scripted({"look": {}}, "fine").model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def look() -> str:
        return "half an emoji: \ud83d"

    assert (await agent.run("one", conversation_id="c")).output == "fine"
    assert stored(manager) == [("one", "fine")]
    assert "only the texts are stored" in caplog.text
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("two", conversation_id="c")
    assert scripted.texts == [["one", "fine", "two"]]


async def test_what_a_history_processor_left_out_is_in_no_text(manager: MemoryManager) -> None:
    def redacted(messages: list[Any]) -> list[ModelMessage]:
        made: list[ModelMessage] = []
        for message in messages:
            parts = [
                replace(part, content="my card is ****") if isinstance(part, UserPromptPart) else part
                for part in message.parts
            ]
            made.append(replace(message, parts=parts))
        return made

    agent = Agent(Scripted().model, capabilities=[Memory(manager), ProcessHistory(redacted)])
    await agent.run("my card is 4111", conversation_id="c")
    assert stored(manager) == [("my card is ****", "answer 1")]
    assert "4111" not in str(manager.conversation.get_turns("c"))


# System prompts, facts, scopes


async def test_a_system_prompt_of_another_kind_does_not_stand_for_the_agents_own(manager: MemoryManager) -> None:
    scripted = Scripted({"verify": {}}, "verified", "again")
    agent = Agent(scripted.model, system_prompt="Never lend.", capabilities=[Memory(manager)])

    @agent.tool
    def verify(ctx: RunContext[None]) -> str:
        ctx.enqueue(SystemPromptPart("The user is verified."))
        return "ok"

    await agent.run("hi", conversation_id="c")
    await agent.run("lend me", conversation_id="c")
    first, *_ = scripted.asked[-1]
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
    assert "The user is verified." in str(scripted.texts[-1])
    assert str(scripted.texts[-1]).count("Never lend.") == 1


async def test_each_agent_says_its_own_system_prompt(manager: MemoryManager) -> None:
    translator = Scripted()
    agent = Agent(translator.model, system_prompt="Translate.", capabilities=[Memory(manager)])
    await agent.run("one", conversation_id="c")
    await agent.run("two", conversation_id="c")
    assert translator.texts[-1] == ["Translate.", "one", "answer 1", "two"]
    coder = Scripted()
    await Agent(coder.model, instructions="Code.", capabilities=[Memory(manager)]).run("three", conversation_id="c")
    assert "Translate." not in coder.texts[-1]
    assert coder.instructions == ["Code."]
    dynamic = Scripted()
    of_today = Agent(dynamic.model, capabilities=[Memory(manager)])
    of_today.system_prompt(lambda: f"prompt {len(dynamic.asked)}")
    for prompt in ("four", "five"):
        await of_today.run(prompt, conversation_id="c")
    assert [texts[0] for texts in dynamic.texts] == ["prompt 0", "prompt 1"]


async def test_a_fact_that_is_deleted_is_nowhere(store: EntryStore) -> None:
    manager = MemoryManager(store=store, summarize_threshold=10, summarizer=lambda _: "of old times")
    await manager.async_set_fact("secret", "4711")
    for instructions in ("Be brief.", None):
        scripted = Scripted({"recall": {"key": "secret"}}, "done")
        agent = Agent(scripted.model, instructions=instructions, capabilities=[Memory(manager, tools=True)])
        await agent.run("word " * 20, conversation_id="c")
        assert "- secret: 4711" in scripted.instructions[0]
        assert (instructions or "Working") in scripted.instructions[0]
    requests = [turn.raw_messages[0] for turn in manager.conversation.get_turns("c")]
    assert [request.instructions for request in requests] == [None, None]
    await Agent(Scripted().model, instructions="Be kind.", capabilities=[Memory(manager, context=False)]).run("x")
    (other,) = [name for name in manager.conversation.conversation_ids if name != "c"]
    assert manager.conversation.get_turns(other)[0].raw_messages[0].instructions == "Be kind."


async def test_a_fact_that_a_tool_sets_is_told_at_once(manager: MemoryManager) -> None:
    scripted = Scripted({"learn": {}}, "done")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])

    @agent.tool_plain
    async def learn() -> str:
        await manager.async_set_fact("language", "pt")
        return "learnt"

    await agent.run("one", conversation_id="c")
    assert scripted.instructions == ["", "Working Memory:\n- language: pt"]


async def test_facts_may_be_of_a_conversation_or_of_a_user(manager: MemoryManager) -> None:
    def remembering() -> Scripted:
        return Scripted({"remember": {"key": "address", "value": "1 Main St"}}, "noted")

    agent: FireflyAgent[str, str] = FireflyAgent(
        name="a", memory=Memory(manager, tools=True, working_scope="conversation"), deps_type=str
    )
    await agent.run("I live here", model=remembering().model, conversation_id="ada", deps="")
    for conversation_id, told in (("ada", "Working Memory:\n- address: 1 Main St"), ("bob", "")):
        scripted = Scripted()
        await agent.run("where?", model=scripted.model, conversation_id=conversation_id, deps="")
        assert scripted.instructions == [told]
    by_user = Memory(manager, tools=True, working_scope=lambda ctx: f"user {ctx.deps}")
    of_users: Agent[str, str] = Agent(deps_type=str, capabilities=[by_user])
    await of_users.run("I live here", model=remembering().model, deps="ada")
    for user, told in (("ada", "Working Memory:\n- address: 1 Main St"), ("bob", "")):
        scripted = Scripted()
        await of_users.run("where?", model=scripted.model, deps=user)
        assert scripted.instructions == [told]
    assert manager.working.to_dict() == {}


async def test_a_bad_key_is_the_models_to_mend(manager: MemoryManager) -> None:
    scripted = Scripted({"remember": {"key": "", "value": "x"}}, {"recall": {"key": "k" * 600}}, "done")
    agent = Agent(scripted.model, capabilities=[Memory(manager, tools=True)])
    assert (await agent.run("one", conversation_id="c")).output == "done"
    said = " ".join(scripted.texts[-1])
    assert "must not be empty" in said
    assert "600 characters long" in said


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"tools": "no"}, "tools"),
        ({"context": 1}, "context"),
        ({"working_scope": "user"}, "working_scope"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Memory(MemoryManager(), **options)


def test_a_store_is_no_manager(tmp_path: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"MemoryManager\(store="):
        Memory(SQLiteStore(tmp_path / "a.db"))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"MemoryManager\(store="):
        FireflyAgent(name="a", model="test", memory=SQLiteStore(tmp_path / "a.db"))  # type: ignore[arg-type]


async def test_two_memories_are_refused_whatever_they_are_called() -> None:
    one, other = MemoryManager(), MemoryManager()
    agent = Agent(Scripted().model, capabilities=[Memory(one, id="mine")])
    with pytest.raises(ConfigurationError, match="given 2 of Memory"):
        await agent.run("one", conversation_id="c", capabilities=[Memory(other)])
    assert stored(one) == stored(other) == []


async def test_a_memory_among_the_capabilities_is_the_agents_memory() -> None:
    manager = MemoryManager()
    agent = FireflyAgent(name="a", model=Scripted().model, capabilities=[Memory(manager, max_tokens=10)])
    assert agent.memory is manager
    assert FireflyAgent(name="a", model="test").memory is None


def test_the_schema_of_agent_specs_knows_the_options() -> None:
    schema = str(AgentSpec.model_json_schema_with_capabilities([Memory]))
    for option in ("url", "working_scope", "max_tokens", "tools", "on_conflict"):
        assert f"'{option}'" in schema


async def test_quiet(manager: MemoryManager, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is logged about a run that went well."""
    caplog.set_level(logging.WARNING, "firefly_memory")
    await Agent(Scripted().model, capabilities=[Memory(manager)]).run("one", conversation_id="c")
    assert caplog.record_tuples == []
    assert isinstance(manager.conversation.get_turns("c")[0].raw_messages[-1].parts[0], TextPart)
