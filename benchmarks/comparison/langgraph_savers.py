"""LangGraph's checkpoint savers: a graph with a model and a tool, compiled with one."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.comparison.contender import Answer, Contender
from benchmarks.one_turn import ANSWER, ARGUMENTS, INVOICES, MODEL, PROMPT, TOOL


def _response(text: str, **calls: Any) -> AIMessage:
    return AIMessage(
        text,
        id=f"run-{uuid4()}",
        response_metadata={"model_name": MODEL, "finish_reason": "stop"},
        usage_metadata={"input_tokens": 1_800, "output_tokens": 60, "total_tokens": 1_860},
        **calls,
    )


def _call() -> AIMessage:
    return _response("", tool_calls=[{"name": TOOL, "args": ARGUMENTS, "id": f"call_{uuid4().hex}"}])


def _result(call: AIMessage) -> ToolMessage:
    return ToolMessage(json.dumps(INVOICES), tool_call_id=call.tool_calls[0]["id"], name=TOOL)


def _after_model(state: MessagesState) -> str:
    return "tools" if _kind(state["messages"][-1]) == "call" else END


def _tools(state: MessagesState) -> dict[str, list[ToolMessage]]:
    return {"messages": [_result(state["messages"][-1])]}


def _graph(answer: Answer, saver: Any = None) -> Any:
    async def model(state: MessagesState) -> dict[str, list[AIMessage]]:
        called = isinstance(state["messages"][-1], ToolMessage)
        return {"messages": [_response(await answer()) if called else _call()]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", _tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", _after_model, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


def _kind(message: AnyMessage) -> str:
    if isinstance(message, AIMessage):
        return "call" if message.tool_calls else "answer"
    return "result" if isinstance(message, ToolMessage) else "prompt"


async def _at_once() -> str:
    return ANSWER


class _Saver(Contender):
    reads = "the state: all messages"

    def new_saver(self) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError

    async def open(self, *, create: bool = True) -> None:
        self.opened = self.new_saver()
        self.saver = await self.opened.__aenter__()
        if create:
            await self.saver.setup()
        self.graph = _graph(_at_once, self.saver)
        self.without = _graph(_at_once)
        self.states: dict[str, list[AnyMessage]] = {}

    async def close(self) -> None:
        await self.opened.__aexit__(None, None, None)

    async def _state(self, conversation: str) -> list[AnyMessage]:
        found: list[AnyMessage] = (await self.graph.aget_state(_thread(conversation))).values.get("messages", [])
        return found

    async def load(self, conversation: str) -> int:
        return len(await self._state(conversation))

    async def turn(self, conversation: str) -> None:
        await self.graph.ainvoke({"messages": [HumanMessage(PROMPT)]}, _thread(conversation))

    async def turn_without_store(self, conversation: str) -> None:
        if conversation not in self.states:
            self.states[conversation] = await self._state(conversation)
        await self.without.ainvoke({"messages": [*self.states[conversation], HumanMessage(PROMPT)]})

    async def fill(self, conversation: str, turns: int) -> None:
        messages: list[AnyMessage] = []
        for _ in range(turns):
            call = _call()
            messages += [HumanMessage(PROMPT), call, _result(call), _response(ANSWER)]
        await self.graph.aupdate_state(_thread(conversation), {"messages": messages}, as_node="model")

    async def run(self, conversation: str, answer: Answer) -> None:
        graph = _graph(answer, self.saver)
        await graph.ainvoke({"messages": [HumanMessage(PROMPT)]}, _thread(conversation))

    async def stored(self, conversation: str) -> list[str]:
        return [_kind(message) for message in await self._state(conversation)]

    async def resume(self, conversation: str) -> bool:
        await self.graph.ainvoke(None, _thread(conversation))
        return True


def _thread(conversation: str) -> Any:
    return {"configurable": {"thread_id": conversation}}


class SqliteSaver(_Saver):
    name = "LangGraph, `AsyncSqliteSaver`"
    backend = "sqlite"
    package = "langgraph-checkpoint-sqlite"

    def new_saver(self) -> AbstractAsyncContextManager[Any]:
        saver: AbstractAsyncContextManager[Any] = AsyncSqliteSaver.from_conn_string(str(self.place.path))
        return saver


class PostgresSaver(_Saver):
    name = "LangGraph, `AsyncPostgresSaver`"
    backend = "postgresql"
    package = "langgraph-checkpoint-postgres"

    def new_saver(self) -> AbstractAsyncContextManager[Any]:
        saver: AbstractAsyncContextManager[Any] = AsyncPostgresSaver.from_conn_string(self.place.postgresql_url)
        return saver
