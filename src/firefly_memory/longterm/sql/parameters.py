"""Parameters and constants of statements, with their types."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Double, Integer, Text, bindparam, cast, literal_column


def text(name: str) -> Any:
    return bindparam(name, type_=Text)


def whole(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


def number(constant: int) -> Any:
    return literal_column(str(constant), BigInteger)


def double(constant: str) -> Any:
    """A number of the type of confidences: PostgreSQL would look for an operator that takes both types."""
    return cast(literal_column(constant), Double)


def limit() -> Any:
    return bindparam("limit", type_=Integer)
