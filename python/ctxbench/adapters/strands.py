"""Conversation managers of Strands Agents, unmodified:
`python3 -m ctxbench.adapters.strands summarizing|sliding-window`.

What runs is `reduce_context(…)` after a refused prompt and `apply_management(…)` at the end of
a turn, on one list of messages, as its `Agent` calls them. With `compression_threshold` it also
runs before a request above that share of the window, by the provider's count.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import (
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.types.exceptions import ContextWindowOverflowException

from ctxbench import Context, Session, Strategy
from ctxbench.adapters import unseen


class Strands(Strategy):
    version = version("strands-agents")
    dialect = "anthropic"
    join_results = True  # A message of Strands has all results of a reply.

    #: Share of the window above which it reduces before a request. None: after a refusal only.
    compression_threshold: float | None = None

    def build(self, settings: dict[str, Any]) -> Any:
        raise NotImplementedError

    def start(self, session: Session) -> None:
        settings = {k: getattr(self, k) for k in self.defaults()}
        settings.pop("compression_threshold")
        self.manager = self.build(settings)
        self.agent = SimpleNamespace(messages=[], aux_model=Model(self))
        #: By object: the message, its id, and its first content.
        self.known: dict[int, tuple[Any, str, str]] = {}
        self.seen: set[str] = set()
        self.own: dict[int, tuple[Any, dict[str, Any]]] = {}

    def context(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        limit = self.compression_threshold
        if limit and ctx.count_tokens() >= limit * ctx.model.window:
            self.manager.reduce_context(self.agent)
        return self.entries()

    def after_turn(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        self.manager.apply_management(self.agent)
        return self.entries()

    def overflow(self, ctx: Context) -> list[Any] | None:
        self.take(ctx)
        refused = ContextWindowOverflowException("too long")
        try:
            self.manager.reduce_context(self.agent, refused)
        except ContextWindowOverflowException as e:  # The agent ends with it.
            return ctx.log(e)
        return self.entries()

    def take(self, ctx: Context) -> None:
        self.ctx = ctx
        for m in unseen(ctx, self.seen):
            made = {"role": m["role"], "content": blocks(m["content"])}
            self.known[id(made)] = made, m["id"], repr(made["content"])
            self.agent.messages.append(made)

    def entries(self) -> list[Any]:
        return [self.entry(m) for m in self.agent.messages]

    def entry(self, m: Any) -> Any:
        if id(m) not in self.known:
            new = {"role": m["role"], "content": parts(m["content"])}
            return self.own.setdefault(id(m), (m, new))[1]
        _, name, before = self.known[id(m)]
        if repr(m["content"]) == before:
            return name
        return {"id": name, "role": m["role"], "content": parts(m["content"])}


class Summarizing(Strands):
    name = "strands-summarizing"

    summary_ratio: float = 0.3
    preserve_recent_messages: int = 10

    def build(self, settings: dict[str, Any]) -> Any:
        return SummarizingConversationManager(**settings)


class SlidingWindow(Strands):
    name = "strands-sliding-window"

    window_size: int = 40
    should_truncate_results: bool = True

    def build(self, settings: dict[str, Any]) -> Any:
        return SlidingWindowConversationManager(**settings)


class Model:
    """The model of the run, as one of Strands."""

    def __init__(self, adapter: Strands) -> None:
        self.adapter = adapter

    async def stream(self, messages: Any, tool_specs: Any, system_prompt: str) -> Any:
        asked = [self.adapter.entry(m) for m in messages[:-1]]
        asked.append({"role": "user", "content": parts(messages[-1]["content"])})
        text = self.adapter.ctx.complete(asked, system=system_prompt).text
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def blocks(content: Any) -> list[dict[str, Any]]:
    """Content of Anthropic's API as that of Strands."""
    if isinstance(content, str):
        return [{"text": content}]
    made: list[dict[str, Any]] = []
    for p in content:
        if p["type"] == "tool_use":
            made.append(
                {"toolUse": {"toolUseId": p["id"], "name": p["name"], "input": dict(p["input"])}}
            )
        elif p["type"] == "tool_result":
            status = "error" if p.get("is_error") else "success"
            inner = blocks(p.get("content") or "")
            result = {"toolUseId": p["tool_use_id"], "content": inner, "status": status}
            made.append({"toolResult": result})
        else:
            made.append({"text": p.get("text") or p.get("thinking") or f"[{p['type']}]"})
    return made


def parts(content: Any) -> list[dict[str, Any]]:
    """The way back."""
    made: list[dict[str, Any]] = []
    for b in content:
        if "toolUse" in b:
            call = b["toolUse"]
            made.append(
                {
                    "type": "tool_use",
                    "id": call["toolUseId"],
                    "name": call["name"],
                    "input": call["input"],
                }
            )
        elif "toolResult" in b:
            result = b["toolResult"]
            inner = parts(result["content"])
            made.append(
                {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": inner}
            )
        else:
            made.append({"type": "text", "text": b["text"]})
    return made


KINDS: dict[str, type[Strategy]] = {"summarizing": Summarizing, "sliding-window": SlidingWindow}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: python3 -m ctxbench.adapters.strands {'|'.join(KINDS)}")
    KINDS[sys.argv[1]].run()
