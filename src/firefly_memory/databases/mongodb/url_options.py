"""The options of a MongoDB URL, checked before the first client is made.

PyMongo ignores an option that it cannot use, and warns: with ``tls=yes`` a client sends the password in plain.
Whatever PyMongo would ignore is an error here, once for every client that is made from the URL.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.uri_parser import split_options

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import ConfigurationError
from firefly_memory.url_text import is_ambiguous, is_option, masked_server_url

_REFUSED = (PyMongoError, OSError, TypeError, ValueError, Warning)

_one_at_a_time = ForkSafeLock()

_UNREADABLE = (
    "this is not a MongoDB URL that PyMongo can read; it should look like "
    "mongodb://user:password@host:27017/?tls=true, with special characters in the password percent-encoded, and with "
    "options that go together"
)


def unused_client(arguments: Mapping[str, Any]) -> MongoClient[Any]:
    """A client that never connects; :class:`ConfigurationError` if PyMongo refuses or ignores a part of the URL."""
    url = arguments["host"]
    ambiguous = is_ambiguous(url)
    refusal = None if ambiguous else next(_refused_options(url.partition("?")[2]), None)
    if refusal is None:
        try:
            with _ignored_options_raise():
                return MongoClient(**arguments, connect=False)
        except Warning as warning:
            refusal = ConfigurationError(_UNREADABLE if ambiguous else f"the MongoDB URL cannot be used: {warning}")
        except OSError as exc:
            reason = exc.strerror or getattr(exc, "reason", None) or type(exc).__name__
            refusal = ConfigurationError(f"the TLS files that the MongoDB URL names cannot be used: {reason}")
        except _REFUSED:
            # Not in PyMongo's words: with a stray "/" or "@" in the URL, they may quote the password.
            refusal = ConfigurationError(_UNREADABLE)
    raise refusal  # outside of the block: what PyMongo says stays out of __context__ too


def _refused_options(query: str) -> Iterator[ConfigurationError]:
    for option in filter(None, re.split("[&;]", query)):
        name, equals, value = option.partition("=")
        try:
            with _ignored_options_raise():
                split_options(option)
        except OSError as exc:
            yield _refused(name, f"names a file that cannot be read: {exc.strerror or type(exc).__name__}")
        except _REFUSED as exc:
            if not equals or "=" in value:
                return  # PyMongo refuses the whole
            is_secret = not is_option(name) or "***" in masked_server_url(f"mongodb://host/?{option}")
            yield _refused(name, "has a value that PyMongo cannot use" if is_secret else f"cannot be used: {exc}")


def _refused(name: str, problem: str) -> ConfigurationError:
    option = f"the option {name!r}" if is_option(name) else "an option without a proper name"
    return ConfigurationError(f"{option} of the MongoDB URL {problem}")


@contextmanager
def _ignored_options_raise() -> Iterator[None]:
    """Inside the block PyMongo's warnings of an option that it leaves out are raised; nobody else's are."""
    with _one_at_a_time, warnings.catch_warnings():  # which all threads share: two at once would leave theirs behind
        warnings.filterwarnings("error", category=UserWarning, module=r"pymongo\b")
        warnings.filterwarnings("error", "Option '", category=DeprecationWarning, module=r"pymongo\b")
        yield
