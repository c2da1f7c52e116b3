"""What pydantic-ai answers to calls without executing a tool of the user's: no hook of a capability sees it.

A streamed run does not write these answers into the messages of its result, only into those of its stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai.exceptions import ToolFailedError, ToolRetryError
from pydantic_ai.messages import ModelRequestPart, ToolCallPart, ToolReturnPart
from pydantic_ai.tool_manager import ToolManager

Keep = Callable[[ToolCallPart, ModelRequestPart], None]

# What pydantic-ai answers to calls that came with the final result.
FINAL = "Final result processed."
NOT_USED = "Output tool not used - a final result was already processed."
NOT_FINAL = "Output tool processed, but its value will not be the final result of the agent run."
NOT_EXECUTED = "Tool not executed - a final result was already processed."


def answer_of(error: BaseException | None) -> ModelRequestPart | None:
    """The answer inside the exception of a refused call."""
    if isinstance(error, ToolRetryError):
        return error.tool_retry
    return error.tool_failed if isinstance(error, ToolFailedError) else None


def keep_refusals(tools: ToolManager[Any] | None, of_tools: Keep, of_output: Keep) -> None:
    """Tell ``of_tools`` how refused calls of this step are answered, ``of_output`` how calls of output tools are."""
    if tools is None:
        return
    validate, validate_output = tools.validate_tool_call, tools.validate_output_tool_call
    execute_output = tools.execute_output_tool_call

    async def validated(call: ToolCallPart, *arguments: Any, **options: Any) -> Any:
        result = await validate(call, *arguments, **options)
        if answer := answer_of(result.validation_error):
            of_tools(call, answer)
        return result

    async def output_validated(call: ToolCallPart, *arguments: Any, **options: Any) -> Any:
        result = await validate_output(call, *arguments, **options)
        if answer := answer_of(result.validation_error):
            of_output(call, answer)
        return result

    async def output_executed(checked: Any, *arguments: Any, **options: Any) -> Any:
        call: ToolCallPart = checked.call
        try:
            result = await execute_output(checked, *arguments, **options)
        except ToolRetryError as error:
            of_output(call, error.tool_retry)
            raise
        of_output(call, ToolReturnPart(call.tool_name, NOT_FINAL, tool_call_id=call.tool_call_id))
        return result

    vars(tools).update(
        validate_tool_call=validated,
        validate_output_tool_call=output_validated,
        execute_output_tool_call=output_executed,
    )
