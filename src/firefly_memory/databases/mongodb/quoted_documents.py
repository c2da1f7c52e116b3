"""Documents that PyMongo's errors quote: nobody wants to read prompts, or megabytes, in a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bson.errors import BSONError
from pymongo import errors

_QUOTES = frozenset({"op", "keyValue", "errInfo"})
"""Of a refused write: the write, what a unique index has already, what a validator of the database looked at."""


def forget_documents(error: BaseException) -> None:
    """Take what was to be written out of ``error`` and of every error that led to it."""
    for each in _with_causes(error):
        if isinstance(each, (errors.PyMongoError, BSONError)):
            each.args = tuple(_without_values(argument) for argument in each.args)
            _forget_quotes(getattr(each, "details", None))
            kept = {name: _without_values(value) for name, value in vars(each).items() if name != "_document"}
            # `_document` stays, as None: the error's property `document` reads it.
            vars(each).update(dict.fromkeys(vars(each)) | kept)


def without_key(message: str) -> str:
    """``message`` without what the server says of a duplicate but the name of the index."""
    return message.partition(" dup key:")[0]


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            waiting += [each.__cause__, each.__context__]
            yield each


def _without_values(argument: Any) -> Any:
    return without_key(argument.partition(", full error:")[0]) if isinstance(argument, str) else argument


def _forget_quotes(details: Any) -> None:
    if isinstance(details, dict):
        for name in _QUOTES & details.keys():
            del details[name]
        if isinstance(details.get("errmsg"), str):
            details["errmsg"] = without_key(details["errmsg"])
        for several in details.values():
            for one in several if isinstance(several, list) else ():
                _forget_quotes(one)
