"""What ctxbench tells a program: the session, the model, the usage of a reply."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Mapping, TypeVar

T = TypeVar("T")


def pick(cls: type[T], given: Mapping[str, Any]) -> T:
    """An object of `cls` from the fields it knows; a newer ctxbench may send more."""
    return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})  # type: ignore


@dataclass(frozen=True)
class Prices:
    """USD per million tokens, by kind of token."""

    input: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    output: float


@dataclass(frozen=True)
class Cache:
    """The prompt cache: lifetimes after the last use, and the smallest prompt that it holds."""

    lifetime_5m_ms: int
    lifetime_1h_ms: int
    min_tokens: int


@dataclass(frozen=True)
class Model:
    """The model of the run. Limits in tokens, scaled with the scenario."""

    id: str
    provider: str
    window: int
    max_output: int
    # None if they are unknown, or if ctxbench is older than 0.2.
    prices: Prices | None = None
    cache: Cache | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Model:
        """The model of an `initialize` call."""
        prices, cache = given.get("prices"), given.get("cache")
        return pick(
            cls,
            {
                **given,
                "prices": pick(Prices, prices) if prices else None,
                "cache": pick(Cache, cache) if cache else None,
            },
        )


@dataclass(frozen=True)
class Tool:
    """A tool of the session; `input_schema` is JSON schema."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A tool call, which a result answers."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply as the provider counts. `input_tokens` is all of the prompt."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Session:
    """What is known from the start."""

    id: str
    # Name of the subagent of this conversation, or None.
    agent: str | None
    tools: list[Tool]
    # Text before the conversation.
    system: str
    model: Model
    #: Factor for constants in tokens; limits and settings are scaled already.
    scale: float
    settings: dict[str, Any]
