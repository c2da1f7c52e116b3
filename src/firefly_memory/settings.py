"""What the environment says. The only place that reads it."""

from __future__ import annotations

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from firefly_memory.schema import POSTGRESQL_SCHEMA


class MemorySettings(BaseSettings):
    """Settings from variables that start with ``FIREFLY_AGENTIC_MEMORY_``."""

    model_config = SettingsConfigDict(env_prefix="FIREFLY_AGENTIC_MEMORY_", extra="ignore")

    url: SecretStr | None = None
    postgres_url: SecretStr | None = None
    postgres_schema: str = POSTGRESQL_SCHEMA

    @property
    def database_url(self) -> str | None:
        """The SQL database to work on: any URL, or the documented PostgreSQL one."""
        url = self.url or self.postgres_url
        return None if url is None else url.get_secret_value()
