"""What a strategy may answer beyond a plain list of messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Sequence, Union

Scope = Literal["state", "request"]
#: In the dialect chosen; "id" names a message that ctxbench knows, a dict without it is new text.
Message = dict[str, Any]
#: A message, or only its id.
Entry = Union[Message, str]


@dataclass(frozen=True)
class Compaction:
    """What to call a change of what was shown. `ids`: the messages that new text stands for."""

    kind: Literal["clear", "truncate", "drop", "summarise"] | None = None
    mechanism: str | None = None
    ids: Sequence[str] | None = None


@dataclass(frozen=True)
class Trigger:
    """A limit was reached: its name, the tokens you believed there were, and the limit."""

    check: str
    believed: int
    limit: int


@dataclass(frozen=True)
class Breakpoint:
    """A prompt-cache breakpoint after a message; `"system"` is what stands before them all."""

    id: str
    ttl: Literal["5m", "1h"] | None = None


@dataclass(frozen=True)
class Keep:
    """An answer to `context`. `messages` None leaves the state as it is."""

    messages: Sequence[Entry] | None = None
    scope: Scope | None = None
    compaction: Compaction | None = None
    trigger: Trigger | None = None
    breakpoints: Sequence[Breakpoint] | None = None
    #: `max_tokens` and `effort` of this and the following requests.
    params: dict[str, Any] | None = None


@dataclass(frozen=True)
class Again:
    """Send the failed request again."""


@dataclass(frozen=True)
class Fail:
    """The turn failed; `text` is what the user reads."""

    text: str
