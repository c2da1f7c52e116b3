"""Agent history as people look at it, on every backend that keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from firefly_memory import CorruptDataError, service
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from tests.support.agent_histories import KINDS, Stored, opened, somewhere
from tests.support.backends import Place
