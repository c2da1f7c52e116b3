"""The messages of conversations.

``shapes`` reads a message, whichever library wrote it; ``parts`` describes the parts of messages. ``tool_links`` finds
the tool results that belong to tool calls. ``storage`` writes the messages of a turn as text and reads them again.
``pydantic_ai`` and ``pydantic_ai_values`` write pydantic-ai's messages as JSON without loss. ``quoted_text`` writes
stored text into a prompt as data.
"""
