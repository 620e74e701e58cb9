"""The history reducers of Semantic Kernel, unmodified:
`python3 -m ctxbench.adapters.semantic_kernel summarization|truncation`.

What runs is `reduce()` of `ChatHistorySummarizationReducer` or `ChatHistoryTruncationReducer`
before each request, as `auto_reduce` does. Sizes are numbers of messages; they have no defaults,
and those here are the ones of its documentation. A prompt that the provider refuses ends the turn.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import Any

from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.contents import (
    ChatHistorySummarizationReducer,
    ChatHistoryTruncationReducer,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
)
from pydantic import PrivateAttr

from ctxbench import Context, Session, Strategy
from ctxbench.adapters import unseen


class Service(ChatCompletionClientBase):
    """The model of the run, as a service of the kernel."""

    _adapter: Any = PrivateAttr(default=None)

    async def get_chat_message_content(self, chat_history: Any, **_: Any) -> ChatMessageContent:
        *shown, ask = chat_history.messages
        asked = [self._adapter.entry(m) for m in shown]
        reply = self._adapter.ctx.complete([*asked, {"role": "user", "content": ask.content}])
        return ChatMessageContent(role="assistant", content=reply.text)


class SemanticKernel(Strategy):
    version = version("semantic-kernel")

    target_count: int = 10
    threshold_count: int = 5

    def build(self, settings: dict[str, Any]) -> Any:
        raise NotImplementedError

    def start(self, session: Session) -> None:
        self.loop = asyncio.new_event_loop()
        self.history = self.build({k: getattr(self, k) for k in self.defaults()})
        self.seen: set[str] = set()
        self.own: dict[int, tuple[Any, dict[str, Any]]] = {}

    def context(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        self.loop.run_until_complete(self.history.reduce())
        return [self.entry(m) for m in self.history.messages]

    def overflow(self, ctx: Context) -> None:
        self.take(ctx)

    def take(self, ctx: Context) -> None:
        self.ctx = ctx
        for m in unseen(ctx, self.seen):
            self.history.messages.append(message(m))

    def entry(self, m: Any) -> Any:
        if (name := m.metadata.get("id")) is not None:
            return name
        new = {"role": str(m.role.value), "content": m.content}
        return self.own.setdefault(id(m), (m, new))[1]


class Summarization(SemanticKernel):
    name = "semantic-kernel-summarization"

    use_single_summary: bool = True
    include_function_content_in_summary: bool = False

    def build(self, settings: dict[str, Any]) -> Any:
        service = Service(ai_model_id=self.session.model.id)
        service._adapter = self
        return ChatHistorySummarizationReducer(service=service, **settings)


class Truncation(SemanticKernel):
    name = "semantic-kernel-truncation"

    def build(self, settings: dict[str, Any]) -> Any:
        return ChatHistoryTruncationReducer(**settings)


def message(m: dict[str, Any]) -> ChatMessageContent:
    content = m.get("content")
    said = (
        content
        if isinstance(content, str)
        else "\n".join(p.get("text") or "" for p in content or [])
    )
    if m["role"] == "tool":
        items: list[Any] = [FunctionResultContent(id=m["tool_call_id"], name="tool", result=said)]
    else:
        items = [TextContent(text=said)] if said else []
        for call in m.get("tool_calls") or []:
            function = call["function"]
            items.append(
                FunctionCallContent(
                    id=call["id"], name=function["name"], arguments=function["arguments"]
                )
            )
    return ChatMessageContent(role=m["role"], items=items, metadata={"id": m["id"]})


KINDS: dict[str, type[Strategy]] = {"summarization": Summarization, "truncation": Truncation}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: python3 -m ctxbench.adapters.semantic_kernel {'|'.join(KINDS)}")
    KINDS[sys.argv[1]].run()
