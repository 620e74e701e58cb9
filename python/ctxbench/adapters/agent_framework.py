"""Strategies of Microsoft's Agent Framework, unmodified:
`python3 -m ctxbench.adapters.agent_framework context-window|summarization|truncation|…`.

What runs is `apply_compaction(…)` on one list that lives as long as the conversation, as it does
before each request of an agent with a `compaction_strategy`. Between turns an agent's list is
rebuilt from its history provider, and how much of the compaction survives that depends on how the
agent was put together (see docs/sources/real-libraries.md); here all of it does.

As in the framework, instructions and tool definitions are not among the messages, so that no
strategy counts them; tokens are four characters of a message's JSON. A prompt that the provider
refuses ends the turn.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import Any, Mapping, Sequence

from agent_framework import (
    BaseChatClient,
    CharacterEstimatorTokenizer,
    ChatResponse,
    Content,
    ContextWindowCompactionStrategy,
    Message,
    SelectiveToolCallCompactionStrategy,
    SlidingWindowStrategy,
    SummarizationStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    apply_compaction,
)

from ctxbench import Context, ModelError, Session, Strategy
from ctxbench.adapters import unseen


class AgentFramework(Strategy):
    """One of the strategies; the settings are its parameters."""

    version = version("agent-framework-core")
    dialect = "anthropic"  # The one that tells thinking, which the framework counts.

    def build(self) -> Any:
        raise NotImplementedError

    def start(self, session: Session) -> None:
        self.loop = asyncio.new_event_loop()
        self.compact = self.build()
        # All messages. The library marks the omitted ones.
        self.messages: list[Message] = []
        self.known: set[str] = set()
        #: Texts of the library, by its ids.
        self.own: dict[str, dict[str, Any]] = {}

    def context(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        applied = apply_compaction(self.messages, strategy=self.compact)
        return [self.entry(m) for m in self.loop.run_until_complete(applied)]

    def overflow(self, ctx: Context) -> None:
        self.take(ctx)

    def take(self, ctx: Context) -> None:
        """Appends what entered since the last call."""
        self.ctx = ctx
        self.messages += map(message, unseen(ctx, self.known))

    def entry(self, m: Message) -> Any:
        """What ctxbench is told of it: an id, or new text."""
        assert m.message_id is not None
        if m.message_id in self.known:
            return m.message_id
        return self.own.setdefault(m.message_id, {"role": m.role, "content": m.text})


class ContextWindow(AgentFramework):
    name = "agent-framework-context-window"

    #: By default those of the model.
    max_context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    tool_eviction_threshold: float = 0.5
    truncation_threshold: float = 0.8
    keep_last_tool_call_groups: int = 4
    preserve_first_user_group: bool = False

    def build(self) -> Any:
        model = self.session.model
        given = {k: getattr(self, k) for k in self.defaults()}
        limits = {
            "max_context_window_tokens": self.max_context_window_tokens or model.window,
            # A small scenario may leave less than the model could say.
            "max_output_tokens": self.max_output_tokens or min(model.max_output, model.window // 2),
        }
        return ContextWindowCompactionStrategy(**{**given, **limits})


class Summarization(AgentFramework):
    name = "agent-framework-summarization"

    #: `summary` for the provider's small model.
    client: str = "main"
    target_count: int = 4
    threshold: int = 2
    prompt: str | None = None
    #: Default 8000; 0 for no limit.
    max_summary_input_tokens: int | None = None

    def build(self) -> Any:
        limit = self.max_summary_input_tokens
        if limit is None:
            limit = int(8000 * self.session.scale)
        return SummarizationStrategy(
            client=Client(self),
            target_count=self.target_count,
            threshold=self.threshold,
            prompt=self.prompt,
            max_summary_input_tokens=limit or None,
        )


class Truncation(AgentFramework):
    name = "agent-framework-truncation"

    #: In tokens. The library has no defaults; its documentation takes 32000 and 16000.
    max_n: int | None = None
    compact_to: int | None = None
    preserve_first_user_group: bool = False

    def build(self) -> Any:
        return TruncationStrategy(
            max_n=self.max_n or int(32_000 * self.session.scale),
            compact_to=self.compact_to or int(16_000 * self.session.scale),
            tokenizer=CharacterEstimatorTokenizer(),
            preserve_first_user_group=self.preserve_first_user_group,
        )


class SlidingWindow(AgentFramework):
    name = "agent-framework-sliding-window"

    #: The library has no default; its documentation takes 20.
    keep_last_groups: int = 20

    def build(self) -> Any:
        return SlidingWindowStrategy(keep_last_groups=self.keep_last_groups)


class SelectiveToolCall(AgentFramework):
    name = "agent-framework-selective-tool-call"

    keep_last_tool_call_groups: int = 1

    def build(self) -> Any:
        keep = self.keep_last_tool_call_groups
        return SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=keep)


class ToolResult(AgentFramework):
    name = "agent-framework-tool-result"

    keep_last_tool_call_groups: int = 1

    def build(self) -> Any:
        keep = self.keep_last_tool_call_groups
        return ToolResultCompactionStrategy(keep_last_tool_call_groups=keep)


class Client(BaseChatClient):
    """The model of the run, as a chat client of the framework."""

    def __init__(self, adapter: Summarization) -> None:
        super().__init__()
        self._adapter = adapter

    async def _inner_get_response(  # type: ignore[override]
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> ChatResponse:
        system = "\n\n".join(m.text for m in messages if m.role == "system")
        asked = [{"role": m.role, "content": m.text} for m in messages if m.role != "system"]
        which: Any = self._adapter.client
        for left in (2, 1, 0):  # OpenAI's client tries twice again.
            try:
                reply = self._adapter.ctx.complete(asked, system=system or None, model=which)
                break
            except ModelError as e:
                if not left or e.class_ not in ("rate_limited", "server", "stream"):
                    raise
        return ChatResponse(messages=[Message("assistant", [reply.text])])


def message(m: dict[str, Any]) -> Message:
    """A message of the framework, under the id that ctxbench gave it."""
    contents = [part(b) for b in blocks(m.get("content"))]
    results = any(c.type == "function_result" for c in contents)
    return Message("tool" if results else m["role"], contents, message_id=m["id"])


def blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def part(b: dict[str, Any]) -> Content:
    """A block of a message."""
    kind = b["type"]
    if kind == "tool_use":
        return Content.from_function_call(b["id"], b["name"], arguments=dict(b["input"]))
    if kind == "tool_result":
        said = [p["text"] for p in blocks(b.get("content")) if p["type"] == "text"]
        return Content.from_function_result(b["tool_use_id"], result="\n".join(said))
    if kind == "thinking":
        signature = b.get("signature")
        return Content.from_text_reasoning(text=b["thinking"], protected_data=signature)
    if kind == "redacted_thinking":
        return Content.from_text_reasoning(protected_data=b["data"])
    if kind == "image":
        source = b["source"]
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return Content.from_uri(source.get("url") or data, media_type=source.get("media_type"))
    return Content.from_text(b.get("text") or "")


KINDS: dict[str, type[AgentFramework]] = {
    "context-window": ContextWindow,
    "summarization": Summarization,
    "truncation": Truncation,
    "sliding-window": SlidingWindow,
    "selective-tool-call": SelectiveToolCall,
    "tool-result": ToolResult,
}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: python3 -m ctxbench.adapters.agent_framework {'|'.join(KINDS)}")
    KINDS[sys.argv[1]].run()
