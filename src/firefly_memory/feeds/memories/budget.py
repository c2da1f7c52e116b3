"""Which messages of a history fit into a number of tokens."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from firefly_memory.feeds.constants import ACTION, ERROR, OBSERVATION
from firefly_memory.feeds.items import Message
from firefly_memory.tokens.estimator import PER_MESSAGE, TokenEstimator, texts_of

_ANSWERS = frozenset({OBSERVATION, ERROR})

_PIECE = 20_000
"""Longer texts are counted by pieces of so many characters, until they have too many tokens."""


class Listed(NamedTuple):
    """A message of a block of a history."""

    message: Message
    agent_key: str | None
    """Whose it is."""
    number: int | None = None
    """Tells it from other messages. Without a number, a message is the same as one that is equal."""


Block = Sequence[Listed]
"""Messages of one kind, oldest first."""


class Budget:
    """A number of tokens for the blocks of a history.

    Each block gets an equal share, and blocks that need less leave the rest to the others. A block keeps its newest
    messages, back to the first one for which there is no room left. A message that is larger than the whole share is
    left out, and those before it are not. An action and its answer are kept together or not at all: see
    :func:`answered_actions`.
    """

    def __init__(self, max_tokens: int, estimator: TokenEstimator) -> None:
        self.max_tokens = max_tokens
        self._estimator = estimator
        self._known: dict[tuple[str, ...], int] = {}
        """The tokens of texts: a block is read again with a larger limit."""

    def is_filled_by_half_of(self, block: Block, blocks: int) -> bool:
        """Whether the newer half of ``block``, one of so many ``blocks``, leaves no room for older messages, whatever
        the share of the block is. Only messages that fit into every share count.

        Actions that the newest messages answer are in the older half, unless they are far from their answers.
        """
        return self._newest(block, self.max_tokens, self.max_tokens // blocks).full_at >= len(block) // 2

    def fitting(self, blocks: Sequence[Block]) -> list[Block]:
        """What is kept of each block."""
        needed = [self._newest(block, self.max_tokens, self.max_tokens).needed for block in blocks]
        given = shares(needed, self.max_tokens)
        kept = [self._newest(block, share, share).kept for block, share in zip(blocks, given, strict=True)]
        return [[block[place] for place in sorted(places)] for block, places in zip(blocks, kept, strict=True)]

    def tokens(self, message: Message) -> int:
        """The tokens of a message. Any number above the budget stands for all numbers above it."""
        texts = tuple(texts_of((message,)))
        if texts not in self._known:
            self._known[texts] = self._count(message, texts)
        return self._known[texts]

    def _count(self, message: Message, texts: Sequence[str]) -> int:
        if sum(map(len, texts)) <= _PIECE:
            return self._estimator.estimate_message(message)
        tokens = PER_MESSAGE
        for piece in _pieces(texts):
            tokens += self._estimator.estimate(piece)
            if tokens > self.max_tokens:
                break
        return tokens

    def _newest(self, block: Block, share: int, largest: int) -> _Newest:
        """The newest messages that fit into a share, without those that have more tokens than ``largest``."""
        action_of = answered_actions(block)
        kept: set[int] = set()
        left_out: set[int] = set()
        needed = 0
        for place in reversed(range(len(block))):
            if place in kept or place in left_out:  # with its answer
                continue
            together = {place, action_of.get(place, place)}
            tokens = sum(self.tokens(block[each].message) for each in together)
            if tokens > largest:
                left_out |= together
                continue
            needed += tokens
            if needed > share:
                return _Newest(kept, needed, place)
            kept |= together
        return _Newest(kept, needed, -1)


class _Newest(NamedTuple):
    """The newest messages of a block."""

    kept: set[int]
    """Their places."""
    needed: int
    """Their tokens, with those of the first message that found no room."""
    full_at: int
    """The place of that message; -1 if there is none."""


def shares(needs: Sequence[int], total: int) -> list[int]:
    """``total`` in equal shares; a share that is larger than what is needed leaves the rest to the others."""
    given = [0] * len(needs)
    left = total
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        given[place] = min(needs[place], left // (len(needs) - done))
        left -= given[place]
    return given


def answered_actions(block: Block) -> Mapping[int, int]:
    """The place of the action for the place of each answer in a block.

    The answer to an action is the next observation or error of the same agent, of several open actions to the first
    one. To an action with a ``tool_call_id`` it is the next one with the same: one without it is something else that
    the agent found.
    """
    actions: dict[int, int] = {}
    open_actions: defaultdict[tuple[str | None, str | None], deque[int]] = defaultdict(deque)
    for place, listed in enumerate(block):
        kind, call_id = _type_of(listed.message), tool_call_id_of(listed.message)
        if kind == ACTION:
            open_actions[listed.agent_key, call_id].append(place)
        elif kind in _ANSWERS:
            waiting = open_actions[listed.agent_key, call_id] or open_actions[listed.agent_key, None]
            if waiting:
                actions[place] = waiting.popleft()
    return actions


def tool_call_id_of(message: Message) -> str | None:
    """By what an action and its answer know each other, if they have it."""
    tool_call_id: Any = message.get("tool_call_id")
    return tool_call_id if isinstance(tool_call_id, str) and tool_call_id else None


def _type_of(message: Message) -> str:
    kind: Any = message.get("type")
    return kind if isinstance(kind, str) else ""


def _pieces(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for start in range(0, len(text), _PIECE):
            yield text[start : start + _PIECE]
