"""What people write in place of the right name, and the right name: for imports, keywords, URLs and commands.

Capitals, ``_`` and ``-`` make no difference in a guess. A word that is in no table is compared with the right names: it
may be misspelt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_SHORT = 4  # in so short a word one wrong letter counts more


def _table(**guesses: str) -> dict[str, str]:
    return {_plain(guess): right for right, words in guesses.items() for guess in words.split()}


def _plain(word: str) -> str:
    return re.sub("[_-]", "", word).lower()


def guesses(names: Mapping[str, str]) -> dict[str, str]:
    """What names stand for, by their plain form, which :func:`meant` looks up."""
    return {_plain(name): right for name, right in names.items()}


def meant(word: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> str | None:
    """The right name in place of ``word``, one that is ``known`` or, by its plain form, ``elsewhere``; ``None`` if
    nothing is like it."""
    from difflib import get_close_matches  # only where something is wrong

    plain = {_plain(each): each for each in known}
    wanted = _plain(word)
    if wanted not in plain and elsewhere is not None and wanted in elsewhere:
        return elsewhere[wanted]
    similar = get_close_matches(wanted, plain, 1, 0.75 if len(wanted) > _SHORT else 0.65)
    return plain[similar[0]] if similar else None


# Names in `firefly_memory`.

_HOMES = {
    "agents": "FireflyAgent LongTermMemory Memory MongoConversationStore SQLConversationStore",
    "archive": "async_export_jsonl async_import_jsonl export_jsonl import_jsonl",
    "copying": "async_copy_store copy_store",
    "erasure": "async_erase async_find_text async_readmit erase find_text readmit",
    "pipeline": "PipelineContext PipelineEngine",
    "reasoning": "PlanAndExecutePattern ReActPattern",
    "retention": "async_prune prune",
    "strategies": "KnowledgeBase MemoryMaxTokensStrategy MemoryProfile NeuralyzerStrategy SummarizerStrategy",
    "sweeper": "Sweeper",
}

NAMES = guesses(
    {name: f"firefly_memory.{module}.{name}" for module, names in _HOMES.items() for name in names.split()}
) | _table(
    PostgreSQLStore="PGStore PsqlStore",
    MongoDBStore="MongoStore",
    FileStore="FileMemoryStore JSONFileStore JSONStore",
    InMemoryStore="RAMStore DictStore",
    MemorySettings="Settings Config MemoryConfig",
    connect="open open_store create_store get_store from_url",
)
NAMES["conversationstore"] = "firefly_memory.agents.SQLConversationStore or MongoConversationStore"
NAMES["agent"] = "firefly_memory.agents.FireflyAgent"
"""The names that are elsewhere, and those that other libraries use. Those of facets are in their packages."""

# Keywords of constructors, by the right one.

_KEYWORDS = {
    "url": "dsn uri conninfo connection connection_string database_url db_url postgres_url mongodb_url",
    "path": "file filename file_path db_path db_file database database_path sqlite_path",
    "base_dir": "path dir directory folder root file_dir",
    "schema_name": "schema",
    "database": "db dbname db_name database_name",
    "collection": "collection_name",
    "pool_size": "max_connections max_pool_size pool_max_size",
    "store": "backend memory_store",
    "working_scope_id": "scope scope_id",
    "scope_id": "scope",
    "max_conversation_tokens": "max_tokens",
    "max_tokens": "max_conversation_tokens token_limit",
}
_URLS = {"url", *map(_plain, _KEYWORDS["url"].split())}


def answers_guesses(constructor: F) -> F:
    """A constructor. Its ``TypeError`` for a wrong keyword names the right one."""
    return _answering(constructor, _KEYWORDS)


def answers_guesses_of(**keywords: str) -> Callable[[F], F]:
    """The same for the constructors of a facet: what people write in place of its own keywords, by the right one."""
    return partial(_answering, words=_KEYWORDS | keywords)


def _answering(constructor: F, words: Mapping[str, str]) -> F:
    code = constructor.__code__
    positional = code.co_varnames[1 : code.co_argcount]
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(constructor)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(positional) or not kwargs.keys() <= set(known):
            raise TypeError(_wrong_call(type(self).__name__, args, kwargs, positional, known, words))
        constructor(self, *args, **kwargs)

    return checked  # type: ignore[return-value]


def _wrong_call(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positional: tuple[str, ...],
    known: tuple[str, ...],
    words: Mapping[str, str],
) -> str:
    """The values are not shown: a URL may hold a password."""
    with_store = f"{name}(store=connect(url)), with firefly_memory.connect"
    if len(args) > len(positional):
        most = f"at most {len(positional)} positional argument" if positional else "keyword arguments only"
        advice = f": {with_store}" if "store" in known else f"; the keywords are {', '.join(known)}"
        return f"{name}() takes {most}{advice}"
    wrong = next(each for each in kwargs if each not in known)
    problem = f"{name}() got an unexpected keyword argument {wrong!r}"
    if _plain(wrong) in _URLS and "url" not in known and known:
        instead = f"write {with_store}" if "store" in known else f"it takes {known[0]}; connect(url) takes a URL"
        return f"{problem}: {instead}"
    theirs = {_plain(guess): right for right in known for guess in words.get(right, "").split()}
    right = meant(wrong, known, theirs)
    return problem if right is None else f"{problem}; did you mean {right!r}?"


# URLs.

_SCHEMES = _table(
    mongodb="mongo",
    postgresql="pg psql pgsql postgressql",
    sqlite="sqlite3 db",
    file="files dir directory path json",
    memory="mem ram inmemory",
)


def scheme_meant(scheme: str, known: Iterable[str]) -> str | None:
    """The scheme of a store in place of ``scheme``."""
    return meant(scheme, known, _SCHEMES)


def sqlite_url_meant(text: str) -> str | None:
    """The URL of an SQLite file, if ``text`` is its path or lacks a slash. Any other text may hold a secret."""
    found = re.fullmatch(r"(?:(?i:sqlite3?):(?:///?)?)?(?P<path>[\w./ ~-]+\.(?:db|db3|sqlite|sqlite3))", text)
    return None if found is None else f"sqlite:///{found['path']}"


# The command line.

COMMANDS = _table(
    ls="list",
    search="find query ask",
    show="get cat view",
    rm="delete remove del",
    forget="erase gdpr anonymize",
    prune="purge cleanup clean expire sweep retention",
    stats="count info size",
    export="dump backup save",
    copy="cp clone move sync",
    doctor="check health diagnose ping verify",
) | {
    "restore": "import",
    "load": "import",
    "migrate": "db upgrade",
    "init": "db upgrade",
    "schema": "db sql",
    "version": "--version",
    "help": "--help",
}
"""Commands, and the right one as it is typed behind ``firefly-memory``."""

COMMANDS_OF_DB = {
    "migrate": "db upgrade",
    "init": "db upgrade",
    "status": "db current",
    "version": "db current",
    "heads": "db history",
    "revisions": "db history",
    "diff": "db check",
    "drift": "db check",
    "rollback": "db downgrade",
}

OPTIONS = {
    "dsn": "--url",
    "uri": "--url",
    "db": "--url",
    "databaseurl": "--url",
    "store": "--url",
    "force": "--yes",
    "noinput": "--yes",
    "assumeyes": "--yes",
    "simulate": "--dry-run",
    "silent": "--quiet",
    "q": "--quiet",
    "y": "--yes",
    "user": "--owner",
    "person": "--owner",
    "filter": "--where",
    "envfile": "--env-file",
}
"""Options that other commands have, without dashes."""
