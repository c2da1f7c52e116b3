"""Which store or database a command works on: what its options say, then what the environment says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from firefly_memory.cli.invocation import current
from firefly_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from firefly_memory.settings import MemorySettings
    from firefly_memory.target import Given, Target

_COMMAND = re.compile(r"(firefly-memory db (?:upgrade|check|grants|stamp \w+))\b( --schema [\w$]+)?")


@dataclass
class Environment:
    """The variables that a command reads, with those of a file if it has one."""

    env_file: Path | None = None
    facets: tuple[str, ...] = ()
    """Those of other packages that the command line names."""

    @cached_property
    def settings(self) -> MemorySettings:
        """Read once: a file of it may be a pipe."""
        from firefly_memory.settings import read_settings_of_command, register_facets

        settings = read_settings_of_command(self.env_file)
        register_facets(settings, self.facets)
        return settings


@dataclass
class Where:
    """What the options of a command say about its store."""

    environment: Environment
    url: str | None = field(default=None, repr=False)
    url_file: Path | None = None
    schema: str | None = None
    database: str | None = None
    collection: str | None = None
    option: str = "--{}"
    """How the options beside the URL are called."""
    timeout: float = 30.0

    @property
    def settings(self) -> MemorySettings:
        return self.environment.settings

    @cached_property
    def given(self) -> Given:
        """As :func:`firefly_memory.target.target` takes it. The file of a URL is read once: it may be a pipe."""
        from firefly_memory.settings import read_url_file
        from firefly_memory.target import Given

        url = self.url if self.url_file is None else read_url_file(self.url_file)
        return Given(url, self.schema, self.database, self.collection, option=self.option, url_file=self.url_file)

    def target_if_any(self) -> Target | None:
        """The store that is meant, or ``None`` where nothing names one. From now on advice is about it."""
        from firefly_memory.target import target

        current().where = self
        return target(self.settings, self.given)

    def target(self) -> Target:
        """The store that is meant; ``ConfigurationError`` where nothing names one."""
        from firefly_memory.settings import PREFIX

        found = self.target_if_any()
        if found is None:
            raise ConfigurationError(
                f"no store: pass --url-file or --url, or set {PREFIX}URL, {PREFIX}URL_FILE or {PREFIX}BACKEND"
            )
        return found

    def advised(self, text: str) -> str:
        """``text``, where the commands that it tells people to run name the store as this command line does."""
        options = "".join(self._as_options())
        return _COMMAND.sub(lambda found: found[1] + options + (found[2] or "" if self.schema is None else ""), text)

    def _as_options(self) -> Iterator[str]:
        """Without the password: whoever runs it knows where it is to go."""
        from firefly_memory.urls import without_password

        if self.environment.env_file is not None:
            yield f" --env-file {shlex.quote(str(self.environment.env_file))}"
        yield from (f" --facet {shlex.quote(facet)}" for facet in self.environment.facets)
        if self.url_file is not None:
            yield f" --url-file {shlex.quote(str(self.url_file))}"
        elif self.url is not None:
            yield f" --url {shlex.quote(without_password(self.url))}"
        for name in ("schema", "database", "collection"):
            if (value := getattr(self, name)) is not None:
                yield f" --{name} {shlex.quote(value)}"
