"""Transactions of MongoDB that a killed client has left open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient


@contextmanager
def short_transactions(url: str) -> Iterator[None]:
    """MongoDB holds what a transaction of a dead client had for 5 seconds, and not for a minute."""
    with MongoClient[dict[str, Any]](url) as client:
        setting = "transactionLifetimeLimitSeconds"
        usual = client.admin.command({"getParameter": 1, setting: 1})[setting]
        client.admin.command({"setParameter": 1, setting: 5})
        try:
            yield
        finally:
            client.admin.command({"setParameter": 1, setting: usual})
