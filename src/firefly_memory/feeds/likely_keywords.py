"""What people write in place of the keywords of feeds."""

from firefly_memory.likely_names import answers_guesses_of

answers_guesses = answers_guesses_of(
    message_store="store messages backend",
    location="namespace job job_id room",
    namespace="location job job_id",
    agent_key="agent agent_name key",
    subordinates="workers team",
)
"""For a constructor. Its ``TypeError`` for a wrong keyword names the right one."""
