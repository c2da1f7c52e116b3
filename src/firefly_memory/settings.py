"""What the environment says. Only here it is read, but for tiktoken's variables (``tiktoken_files``) and those that a
caller's own configuration names (``feeds/configuration/variables``)."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import DotEnvSettingsSource, EnvSettingsSource

from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.errors import ConfigurationError
from firefly_memory.facets import names_in, register_named
from firefly_memory.url_text import DIRECTORY
from firefly_memory.validation import Pooler, duration

PREFIX = "FIREFLY_AGENTIC_MEMORY_"
EARLIER_PREFIX = "FIREFLY_GENAI_MEMORY_"
ENV_FILE = ".env"
EnvFile = str | Path | None
_LIBRARIES = {"firefly_memory", "pydantic", "pydantic_settings"}


def _as_a_mode(value: Any) -> Any:
    """Modes are written as everybody writes them, such as ``660`` or ``0660``."""
    if not isinstance(value, str):
        return value
    if re.fullmatch("(0o?)?[0-7]{3,4}", value.strip()) is None:
        raise ValueError("must be a mode such as 0660")
    return int(value.strip().removeprefix("0o"), 8)


Mode = Annotated[int | None, BeforeValidator(_as_a_mode)]


class FacetSettings(BaseSettings):
    """Which facets of other packages there are. Commands read this first: the facets say which options they have."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix=PREFIX, env_file=ENV_FILE, extra="ignore", hide_input_in_errors=True, env_ignore_empty=True
    )

    facets: str = ""

    _file: EnvFile = PrivateAttr(default=ENV_FILE)

    def read_from(self, env_file: EnvFile) -> Self:
        """Remember the file, for what is said about variables."""
        self._file = env_file
        return self

    def variable(self, setting: str) -> str:
        """The variable that a setting is read from: the one that is set, under its present name or an earlier one."""
        return _variable(setting, self._file)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic calls it so
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = getattr(dotenv_settings, "env_file", None)
        # The first source that has a value wins: the process before the file, in each the present name before the old.
        return (
            init_settings,
            env_settings,
            _EarlierNames(settings_cls, EnvSettingsSource(settings_cls, env_prefix=EARLIER_PREFIX)),
            dotenv_settings,
            _EarlierNames(settings_cls, DotEnvSettingsSource(settings_cls, env_file=file, env_prefix=EARLIER_PREFIX)),
        )


class MemorySettings(FacetSettings):
    """Settings from variables that start with ``FIREFLY_AGENTIC_MEMORY_``, of the process or of a file ``.env``.
    Commands read no such file unless it is named: whoever can write to a directory would choose their store.

    ``url``, or the file ``url_file`` that has it, names a store of any kind: in place of ``backend``, or in agreement
    with it and with the other URLs and paths. An empty variable is as good as none.
    """

    url: SecretStr | None = None
    """The URL of the store."""
    url_file: Path | None = None
    """A file with the URL of the store, such as a mounted secret."""
    backend: Literal["in_memory", "file", "sqlite", "postgres", "mongodb"] = "in_memory"
    """The kind of the store, if no URL names one."""
    max_conversation_tokens: int = Field(default=128_000, ge=1)
    """The budget of ``get_message_history``."""
    summarize_threshold: int = Field(default=10, ge=0)
    """The most tokens of all turns before the oldest are summarized, if there is a summarizer."""
    summary_model: str | None = None
    """The model for :func:`create_llm_summarizer`, if none is named there."""
    profile: Path | None = None
    """A JSON or YAML file with a :class:`~firefly_memory.strategies.MemoryProfile`."""
    download_vocabularies: bool = False
    """Whether tiktoken may download a vocabulary."""
    file_dir: str = DIRECTORY
    """The directory of a ``FileStore``."""
    sqlite_path: str | None = None
    """The file of a ``SQLiteStore``."""
    file_mode: Mode = None
    """The rights on files that a store makes."""
    directory_mode: Mode = None
    """The rights on directories that a store makes."""
    postgres_url: SecretStr | None = None
    """The URL of a ``PostgreSQLStore``."""
    postgres_pool_size: int = Field(default=10, ge=1)
    """The most connections of each mode."""
    postgres_pool_min_size: int = Field(default=2, ge=0)
    """How many connections ``initialize()`` opens."""
    postgres_schema: str = POSTGRESQL_SCHEMA
    """The schema of all tables."""
    postgres_pooler: Pooler | None = None
    """How a pooler in front of the server shares connections."""
    mongodb_url: SecretStr | None = None
    """The URL of a ``MongoDBStore``."""
    mongodb_database: str = "firefly_memory"
    """The database, if the URL names none."""
    mongodb_collection: str = "entries"
    """The collection of entries."""
    mongodb_pool_size: int = Field(default=10, ge=1)
    """The most connections of each client."""
    migrate: bool = True
    """Whether a store brings its schema up to date; otherwise it checks the schema."""
    retention_older_than: str | None = None
    """The age at which conversations are pruned, such as ``90d``."""
    retention_keep_last: int | None = Field(default=None, ge=1)
    """How many conversations of each owner stay when conversations are pruned."""

    _url_in_file: str | None = PrivateAttr(default=None)

    @field_validator("url", "postgres_url", "mongodb_url", mode="before")
    @classmethod
    def _stripped(cls, url: Any) -> Any:
        """A URL that came from a file may have a line feed after it."""
        return url.strip() or None if isinstance(url, str) else url

    @field_validator("retention_older_than", mode="after")
    @classmethod
    def _a_length_of_time(cls, text: str | None) -> str | None:
        try:
            if text is not None:
                duration("it", text)
        except ConfigurationError as error:
            raise ValueError(str(error).removeprefix("it ")) from None
        return text

    @property
    def store_url(self) -> str | None:
        """``url``, or what is in ``url_file``; ``ConfigurationError`` if both are set and differ."""
        url = None if self.url is None else self.url.get_secret_value()
        if self.url_file is None:
            return url
        if self._url_in_file is None:  # read once: it may be a pipe
            with naming(self.variable("url_file")):
                self._url_in_file = read_url_file(self.url_file)
        if url not in (None, self._url_in_file):
            raise ConfigurationError(
                f"{self.variable('url_file')} contradicts {self.variable('url')}: unset one of them, "
                "or let both say the same"
            )
        return self._url_in_file


class _EarlierNames(PydanticBaseSettingsSource):
    """What another source finds under the names that variables had first, with a word about each."""

    def __init__(self, settings_cls: type[BaseSettings], source: EnvSettingsSource) -> None:
        super().__init__(settings_cls)
        self._source = source

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return self._source.get_field_value(field, field_name)

    def __call__(self) -> dict[str, Any]:
        found = {name: value for name, value in self._source().items() if name in self.settings_cls.model_fields}
        for name in found:
            now = f"{PREFIX}{name.upper()}"
            warn_the_caller(f"{EARLIER_PREFIX}{name.upper()} is now called {now}", DeprecationWarning)
        return found


def read_url_file(path: Path) -> str:
    """The URL in a file, such as a mounted secret."""
    try:
        url = path.read_text(encoding="utf-8-sig").strip()  # some editors of Windows begin with a mark of the encoding
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise ConfigurationError(f"the URL cannot be read from the file {path}: {reason}") from None
    if not url or len(url.split()) > 1:
        raise ConfigurationError(f"the file {path} must have a URL in it, and nothing else")
    return url


@contextmanager
def naming(variable: str | None) -> Iterator[None]:
    """What is refused came from this variable."""
    try:
        yield
    except ConfigurationError as error:
        if variable is None:
            raise
        raise ConfigurationError(f"{variable}: {error}") from None


_Settings = TypeVar("_Settings", bound=FacetSettings)


def read_settings(env_file: EnvFile = ENV_FILE) -> MemorySettings:
    """The settings, of the process and of this file, if there is one.

    ``ConfigurationError`` names the variable that cannot be used, and never shows a secret.
    """
    return _read(MemorySettings, env_file)


def read_settings_of_command(env_file: Path | None) -> MemorySettings:
    """The settings of the process and, if one is named, of that file, which has to be there."""
    return _read_of_command(MemorySettings, env_file)


def read_facets_of_command(env_file: Path | None) -> FacetSettings:
    """The facets that they name, whatever the other settings are."""
    return _read_of_command(FacetSettings, env_file)


def _read_of_command(settings: type[_Settings], env_file: Path | None) -> _Settings:
    if env_file is not None:
        problem = _why_it_cannot_be_read(env_file)
        if problem is not None:
            raise ConfigurationError(f"the file of variables {env_file} cannot be read: {problem}")
    return _read(settings, env_file)


def _read(settings: type[_Settings], env_file: EnvFile) -> _Settings:
    try:
        return settings(_env_file=env_file).read_from(env_file)
    except UnicodeDecodeError as exc:
        raise ConfigurationError(f"the file {env_file} is not UTF-8: {exc}") from None
    except ValidationError as exc:
        errors = ((_variable(str(error["loc"][0]), env_file), _problem(error)) for error in exc.errors())
        raise ConfigurationError("; ".join(f"{name}: {problem}" for name, problem in errors)) from None


def register_facets(settings: FacetSettings, given: Iterable[str] = (), *, option: str = "--facet") -> None:
    """Register the facets that the settings name, and those that are ``given`` by an option of a command line."""
    with naming(settings.variable("facets")):
        register_named(names_in(settings.facets))
    with naming(option):
        register_named(name for each in given for name in names_in(each))


def _why_it_cannot_be_read(env_file: Path) -> str | None:
    try:
        if env_file.exists() and not env_file.is_file():  # it is read twice
            return "it is a directory, a pipe or a device; name a file"
        env_file.open("rb").close()
    except FileNotFoundError:
        return "there is no such file"
    except OSError as exc:
        return exc.strerror
    return None


def _variable(setting: str, env_file: EnvFile) -> str:
    name = setting.upper()
    sources = (os.environ, {} if env_file is None else dotenv_values(env_file))
    known = {each.upper() for source in sources for each in source if source[each]}
    return next((p + name for p in (PREFIX, EARLIER_PREFIX) if p + name in known), PREFIX + name)


def warn_the_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at whoever asked for settings: by default Python hides what libraries are warned of."""
    warnings.warn(message, category, stacklevel=_levels_to_the_caller())


def _levels_to_the_caller() -> int:
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    return level


def _problem(error: Mapping[str, Any]) -> str:
    if error["type"] == "literal_error":
        expected = re.findall("'([^']*)'", error["ctx"]["expected"])
        return f"must be one of {', '.join(expected)}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return str(error["msg"])
