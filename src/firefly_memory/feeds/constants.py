"""The types of messages, each as a constant, and the groups that they form."""

from __future__ import annotations

USER_MESSAGE = "user_message"
"""What a person says."""
ASSISTANT_MESSAGE = "assistant_message"
"""What the assistant answers."""

TASK = "task"
"""What an agent has to do."""
ACTION = "action"
"""A call of a tool."""
OBSERVATION = "observation"
"""The result of a tool."""
ERROR = "error"
"""What went wrong."""
GLOBAL_OBSERVATION = "global_observation"
"""An observation for every agent."""

FINAL = "final"
"""The result of a task."""
SYNTHESIS = "synthesis"
"""What a manager makes of the results."""

STRATEGIC_PLAN = "strategic_plan"
"""A plan of phases."""
SUGGESTED_PLAN = "suggested_plan"
"""A plan for a worker."""
SCRIPT_INSTRUCTION = "script_instruction"
"""A step of a script."""

CONVERSATION_TYPES = frozenset({USER_MESSAGE, ASSISTANT_MESSAGE})
"""What people and the assistant say to each other."""

TRACE_TYPES = frozenset({TASK, ACTION, OBSERVATION, ERROR, GLOBAL_OBSERVATION})
"""What agents note while they work."""

COMPLETION_TYPES = frozenset({FINAL, SYNTHESIS})
"""What ends a task or a phase."""

PLANNING_TYPES = frozenset({STRATEGIC_PLAN, SUGGESTED_PLAN, SCRIPT_INSTRUCTION})
"""What says how a task is to be done."""

GLOBAL_TYPES = frozenset({GLOBAL_OBSERVATION})
"""What every agent of the location sees, also without ``is_global``."""
